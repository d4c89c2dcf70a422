"""What is on the topic of alerts need not be an alert, or of this day; nothing is lost unseen."""

import json
import logging
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from featurewatch.cli.config.settings import Settings
from featurewatch.integrations.notify.webhook import GIVE_UP_MS, WebhookEvent
from featurewatch.integrations.notify.webhook_target import WebhookSender
from featurewatch.streams.codec.outputs import encode_output
from featurewatch.streams.outputs import Alert
from featurewatch.streams.topics import ALERTS
from tests.integrations.notify.receivers import Receiver, receiver
from tests.integrations.notify.running import alert, notifying, now_ms, put, settings_of
from tests.streams.bus.mock_bus import MockBus
from tests.waiting import until_async

DAY_MS = GIVE_UP_MS
DEEP = b'"evidence": ' + b'{"a":' * 300 + b"1" + b"}" * 300
"""What orjson reads and does not write."""


def put_at(bus: MockBus, each: Alert, time_ms: int) -> None:
    """An alert that the bus received at some time."""
    message = encode_output(each)
    assert message.value is not None
    bus.put(bus.settings.topic(ALERTS), message.key, message.value, 0, time_ms)


async def metric(settings: Settings, name: str) -> float:
    """A metric of the webhook oncall."""
    url = f"http://127.0.0.1:{settings.web.notify_port}"
    async with aiohttp.ClientSession(url) as http, http.get("/metrics") as response:
        text = await response.text()
    start = f'featurewatch_notify_{name}{{target="oncall"}} '
    (line,) = [line for line in text.splitlines() if line.startswith(start)]
    return float(line.removeprefix(start))


def garbage() -> list[bytes]:
    """Values that are no alerts, and such as no worker writes."""
    good = json.loads(encode_output(alert(1)).value or b"")
    return [
        b"",
        b"\xff\x00",
        json.dumps(good | {"evidence": 0}).encode().replace(b'"evidence": 0', DEEP),
        b'{"a":' * 5000,
        b'{"id": 1}',
        json.dumps(good | {"severity": "fatal"}).encode(),
        json.dumps(good | {"evidence": {"x": "y" * 400_000}}).encode(),
        json.dumps(good | {"id": "i" * 20_000}).encode(),
        json.dumps(good | {"subject": {"n" * 10_000: "v"}}).encode(),
        json.dumps(good | {"since_ms": 10**30}).encode(),
    ]


async def test_what_is_no_alert_is_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is named by its place, in a line; what comes after it is delivered, to all targets. An
    alert that is larger than a request even without its evidence is counted as given up."""
    bus = MockBus()
    values = garbage()
    for value in values:
        bus.put(bus.settings.topic(ALERTS), b"k", value, 0)
    put(bus, alert(3, cause="\x01" * 7000), alert(2))
    async with receiver() as hook, receiver(lambda _: web.Response(text="{}")) as member:
        members = [f"http://127.0.0.1:{member.port}"]
        settings = settings_of(bus, tmp_path, ("oncall", hook), alertmanagers=members, resend_s=1)
        with caplog.at_level(logging.ERROR, "featurewatch.notify"):
            async with notifying(settings):
                await until_async(lambda: hook.nodes() == [2])
                await until_async(lambda: any(b'"node":"2"' in body for body in member.bodies))
                assert await metric(settings, "dropped_total") == 1
        assert not any(b'"node":"1"' in body for body in member.bodies)
    lines = [record.getMessage() for record in caplog.records]
    for offset in range(len(values)):
        assert sum(f"partition 0 offset {offset} is passed over" in line for line in lines) == 2
    assert all(len(line) < 1000 for line in lines)


async def until_delivered(bus: MockBus, hook: Receiver, settings: Settings, node: int) -> float:
    """Publishes an alert, waits until it is delivered, and returns how many were given up."""
    put(bus, alert(node))
    async with notifying(settings):
        await until_async(lambda: node in hook.nodes())
        return await metric(settings, "dropped_total")


async def test_what_waited_for_a_day_is_given_up_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A webhook that is new has no past to get. What is older than a day is tried once, since the
    clock of this process may be ahead; while the receiver fails it is lost, and the counter, of
    which a rule makes an alert, has it. The day of a message that claims to be of the future begins
    when it is read."""
    bus, received_ms = MockBus(), []
    deliver = WebhookSender.deliver

    async def noted(sender: WebhookSender, event: WebhookEvent, time_ms: int) -> None:
        received_ms.append(time_ms)
        await deliver(sender, event, time_ms)

    monkeypatch.setattr(WebhookSender, "deliver", noted)
    put_at(bus, alert(1), now_ms() - DAY_MS - 60_000)
    put_at(bus, alert(2), now_ms() - DAY_MS + 600_000)

    def fail_once(number: int) -> web.Response:
        return web.Response(status=500 if number == 4 else 204)

    async with receiver(fail_once) as hook:
        settings = settings_of(bus, tmp_path, ("oncall", hook))
        assert await until_delivered(bus, hook, settings, 3) == 0
        assert hook.nodes() == [2, 3]
        for node in (5, 6, *range(10, 30)):
            put_at(bus, alert(node), now_ms() - DAY_MS - 60_000)
        put_at(bus, alert(30), now_ms() + 10**12)
        assert await until_delivered(bus, hook, settings, 4) == 20
        assert hook.nodes() == [2, 3, 5, 6, 10, 30, 4]
    assert max(received_ms) <= now_ms()


async def test_410_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """And says what to do; other targets are unaffected."""
    bus = MockBus()
    put(bus, alert(1), alert(2))
    async with receiver(lambda _: web.Response(status=410)) as gone, receiver() as good:
        settings = settings_of(bus, tmp_path, ("oncall", gone), ("good", good))
        with caplog.at_level(logging.ERROR, "featurewatch.notify"):
            async with notifying(settings):
                await until_async(lambda: good.nodes() == [1, 2] and bool(gone.bodies))
                put(bus, alert(3))
                await until_async(lambda: good.nodes() == [1, 2, 3])
                assert await metric(settings, "stopped") == 1
        assert len(gone.bodies) == 1
    (line,) = [record.getMessage() for record in caplog.records]
    assert "oncall answered 410 (gone)" in line
    assert "remove it from the configuration" in line
