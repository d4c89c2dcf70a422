"""Delivers alert messages to one webhook, in order, each until it is accepted or dropped."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

from featurewatch.integrations.notify.http_client import TargetClient, TargetResponse
from featurewatch.integrations.notify.metrics import NotifyMetrics
from featurewatch.integrations.notify.settings import WebhookTarget
from featurewatch.integrations.notify.webhook import (
    GIVE_UP_MS,
    MAX_REFUSALS,
    Delivery,
    WebhookEvent,
    delivery_of,
    headers,
    trial_event,
    wait_s,
)

LOG: Final = logging.getLogger("featurewatch.notify")

_NOT_ABOUT_ONE: Final = (0, HTTPStatus.TOO_MANY_REQUESTS)
"""Statuses that say nothing of the event: no response, and too many requests."""

Sleep = Callable[[float], Awaitable[None]]


class TargetStoppedError(Exception):
    """The webhook answered 410: it gets nothing more until a restart."""


class WebhookSender:
    """One webhook. ``now_ms`` is the wall clock, ``jitter`` gives a number from 0 to 1; ``sleep``
    waits between two attempts."""

    def __init__(
        self,
        target: WebhookTarget,
        metrics: NotifyMetrics,
        now_ms: Callable[[], int],
        jitter: Callable[[], float],
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._target = target
        self._metrics = metrics
        self._now_ms = now_ms
        self._jitter = jitter
        self._sleep = sleep
        self._client = TargetClient(target.url, allow_private=target.allow_private)
        self._dropped = 0
        metrics.add_target(target.name)

    async def close(self) -> None:
        """Closes its connections."""
        await self._client.close()

    async def deliver(self, event: WebhookEvent, received_ms: int) -> None:
        """Delivers one event, or gives it up after a day; ``received_ms`` is when the bus received
        it. There is one attempt at least.

        An event that the receiver still does not take while it takes a test event would hold up all
        after it: it is given up after one more attempt.

        Raises:
            TargetStoppedError: The target wants no more messages.
        """
        attempts = refusals = 0
        takes_others = False
        while True:
            response = await self.attempt(event)
            attempts += 1
            match delivery_of(response.status) if response.status else Delivery.RETRY:
                case Delivery.DONE:
                    self._metrics.accepted(self._target.name)
                    self._dropped = 0
                    return
                case Delivery.GONE:
                    self._stop()
                    raise TargetStoppedError
                case Delivery.REFUSED:
                    refusals += 1
            self._note(response)
            if takes_others or refusals >= MAX_REFUSALS:
                self.drop(event)
                return
            if attempts >= MAX_REFUSALS and response.status not in _NOT_ABOUT_ONE:
                takes_others = await self._takes_others()
                if takes_others:
                    continue
            wait = wait_s(attempts, response.retry_after, self._jitter())
            if self._now_ms() + wait * 1000 > received_ms + GIVE_UP_MS:
                self.drop(event)
                return
            await self._sleep(wait)

    async def _takes_others(self) -> bool:
        """Whether the receiver works, as a test event shows: a person may see that event."""
        return delivery_of((await self.send_trial()).status) is Delivery.DONE

    @property
    def is_failing(self) -> bool:
        """Whether the last attempt failed."""
        return self._target.name in self._metrics.errors

    def drop(self, event: WebhookEvent) -> None:
        """Drops an event; of many in a row the 1st, 10th, 100th and so on is logged."""
        self._metrics.dropped(self._target.name)
        self._dropped += 1
        if str(self._dropped).strip("0") != "1":
            return
        reason = self._metrics.errors.get(self._target.name, "it was not sent in time")
        LOG.error(
            "the webhook %s did not get %s: %s; it is given up (%d in a row)",
            *(self._target.name, event.id, reason, self._dropped),
        )

    async def attempt(self, event: WebhookEvent) -> TargetResponse:
        """One request, signed now."""
        now_headers = headers(event, self._target.secrets, self._now_ms())
        return await self._client.post(event.body, now_headers)

    async def send_trial(self) -> TargetResponse:
        """Sends a test event."""
        return await self.attempt(trial_event(self._target.name, self._now_ms()))

    def _note(self, response: TargetResponse) -> None:
        reason = f"status {response.status}" if response.status else response.reason
        if 300 <= response.status < 400:
            reason += ", a redirect, which is not followed"
        if self._metrics.failed(self._target.name, reason):
            LOG.warning(
                "the webhook %s did not take an alert: %s; it is sent again",
                *(self._target.name, reason),
            )

    def _stop(self) -> None:
        self._metrics.failed(self._target.name, "it answered 410")
        self._metrics.stopped(self._target.name)
        LOG.error(
            "the webhook %s answered 410 (gone) and gets nothing more: remove it from the "
            "configuration, or restart featurewatch when it works again",
            self._target.name,
        )
