"""Reads the alerts for one webhook, and keeps its place on the topic.

Each webhook has its own consumer group, so a restart continues where it was, several processes
share the work, and a webhook that hangs holds up nobody else. A message is committed after its
delivery: it may be delivered twice, with the same id, but is never lost.
"""

import asyncio
import concurrent.futures
import contextlib
import logging
import threading
from collections.abc import Callable, Iterable
from typing import Final

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, Message, TopicPartition

from featurewatch.cli.runtime.notify.alert_messages import alert_of
from featurewatch.common.service_state import STATE
from featurewatch.common.threads import run_in_thread
from featurewatch.integrations.notify.alert_labels import AlertLinks
from featurewatch.integrations.notify.settings import WebhookTarget
from featurewatch.integrations.notify.webhook import (
    GIVE_UP_MS,
    MAX_BODY_BYTES,
    WebhookEvent,
    event_of,
)
from featurewatch.integrations.notify.webhook_target import TargetStoppedError, WebhookSender
from featurewatch.kafka.client_config.renewal import TlsFilesWatch
from featurewatch.streams.bus.client_errors import read_failure
from featurewatch.streams.bus.errors import BusError, BusPropertiesError
from featurewatch.streams.bus.feed import FailureLog
from featurewatch.streams.bus.passed_over import PassedOver
from featurewatch.streams.bus.reader import check_tls_files, open_consumer
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.topics import ALERTS

LOG: Final = logging.getLogger("featurewatch.notify")

_POLL_S: Final = 0.5
_QUICK_S: Final = 1.0
"""A delivery that takes longer pauses the reading, so that the group keeps its member."""

_RETRY_S: Final = 5.0
_COMMITTED_S: Final = 5.0
_TURN_S: Final = 120.0
"""A turn takes seconds; closing a consumer may take longer."""

Place = tuple[str | None, int | None]


class WebhookDelivery:
    """Follows the alerts for one webhook. ``now_ms`` is the wall clock."""

    def __init__(
        self,
        bus: BusSettings,
        target: WebhookTarget,
        sender: WebhookSender,
        links: AlertLinks,
        now_ms: Callable[[], int],
    ) -> None:
        self._bus = bus
        self._topic = bus.topic(ALERTS)
        self._group = bus.group(f"notify-{target.name}")
        self._target = target
        self._sender = sender
        self._links = links
        self._now_ms = now_ms
        self._passed_over = PassedOver(LOG)
        self._new: dict[int, int] = {}
        self._loop = asyncio.get_running_loop()
        self._turn: Callable[[], None] = lambda: None

    async def run(self) -> None:
        """Delivers until cancelled, or until the webhook answers 410; then it waits.

        Raises:
            BusPropertiesError: The bus' properties are wrong.
        """
        failure = FailureLog(LOG, f"the webhook {self._target.name} gets nothing")
        while True:
            try:
                await run_in_thread(self._read, f"featurewatch-webhook-{self._target.name}")
                return
            except TargetStoppedError:
                await asyncio.Event().wait()
            except BusPropertiesError:
                raise
            except BusError as error:
                failure.note(str(error))
            await asyncio.sleep(_RETRY_S)

    def _read(self, stopped: threading.Event) -> None:
        name = f"the deliveries to {self._target.name}"
        with contextlib.closing(self._consumer()) as consumer, STATE.loop(name, _TURN_S) as loop:
            self._turn = loop.turn
            consumer.subscribe([self._topic], on_assign=self._note_new)
            tls_files = TlsFilesWatch(self._bus.properties)
            while not stopped.is_set():
                loop.turn()
                check_tls_files(tls_files)
                message = consumer.poll(_POLL_S)
                if message is None:
                    continue
                if message.error() is not None:
                    self._check(message)
                elif self._deliver(consumer, message, stopped):
                    consumer.store_offsets(message)

    def _consumer(self) -> Consumer:
        return open_consumer(
            self._bus,
            self._group,
            enable_auto_offset_store=False,  # stored offsets are committed, also at the end
            auto_commit_interval_ms=1000,
            session_timeout_ms=10_000,  # how soon others take over from a process that was killed
            queued_max_messages_kbytes=1024,
        )

    def _deliver(self, consumer: Consumer, message: Message, stopped: threading.Event) -> bool:
        """Whether a message is finished: delivered, dropped, or not to be delivered."""
        now_ms = self._now_ms()
        # A time in the future would keep a message for as long.
        received_ms = min(message.timestamp()[1], now_ms) if message.timestamp()[0] else now_ms
        event = self._event_of(message)
        if event is None or self._is_history(message, received_ms):
            return True
        # What is too old is tried once while the receiver takes anything: this process may have
        # been away, or its clock may be ahead.
        is_late = received_ms < now_ms - GIVE_UP_MS
        if (is_late and self._sender.is_failing) or len(event.body) > MAX_BODY_BYTES:
            self._sender.drop(event)
            return True
        future = asyncio.run_coroutine_threadsafe(
            self._sender.deliver(event, received_ms), self._loop
        )
        try:
            is_done = self._wait(consumer, message, future, stopped)
        finally:
            future.cancel()
        if is_done:
            future.result()
        return is_done

    def _event_of(self, message: Message) -> WebhookEvent | None:
        """What is delivered of a message; None: nothing."""
        try:
            alert = alert_of(message)
            if alert is None:
                return None
            return event_of(alert, self._target.name, self._links.generator(alert))
        except Exception as error:  # the message's: those after it are delivered
            self._passed_over.note(message, error)
            return None

    def _wait(
        self,
        consumer: Consumer,
        message: Message,
        future: "concurrent.futures.Future[None]",
        stopped: threading.Event,
    ) -> bool:
        """Waits for a delivery; false: this process ends, or another one has the partition."""
        concurrent.futures.wait([future], _QUICK_S)
        is_paused = False
        own = message.topic(), message.partition()
        while not future.done():
            self._turn()
            partitions = consumer.assignment()
            if stopped.is_set() or own not in _places(partitions):
                break
            consumer.pause(partitions)
            is_paused = True
            early = consumer.poll(_POLL_S)
            if early is not None and early.error() is None:  # of a partition that is new here
                place = str(early.topic()), early.partition() or 0, early.offset() or 0
                consumer.pause(consumer.assignment())
                consumer.seek(TopicPartition(*place))
            elif early is not None:
                self._check(early)
        partitions = consumer.assignment()
        if is_paused:
            consumer.resume(partitions)
        return future.done() and own in _places(partitions)

    def _note_new(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Notes since when this webhook is new on partitions of which it has read nothing."""
        try:
            places = consumer.committed(partitions, timeout=_COMMITTED_S)
        except KafkaException:
            return  # then messages that are too old count as dropped
        for place in places:
            if place.offset == OFFSET_INVALID and place.error is None:
                self._new.setdefault(place.partition, self._now_ms())
            else:
                self._new.pop(place.partition, None)

    def _is_history(self, message: Message, received_ms: int) -> bool:
        """Whether a message was old when the webhook was new."""
        began_ms = self._new.get(message.partition() or 0)
        return began_ms is not None and received_ms < began_ms - GIVE_UP_MS

    def _check(self, message: Message) -> None:
        """Raises `BusError` for an error that does not end on its own."""
        error = message.error()
        failure = error and read_failure(error, self._bus, self._topic, self._group)
        if failure:
            raise failure


def _places(partitions: Iterable[TopicPartition]) -> set[Place]:
    return {(each.topic, each.partition) for each in partitions}
