"""Notifications that run on a bus, and alerts for them."""

import asyncio
import base64
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from featurewatch.cli.config.settings import BusSection, Settings, WebSection
from featurewatch.cli.runtime.notify.run import run_notify
from featurewatch.common.private_files import write_private
from featurewatch.streams.codec.outputs import encode_output
from featurewatch.streams.outputs import Alert
from featurewatch.streams.topics import ALERTS
from tests.integrations.notify.receivers import SECRETS, Receiver
from tests.processes import free_port
from tests.streams.bus.mock_bus import MockBus
from tests.web.samples import alert_of


def now_ms() -> int:
    """The wall clock."""
    return time.time_ns() // 1_000_000


def alert(node: int, **others: Any) -> Alert:
    """An alert of this moment."""
    return alert_of(node=node, since_ms=now_ms(), at_ms=now_ms(), **others)


def put(bus: MockBus, *alerts: Alert) -> None:
    """Publishes alerts, as a worker does."""
    for each in alerts:
        message = encode_output(each)
        assert message.value is not None
        bus.put(bus.settings.topic(ALERTS), message.key, message.value, 0)


def settings_of(
    bus: MockBus, directory: Path, *receivers: tuple[str, Receiver], **notify: Any
) -> Settings:
    """Settings with webhooks by name."""
    secret = directory / "secret"
    write_private(secret, "whsec_" + base64.b64encode(SECRETS[0]).decode())
    webhooks = [
        {"name": name, "url": received.url, "secret_file": str(secret), "private": True}
        for name, received in receivers
    ]
    return Settings(
        bus=BusSection(bootstrap_servers=bus.settings.bootstrap_servers),
        web=WebSection(notify_port=free_port()),
        notify={"webhooks": webhooks, **notify},  # type: ignore[arg-type]
    )


@contextlib.asynccontextmanager
async def notifying(settings: Settings) -> AsyncIterator[None]:
    """Notifications that run; what ends them is raised."""
    task = asyncio.ensure_future(run_notify(settings))
    try:
        yield
        assert not task.done(), task.exception()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
