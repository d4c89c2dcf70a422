"""``featurewatch alerts acknowledge``, with a worker that applies it."""

import time
import uuid
from pathlib import Path

import pytest

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.events import Message
from featurewatch.streams.events import SourceState, SourceStatus
from featurewatch.streams.topics import METADATA_LOG
from featurewatch.streams.types import ClusterId
from tests.cli.commands import featurewatch
from tests.integration.published import PublishedOutputs
from tests.processes import Process, wait_ready

pytestmark = pytest.mark.stack

CLUSTER = ClusterId("acknowledging")


def _following() -> SourceStatus:
    now_ms = time.time_ns() // 1_000_000
    return SourceStatus(CLUSTER, "kraft", SourceState.FOLLOWING, 0, 1, 1, 1, 1, "", now_ms)


async def test_an_alert_about_what_is_over_ends(bus: Cluster, tmp_path: Path) -> None:
    """It is resolved with who acknowledged it; what does not fire is refused in one line."""
    prefix = f"acknowledge-{uuid.uuid4().hex[:8]}"
    published = PublishedOutputs(bus, prefix)
    worker = Process("worker", ["worker", *published.flags], tmp_path)
    worker.start()
    try:
        wait_ready([worker])
        settings = BusSettings(bus.bootstrap_servers, prefix=prefix, replication_factor=1)
        name = settings.topic(METADATA_LOG)
        async with Publisher(settings) as publisher:
            await publisher.publish(METADATA_LOG, _following())
            for key in (CLUSTER.encode(), b"\xff", b"phantom"):
                await publisher.send(name, Message(key, b"{", []))
        published.state(CLUSTER, lambda _, firing: firing == {"unreadable"}, [worker])
        alert = f"{CLUSTER}/unreadable/record/MESSAGE"

        def acknowledge(alert: str) -> tuple[int, str]:
            flags = [alert, "--by", "ann", "--reason", "a test", *published.flags]
            done = featurewatch(tmp_path, "alerts", "acknowledge", *flags)
            return done.returncode, done.stderr

        assert acknowledge(alert) == (0, f"featurewatch: {alert} is acknowledged\n")
        code, text = acknowledge(alert)
        assert (code, text.count("\n")) == (2, 1)
        assert f"no alert {alert} fires" in text
        shown = featurewatch(tmp_path, "alerts", "--all", *published.flags)
        assert "Acknowledged by ann (a test); it was: MESSAGE could not be read" in shown.stdout
        states = featurewatch(tmp_path, "state", "--json", *published.flags).stdout
        assert states.count('"cluster":') == 1
    finally:
        worker.kill()
