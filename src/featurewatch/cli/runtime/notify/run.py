"""Runs the notifications: reads the alerts and sends them to Alertmanager and to webhooks."""

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from confluent_kafka import Message

from featurewatch.cli.config.settings import Settings
from featurewatch.cli.errors import UsageError
from featurewatch.cli.runtime.notify.alert_messages import alert_of
from featurewatch.cli.runtime.notify.webhook_delivery import WebhookDelivery
from featurewatch.cli.runtime.supervisor import STEADY_BACKOFF, must_be_set_up, run_restarting
from featurewatch.common.http.errors import PortTakenError
from featurewatch.common.tasks import run_all, start_background
from featurewatch.common.text import error_line
from featurewatch.integrations.notify.alert_book import AlertBook
from featurewatch.integrations.notify.alertmanager import AlertmanagerMember, links_of, send_trial
from featurewatch.integrations.notify.metrics import NotifyMetrics
from featurewatch.integrations.notify.settings import NotifySettings, WebhookTarget
from featurewatch.integrations.notify.webhook_target import WebhookSender
from featurewatch.streams.bus.feed import FailureLog, TopicFeed, follow_feed
from featurewatch.streams.health import HealthServer, HealthViews
from featurewatch.streams.source import wall_clock_ms
from featurewatch.streams.topics import ALERTS

LOG: Final = logging.getLogger("featurewatch.notify")

_TICK_S: Final = 10.0


class _AlertFeed(TopicFeed):
    """Applies the alerts to the book, and wakes the members."""

    def __init__(self, book: AlertBook, members: Sequence[AlertmanagerMember]) -> None:
        super().__init__(FailureLog(LOG, "Alertmanager gets nothing new"))
        self._book = book
        self._members = members

    def begin(self) -> None:
        self._book.begin_reading()

    def apply_message(self, message: Message) -> None:
        alert = alert_of(message)
        if alert is not None:
            self._book.apply(alert, wall_clock_ms())

    def applied(self) -> None:
        self._wake()

    def end(self) -> None:
        self._book.end_reading(wall_clock_ms())
        self._wake()

    def report(self, error: str | None) -> None:
        super().report(error)
        self._book.error = error

    def _wake(self) -> None:
        for member in self._members:
            member.wake()


async def run_notify(settings: Settings, topics_exist: asyncio.Event | None = None) -> None:
    """Sends alerts until cancelled; the topics are read once ``topics_exist`` is set, or at once.

    Raises:
        PortTakenError: The address of the metrics cannot be listened on.
        UsageError: A setting is wrong, or there is no target.
    """
    targets = settings.notify_settings()
    if not settings.notify.is_configured:
        raise UsageError("there is no target: set notify.alertmanagers or notify.webhooks")
    book, metrics = AlertBook(), NotifyMetrics()
    members = [
        AlertmanagerMember(url, targets, book, metrics, wall_clock_ms)
        for url in targets.alertmanagers
    ]
    async with (
        _serve_health(book, metrics, settings, has_members=bool(members)) as health,
        _senders(targets.webhooks, metrics) as senders,
        contextlib.AsyncExitStack() as stack,
    ):
        LOG.info("health and metrics of the notifications: %s", health.url)
        ticking = start_background("the book's clock", partial(_tick, book))
        stack.push_async_callback(ticking.close)
        if topics_exist is not None:
            await topics_exist.wait()
        bus = settings.bus_settings()
        work: list[Any] = [_restarting(member.url, member.run) for member in members]
        if members:
            work.append(follow_feed(_AlertFeed(book, members), bus, (ALERTS,)))
        for target, sender in zip(targets.webhooks, senders, strict=True):
            delivery = WebhookDelivery(bus, target, sender, links_of(targets), wall_clock_ms)
            work.append(_restarting(target.name, delivery.run))
        await run_all(work)


async def run_notify_beside(settings: Settings, topics_exist: asyncio.Event) -> None:
    """As `run_notify`, beside other work, which no failure of the notifications ends.

    Raises:
        UsageError: A setting is wrong.
    """

    async def run() -> None:
        try:
            await run_notify(settings, topics_exist)
        except PortTakenError as error:
            LOG.error("alerts are not sent: %s (web.notify_port)", error)
            await asyncio.Event().wait()

    await _restarting("all targets", run)


async def _restarting(target: str, run: Callable[[], Awaitable[None]]) -> None:
    """Runs the delivery to one target, again after an unexpected error."""

    async def on_failure(error: Exception, wait_s: float) -> None:
        LOG.error(
            "sending to %s failed and restarts in %g s (%s)",
            *(target, wait_s, error_line(error)),
            exc_info=error,
        )

    await run_restarting(run, on_failure, must_be_set_up, STEADY_BACKOFF)


async def send_trials(targets: NotifySettings) -> dict[str, str]:
    """Sends a test to each target; why it failed by target, empty where it was accepted."""
    results = {}
    now_ms = wall_clock_ms()
    for url in targets.alertmanagers:
        response = await send_trial(url, targets, now_ms)
        results[url] = _failure_of(response.status, response.reason)
    async with _senders(targets.webhooks, NotifyMetrics()) as senders:
        for target, sender in zip(targets.webhooks, senders, strict=True):
            response = await sender.send_trial()
            results[target.name] = _failure_of(response.status, response.reason)
    return results


def _failure_of(status: int, reason: str) -> str:
    if 200 <= status < 300:
        return ""
    return f"status {status} {reason}".strip() if status else reason


@contextlib.asynccontextmanager
async def _senders(
    targets: Iterable[WebhookTarget], metrics: NotifyMetrics
) -> AsyncIterator[list[WebhookSender]]:
    senders = [WebhookSender(target, metrics, wall_clock_ms, random.random) for target in targets]
    try:
        yield senders
    finally:
        for sender in senders:
            await sender.close()


def _serve_health(
    book: AlertBook, metrics: NotifyMetrics, settings: Settings, *, has_members: bool
) -> HealthServer:
    """Ready once the alerts are read, and no target fails."""

    def readiness() -> tuple[bool, dict[str, Any]]:
        reasons = [f"{target}: {reason}" for target, reason in metrics.errors.items()]
        if has_members and book.trouble is not None:
            reasons.append(book.trouble)
        return not reasons, {"ready": not reasons, "waiting": reasons}

    views = HealthViews(lambda: metrics.render, readiness)
    web = settings.web
    return HealthServer(
        views, port=web.notify_port, host=web.host, access=web.access(), part="notifications"
    )


async def _tick(book: AlertBook) -> None:
    while True:
        await asyncio.sleep(_TICK_S)
        book.tick(wall_clock_ms())
