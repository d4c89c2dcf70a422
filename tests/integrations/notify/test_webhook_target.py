"""Deliveries to real HTTP servers that hang, redirect, refuse and go away."""

import contextlib
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from featurewatch.integrations.notify.http_client import TargetClient
from featurewatch.integrations.notify.metrics import NotifyMetrics
from featurewatch.integrations.notify.webhook import GIVE_UP_MS, MAX_REFUSALS, event_of
from featurewatch.integrations.notify.webhook_target import TargetStoppedError, WebhookSender
from tests.integrations.notify.receivers import Receiver, accept, receiver
from tests.web.samples import NOW_MS, alert_of

EVENT = event_of(alert_of(), "oncall")


class Clock:
    """A clock that only waiting moves, and the waits."""

    def __init__(self) -> None:
        self.now_ms = NOW_MS
        self.waits: list[float] = []

    def read(self) -> int:
        """The time in milliseconds."""
        return self.now_ms

    async def sleep(self, seconds: float) -> None:
        """Passes at once."""
        self.waits.append(seconds)
        self.now_ms += round(seconds * 1000)


@contextlib.asynccontextmanager
async def sender_to(
    received: Receiver, clock: Clock, metrics: NotifyMetrics
) -> AsyncIterator[WebhookSender]:
    """A sender whose waits take no time."""
    sender = WebhookSender(received.target(), metrics, clock.read, lambda: 0.0, clock.sleep)
    try:
        yield sender
    finally:
        await sender.close()


def count(metrics: NotifyMetrics, name: str) -> float:
    """The value of a metric of the target."""
    line = f'featurewatch_notify_{name}{{target="oncall"}} '
    (value,) = [
        row.removeprefix(line) for row in metrics.render().decode().splitlines() if line in row
    ]
    return float(value)


async def test_it_is_sent_again_until_it_is_accepted() -> None:
    """With the same id and body, after growing waits, and Retry-After where it is given."""
    answers = [
        web.Response(status=503),
        web.Response(status=429, headers={"Retry-After": "77"}),
        web.Response(status=204),
    ]
    clock, metrics = Clock(), NotifyMetrics()
    async with (
        receiver(lambda number: answers[number]) as received,
        sender_to(received, clock, metrics) as sender,
    ):
        await sender.deliver(EVENT, NOW_MS)
    assert received.ids == [EVENT.id] * 3
    assert received.bodies == [EVENT.body] * 3
    assert clock.waits == [5, 77]
    assert (count(metrics, "sent_total"), count(metrics, "failures_total")) == (1, 2)
    assert count(metrics, "failing") == 0


async def test_a_redirect_is_not_followed() -> None:
    """A receiver cannot send alerts, or this process, to the inside."""
    clock, metrics = Clock(), NotifyMetrics()
    async with receiver() as inside:
        location = {"Location": f"http://127.0.0.1:{inside.port}/secret"}
        answers = [web.Response(status=307, headers=location), web.Response(status=204)]
        async with (
            receiver(lambda number: answers[number]) as received,
            sender_to(received, clock, metrics) as sender,
        ):
            await sender.deliver(EVENT, NOW_MS)
        assert (len(received.bodies), inside.bodies) == (2, [])


async def test_410_ends_the_target() -> None:
    """Nothing more is sent, and the metric says so."""
    metrics = NotifyMetrics()
    async with receiver(lambda _: web.Response(status=410)) as received:
        async with sender_to(received, Clock(), metrics) as sender:
            with pytest.raises(TargetStoppedError):
                await sender.deliver(EVENT, NOW_MS)
        assert len(received.bodies) == 1
    assert count(metrics, "stopped") == 1


async def test_what_a_receiver_refuses_is_given_up() -> None:
    """After some attempts, so that one message does not hold up all others."""
    metrics = NotifyMetrics()
    async with receiver(lambda _: web.Response(status=422)) as received:
        async with sender_to(received, Clock(), metrics) as sender:
            await sender.deliver(EVENT, NOW_MS)
        assert len(received.bodies) == MAX_REFUSALS
    assert count(metrics, "dropped_total") == 1


async def test_an_event_alone_that_is_not_taken_holds_up_no_other() -> None:
    """A receiver that fails of one event, and takes a test event, gets the next one soon."""
    clock, metrics = Clock(), NotifyMetrics()

    def answer(_: int) -> web.Response:
        return web.Response(status=500 if received.ids[-1] == EVENT.id else 204)

    async with receiver(answer) as received, sender_to(received, clock, metrics) as sender:
        await sender.deliver(EVENT, NOW_MS)
        assert len(received.ids) == MAX_REFUSALS + 2
        assert received.ids[-1] == EVENT.id != received.ids[-2]
        assert clock.now_ms < NOW_MS + 3_600_000
    assert count(metrics, "dropped_total") == 1


async def test_an_event_that_is_taken_after_the_test_event_is_not_dropped() -> None:
    """The receiver recovered in between."""
    clock, metrics = Clock(), NotifyMetrics()
    async with (
        receiver(lambda n: web.Response(status=500 if n < MAX_REFUSALS else 204)) as received,
        sender_to(received, clock, metrics) as sender,
    ):
        await sender.deliver(EVENT, NOW_MS)
        assert received.ids[-1] == EVENT.id
    assert (count(metrics, "sent_total"), count(metrics, "dropped_total")) == (1, 0)


async def test_after_a_day_a_message_is_given_up() -> None:
    """The receiver is tried to the last, never past the day."""
    clock, metrics = Clock(), NotifyMetrics()
    async with receiver(lambda _: web.Response(status=500)) as received:
        async with sender_to(received, clock, metrics) as sender:
            await sender.deliver(EVENT, NOW_MS)
        assert len(received.bodies) > 10
    assert NOW_MS + GIVE_UP_MS // 2 < clock.now_ms <= NOW_MS + GIVE_UP_MS
    assert count(metrics, "dropped_total") == 1


async def test_a_receiver_that_hangs_is_cut_off() -> None:
    """The attempt is over in time, and names the reason."""
    async with receiver(None) as received:
        client = TargetClient(received.url, allow_private=True, timeout_s=0.3)
        response = await client.post(b"{}", {})
        await client.close()
    assert (response.status, response.reason) == (0, "it did not answer in time")


async def test_a_refusal_of_any_size_is_read_in_part() -> None:
    """Its beginning is the reason, without what a terminal would obey."""
    body = b"\x1b[31mno" + b"x" * 5_000_000
    async with receiver(lambda _: web.Response(status=500, body=body)) as received:
        client = TargetClient(received.url, allow_private=True)
        response = await client.post(b"{}", {})
        await client.close()
    assert response.status == 500
    assert len(response.reason) < 1000
    assert response.reason.isprintable()


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"),
        *("127\u30020\u30020\u30021", "\u2460\u2461\u2466.0.0.1"),
    ],
)
async def test_a_private_address_is_refused_at_the_connection(host: str) -> None:
    """Whether it is written as an address or as a name that leads there."""
    async with receiver(accept) as received:
        url = received.url.replace("127.0.0.1", host)
        client = TargetClient(url, allow_private=False)
        response = await client.post(b"{}", {})
        await client.close()
        assert response.status == 0
        assert "private address" in response.reason
        assert received.bodies == []


async def test_nobody_listening_is_a_reason(closed_port: int) -> None:
    """An attempt never raises."""
    client = TargetClient(f"http://127.0.0.1:{closed_port}/", allow_private=True)
    response = await client.post(b"{}", {})
    await client.close()
    assert response.status == 0
    assert "Connect call failed" in response.reason
