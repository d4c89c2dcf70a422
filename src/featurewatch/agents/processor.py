"""Runs `monitor.input_messages.process` on messages, publishes outputs, persists states.

In this order: process (pure), publish (and wait until the bus has all outputs), persist (the rows,
in order). After a crash between any two of these the same message is processed again, and outputs
that are published again have the same keys.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any, Final, NamedTuple

from featurewatch.agents.at_least_once import (
    AtLeastOnceApp,
    OffsetTracker,
    RevokedError,
)
from featurewatch.agents.changelog import ChangelogWriter
from featurewatch.agents.delivery import GapDetector, input_message, reversal_reason
from featurewatch.agents.late_release import LateRelease
from featurewatch.agents.metrics import WorkerMetrics
from featurewatch.agents.run_failure import RunFailure
from featurewatch.agents.time_share import TimeShare
from featurewatch.common.limited_log import LimitedLog
from featurewatch.common.log_subject import log_subject
from featurewatch.monitor.alerts import NO_HELD, Cause, with_held_published
from featurewatch.monitor.input_messages import (
    InputMessage,
    ProcessResult,
    due_partition,
    format_location,
    input_topic,
    process,
    set_aside,
)
from featurewatch.monitor.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.monitor.rows import StateRowError, restore_states, rows_of_state, rows_of_step
from featurewatch.monitor.snapshot import snapshot
from featurewatch.monitor.step import MonitorState, StepResult, step_lost, step_lost_outputs
from featurewatch.streams.bus.errors import EventTooLargeError, PublishError
from featurewatch.streams.bus.partitions import partition_of
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import MAX_EVENT_BYTES, BusSettings
from featurewatch.streams.codec.events import Message, encode
from featurewatch.streams.codec.outputs import encode_output, topic_of
from featurewatch.streams.topics import (
    ALERTS,
    DEAD_LETTERS,
    EPOCHS,
    INPUTS,
    STATE,
    Topic,
)
from featurewatch.streams.types import ClusterId
from featurewatch.tables.garbage import collect_all
from featurewatch.tables.rows import Row

LOG: Final = logging.getLogger("featurewatch.worker")

_LARGE_BYTES: Final = 1 << 20
"""A larger message takes so much memory while it is processed that it is given back."""

_MAX_IN_FLIGHT: Final = 5_000
"""The outputs of one message that are sent at once: the client of the bus copies each of them."""


class EncodedResult(NamedTuple):
    """A result as it will be written: messages with their full topic names, and rows."""

    result: ProcessResult
    messages: list[tuple[str, Message]]
    rows: list[Row]


def encode_result(bus: BusSettings, result: ProcessResult) -> EncodedResult:
    """Encodes the outputs and rows of a result.

    Raises:
        EventTooLargeError: The bus would refuse one of them.
    """
    messages = []
    if result.dead_letter is not None:
        messages.append((bus.topic(DEAD_LETTERS), encode(DEAD_LETTERS, result.dead_letter)))
    messages += [
        (bus.topic(topic_of(output)), encode_output(output)) for output in result.step.outputs
    ]
    rows = [] if result.step.state is result.before else rows_of_step(result.before, result.step)
    sizes = [*(message.size for _, message in messages), *map(_size_of_row, rows)]
    if max(sizes, default=0) > MAX_EVENT_BYTES:
        raise EventTooLargeError(
            f"it leads to a message of {max(sizes)} bytes, and the bus accepts {MAX_EVENT_BYTES}"
        )
    return EncodedResult(result, messages, rows)


def _size_of_row(row: Row) -> int:
    name, value = row
    return len(name.encode()) + len(value or b"")


class EventProcessor:
    """Holds the states of all clusters whose partitions this worker owns."""

    def __init__(
        self,
        app: AtLeastOnceApp,
        bus: BusSettings,
        publisher: Publisher,
        changelog: ChangelogWriter,
        metrics: WorkerMetrics,
        failure: RunFailure,
        monotonic: Callable[[], float],
        limits: Limits = DEFAULT_LIMITS,
        processor_time: Callable[[], float] = time.thread_time,
    ) -> None:
        self.states: dict[ClusterId, MonitorState] = {}
        self.last_seen: dict[tuple[ClusterId, str], float] = {}
        """The time of a cluster's last message on an input topic, by cluster and short name of the
        topic, on the monotonic clock, in seconds."""
        self.dirty: set[ClusterId] = set()
        """The clusters whose newest state has not been published."""
        self._bus = bus
        self._publisher = publisher
        self._app = app
        self._tracker: OffsetTracker = app.tracker
        self._changelog = changelog
        self._metrics = metrics
        self._failure = failure
        self._monotonic = monotonic
        self._limits = limits
        self._gaps = GapDetector(app)
        self._processor_time = processor_time
        self._share = TimeShare()
        self._memory = LateRelease()
        # Whoever writes an input topic determines how many lines there are about its messages.
        self._input_log = LimitedLog(LOG, monotonic)
        # The agents of all topics share the states: one message at a time.
        self._lock = asyncio.Lock()

    def restore(
        self, rows: Iterable[tuple[bytes, bytes]], owned: Callable[[ClusterId], bool]
    ) -> dict[ClusterId, StateRowError]:
        """Restores the states of the clusters for which ``owned`` is true from a recovered table.

        Resets the offsets: each partition continues at its last commit. Returns why the states of
        some of these clusters cannot be restored.
        """
        self._tracker.reset()
        self.states.clear()
        collect_all()  # between the old states and the new ones there is little to go through
        restored = restore_states((key.decode(), value) for key, value in rows)
        self.states.update((name, state) for name, state in restored.states.items() if owned(name))
        inputs = ((name, topic.short_name) for name in self.states for topic in INPUTS)
        self.last_seen = dict.fromkeys(inputs, self._monotonic())
        self.dirty = set(self.states)
        nodes = sum(len(state.image.nodes) for state in self.states.values())
        LOG.info("recovered %d clusters with %d nodes", len(self.states), nodes)
        self._memory.request()  # the whole changelog was read
        return {name: error for name, error in restored.errors.items() if owned(name)}

    def partition(self, topic: Topic, cluster: ClusterId) -> tuple[str, int]:
        """The full name of an input topic, and the partition that has a cluster's messages."""
        return self._bus.topic(topic), self.partition_of_cluster(cluster)

    def partition_of_cluster(self, cluster: ClusterId) -> int:
        """The number of the partition of each topic that has a cluster's messages and rows."""
        return partition_of(cluster.encode(), self._bus.partitions)

    async def process(self, topic: Topic, event: Any, table: Any) -> None:
        """Processes one message of an input topic, whatever it contains.

        An unexpected error ends the run before the offset can be committed: it is not the
        message's, which `_step` deals with.
        """
        try:
            async with self._lock:
                key = event.message.key or b""
                with log_subject(lambda: key.decode(errors="replace"), topic.source):
                    await self._process_if_due(topic, event.message, table)
        except BaseException:  # a cancellation too: Faust would acknowledge the message
            self._tracker.fail()
            raise

    async def _process_if_due(self, topic: Topic, message: Any, table: Any) -> None:
        try:
            if await self._is_due(message, table):
                await self._process(topic, input_message(message), table)
                self._tracker.mark_processed(message.tp, message.offset)
                if len(message.value or b"") > _LARGE_BYTES:
                    self._memory.request()
        except RevokedError:
            pass  # it is read again by whoever has the partition next
        except Exception as error:
            if not isinstance(error, PublishError):
                LOG.exception("%s: the worker cannot continue", _place(message))
            await self._failure.end_run(error)  # holds the lock: nothing is processed

    async def _is_due(self, message: Any, table: Any) -> bool:
        """Whether a message is still to be processed; false: it was processed before.

        Messages that the topic no longer has are reported to their clusters.

        Raises:
            SkippedOffsetsError: Messages before it were skipped, and the topic still has them.
            RevokedError: This worker has lost the partition, or has it without its changelog.
        """
        if not self._changelog.owns(message.partition):
            raise RevokedError(f"partition {message.partition} is assigned without its changelog")
        due_offset = await self._gaps.due_offset(message)
        if due_offset < message.offset:
            reason = f"the messages since offset {due_offset} expired before they were read"
            LOG.error("%s: %s", _place(message), reason)
            for cluster in list(self.states):
                if self.partition_of_cluster(cluster) == message.partition:
                    await self._report_loss(cluster, input_message(message), reason, table)
        return bool(due_offset <= message.offset)

    async def _report_loss(
        self, cluster: ClusterId, message: InputMessage, reason: str, table: Any
    ) -> None:
        """Counts that messages of a cluster are lost before ``message``."""
        state, topic = self._state_of(cluster), input_topic(message.topic)
        cause = Cause(_place(message), message.time_ms)
        step = step_lost(state, topic.short_name, reason, cause, self._limits)
        await self._apply_step(state, step, message.partition, table)

    async def lose_input(self, cluster: ClusterId, topic: Topic, reason: str, cause: Cause) -> None:
        """Counts that messages of an input topic are lost, which is read from its beginning."""
        state = self._state_of(cluster)
        sources = state.image.sources.with_restarted(topic.short_name)
        before = replace(state, image=state.image.with_sources(sources))
        step = step_lost(before, topic.short_name, reason, cause, self._limits)
        await self._apply_step(before, step, self.partition_of_cluster(cluster))

    async def lose_output(
        self, cluster: ClusterId, topic: Topic, reason: str, cause: Cause
    ) -> None:
        """Counts that what was published of a cluster on an output topic is lost."""
        before = self._state_of(cluster)
        step = step_lost_outputs(before, topic.short_name, reason, cause, self._limits)
        await self._apply_step(before, step, self.partition_of_cluster(cluster))

    async def publish_again(
        self, cluster: ClusterId, outputs: Collection[Topic], cause: Cause
    ) -> None:
        """Publishes the current state of a cluster on output topics that were recreated.

        Held texts of alerts are published too: no message has another content than one before it
        with the same time and cause.
        """
        state = self._state_of(cluster)
        if ALERTS in outputs and state.held:
            alerts = with_held_published(state.firing, state.held, cause)
            state = replace(state, firing=state.firing.update(alerts), held=NO_HELD)
            self.states[cluster] = state
            rows = rows_of_state(state).items()
            await self._changelog.write(self.partition_of_cluster(cluster), rows)
        if STATE in outputs:
            self.dirty.add(cluster)
        messages = []
        if ALERTS in outputs:
            messages += [
                (ALERTS, encode_output(alert))
                for alerts in state.firing.values()
                for alert in alerts
            ]
        if EPOCHS in outputs and state.image.features.revision:
            messages.append((EPOCHS, encode_output(snapshot(state.image, cause.at_ms))))
        for topic, message in messages:
            if message.size <= MAX_EVENT_BYTES:
                await self._publisher.send(self._bus.topic(topic), message)

    async def write_rows(self, partition: int, rows: Iterable[Row]) -> None:
        """Writes rows to the changelog of a partition."""
        await self._changelog.write(partition, rows)

    async def write_stamp(self, partition: int, stamp: Row) -> None:
        """`ChangelogWriter.write_stamp`."""
        await self._changelog.write_stamp(partition, stamp)

    async def commit_rows(self) -> None:
        """Waits until the bus has all outputs, then commits the rows that were written."""
        await self._publisher.flush()
        await self._changelog.commit()

    async def _apply_step(
        self, before: MonitorState, step: StepResult, partition: int, table: Any = None
    ) -> None:
        """Applies what does not follow from the content of a message."""
        await self._apply(encode_result(self._bus, ProcessResult(before, step)), partition, table)

    async def _process(self, topic: Topic, message: InputMessage, table: Any) -> None:
        began_s, began_used_s = self._monotonic(), self._processor_time()
        named = ClusterId((message.key or b"").decode(errors="replace"))
        is_over = named in self.states and self._share.is_over(named, began_s)
        if is_over and due_partition(message, self._limits) == message.partition:
            await self._pass_over(topic, named, message, table)
            return
        encoded = self._step(message)
        if encoded.result.is_misplaced:
            await self._publish(encoded)  # a dead letter, which says nothing about its cluster
            self._metrics.observe(topic, encoded.result.step, self._monotonic() - began_s)
            return
        if not encoded.result.step.delta.from_snapshot:  # it costs what the cluster has
            used_s = self._processor_time() - began_used_s
            self._share.charge(named, used_s, len(message.value or b""), began_s)
        await self._apply(encoded, message.partition, table)
        cluster = encoded.result.before.image.cluster
        if cluster in self.states:  # ignore clusters that appear only as a message key
            self.last_seen[cluster, topic.short_name] = self._monotonic()
        for reason in (
            reversal_reason(message, encoded.result.before),
            self._gaps.late_reason(message, encoded.result),
        ):
            if reason is not None:
                self._input_log.note("losses", "%s: %s", _place(message), reason)
                await self._report_loss(cluster, message, reason, table)
        self._metrics.observe(topic, encoded.result.step, self._monotonic() - began_s)

    async def _pass_over(
        self, topic: Topic, cluster: ClusterId, message: InputMessage, table: Any
    ) -> None:
        """Counts a message as lost whose cluster has used up its share of this worker's time."""
        self.last_seen[cluster, topic.short_name] = self._monotonic()
        if self.states[cluster].image.sources.has_lost(topic.short_name):
            return
        reason = (
            f"the messages from offset {message.offset} on were passed over for a while, as those "
            "of this cluster took more of the worker's time than clusters share"
        )
        self._input_log.note("shares", "%s: %s", _place(message), reason)
        await self._report_loss(cluster, message, reason, table)

    def _step(self, message: InputMessage) -> EncodedResult:
        """Decodes a message, applies it and encodes the result.

        Whatever is in the message, the messages after it are processed too.
        """
        try:
            return encode_result(self._bus, process(message, self._state_of, self._limits))
        except Exception as error:  # its content is foreign, and this has no side effects
            self._input_log.note(
                "defects", "%s: cannot be processed", _place(message), exc_info=error
            )
            reason = f"it cannot be processed: {type(error).__name__}: {error}"
            return encode_result(
                self._bus, set_aside(message, reason, self._state_of, self._limits)
            )

    def _state_of(self, cluster: ClusterId) -> MonitorState:
        return self.states.get(cluster) or MonitorState.of(cluster)

    async def _apply(self, encoded: EncodedResult, partition: int, table: Any) -> None:
        await self._publish(encoded)
        await self._persist(encoded, partition, table)

    async def _publish(self, encoded: EncodedResult) -> None:
        dead_letter = encoded.result.dead_letter
        if dead_letter is not None:
            self._input_log.note(
                "dead letters",
                "%s: %s: kept in the dead letters",
                *(dead_letter.location, dead_letter.reason),
            )
        for first in range(0, len(encoded.messages), _MAX_IN_FLIGHT):
            deliveries = [
                await self._publisher.send(topic, message)
                for topic, message in encoded.messages[first : first + _MAX_IN_FLIGHT]
            ]
            for delivery in deliveries:
                await delivery

    async def _persist(self, encoded: EncodedResult, partition: int, table: Any) -> None:
        before, after = encoded.result.before, encoded.result.step.state
        if after is before:
            return
        # Without a message there is no table to write: it gets the rows from the changelog.
        for name, value in encoded.rows if table is not None else ():
            key = name.encode()
            if value is not None:
                table[key] = value
            elif key in table:
                del table[key]
        await self._changelog.write(partition, encoded.rows)
        cluster = after.image.cluster
        self.states[cluster] = after
        self.dirty.add(cluster)


def _place(message: Any) -> str:
    """Returns the position on the bus of a message of Faust, or of one of ours."""
    return format_location(message.topic, message.partition, message.offset)
