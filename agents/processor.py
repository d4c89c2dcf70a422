"""Runs `controller.input_messages.process` on messages, publishes outputs, persists states.

In this order: process (pure), publish (and wait until the bus has all outputs), persist (the rows,
in order). After a crash between any two of these the same message is processed again, and outputs
that are published again have the same keys.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any, Final, NamedTuple

from featurewatch.agents.at_least_once import (
    AtLeastOnceApp,
    OffsetTracker,
    RevokedError,
    SkippedOffsetsError,
)
from featurewatch.agents.changelog import ChangelogWriter
from featurewatch.agents.metrics import WorkerMetrics
from featurewatch.agents.run_failure import RunFailure
from featurewatch.controller.alerts import Cause
from featurewatch.controller.input_messages import (
    InputMessage,
    ProcessResult,
    begins_in_the_middle,
    format_place,
    input_topic,
    process,
    set_aside,
)
from featurewatch.controller.monitor import (
    MonitorState,
    StepResult,
    step_lost,
    step_lost_outputs,
)
from featurewatch.controller.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.controller.rows import rows_of_step, states_of_rows
from featurewatch.controller.snapshot import snapshot
from featurewatch.streams.bus.positions import partition_of
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import MAX_EVENT_BYTES, BusSettings
from featurewatch.streams.codec.cloudevents import LATEST_MS
from featurewatch.streams.codec.events import Message, encode
from featurewatch.streams.codec.outputs import encode_output, topic_of
from featurewatch.streams.errors import EventTooLargeError, PublishError
from featurewatch.streams.topics import (
    ALERTS,
    DEAD_LETTERS,
    EPOCHS,
    INPUTS,
    STATE,
    Topic,
)
from featurewatch.streams.types import ClusterId
from featurewatch.tables.image.sources import MessagePosition
from featurewatch.tables.rows import Row

LOG: Final = logging.getLogger("featurewatch.worker")


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
        self._late: set[tuple[str, int]] = set()
        """Partitions, by full topic name and number, whose beginning expired before this worker
        first read them."""
        # The agents of all topics share the states: one message at a time.
        self._lock = asyncio.Lock()

    def restore(
        self, rows: Iterable[tuple[bytes, bytes]], owned: Callable[[ClusterId], bool]
    ) -> None:
        """Restores the states of the clusters for which ``owned`` is true from a recovered table.

        Resets the offsets: each partition continues at its last commit.
        """
        self._tracker.reset()
        restored = states_of_rows((key.decode(), value) for key, value in rows)
        self.states.clear()
        self.states.update((name, state) for name, state in restored.items() if owned(name))
        inputs = ((name, topic.short_name) for name in self.states for topic in INPUTS)
        self.last_seen = dict.fromkeys(inputs, self._monotonic())
        self.dirty = set(self.states)
        nodes = sum(len(state.image.nodes) for state in self.states.values())
        LOG.info("recovered %d clusters with %d nodes", len(self.states), nodes)

    def partition(self, topic: Topic, cluster: ClusterId) -> tuple[str, int]:
        """The full name of an input topic, and the partition that has a cluster's messages."""
        return self._bus.topic(topic), partition_of(cluster.encode(), self._bus.partitions)

    async def process(self, topic: Topic, event: Any, table: Any) -> None:
        """Processes one message of an input topic, whatever it contains.

        An unexpected error ends the run before the offset can be committed: it is not the
        message's, which `_judge` deals with.
        """
        finished = False
        try:
            async with self._lock:
                try:
                    if await self._is_due(event.message, table):
                        await self._process(topic, _input_message(event.message), table)
                        self._tracker.mark_processed(event.message.tp, event.message.offset)
                except RevokedError:
                    pass  # it is read again by whoever has the partition next
                except PublishError as error:
                    await self._failure.end_run(error)
                except Exception as error:
                    LOG.exception("%s: the worker cannot go on", _place(event.message))
                    await self._failure.end_run(error)  # holds the lock: nothing is processed
            finished = True
        finally:
            if not finished:
                self._tracker.fail()

    async def _is_due(self, message: Any, table: Any) -> bool:
        """Whether a message is still to be processed; false: it was processed before.

        Messages that the topic no longer has are reported to their clusters.

        Raises:
            SkippedOffsetsError: Messages before it were skipped, and the topic still has them.
            RevokedError: This worker has lost the partition.
        """
        jump_start = self._app.take_jump(message.tp, message.offset)
        if jump_start is not None and jump_start > message.offset:
            return True  # the log went back: `_report_reversal`
        expected = self._tracker.next_offset(message.tp)
        if expected is None:
            expected = self._app.committed(message.tp)
        if expected is None:
            expected = await self._app.log_start(message.tp)
            if expected > 0:
                self._late.add((message.topic, message.partition))
        if message.offset <= expected:
            return bool(message.offset == expected)
        if await self._app.log_start(message.tp) > expected:
            reason = f"the messages since offset {expected} expired before they were read"
            await self._report_loss(message, reason, table)
        elif jump_start != expected:
            raise SkippedOffsetsError(f"offset {expected} was due and did not come")
        return True

    async def _report_loss(self, message: Any, reason: str, table: Any) -> None:
        """Counts lost messages in each cluster that has the partition."""
        LOG.error("%s: %s", _place(message), reason)
        cause = Cause(_place(message), _input_message(message).time_ms)
        topic = input_topic(message.topic)
        for cluster in list(self.states):
            if partition_of(cluster.encode(), self._bus.partitions) == message.partition:
                await self._count_loss(cluster, topic, reason, cause, message.partition, table)

    async def _report_reversal(
        self, topic: Topic, message: InputMessage, before: MonitorState, table: Any
    ) -> None:
        """Counts what was lost if a message of the cluster has an offset that an older one had.

        Its topic was made anew, or lost messages that its brokers had acknowledged.
        """
        position = MessagePosition(topic.short_name, message.offset, message.time_ms)
        if not before.image.sources.goes_back(position):
            return
        last_offset = before.image.sources.read[topic.short_name].offset
        reason = (
            f"offset {message.offset} came after offset {last_offset}: the topic was made anew, "
            "or its brokers lost what they had acknowledged"
        )
        place = format_place(message.topic, message.partition, message.offset)
        LOG.error("%s: %s", place, reason)
        cause = Cause(place, message.time_ms)
        await self._count_loss(before.image.cluster, topic, reason, cause, message.partition, table)

    async def _report_late(
        self, topic: Topic, message: InputMessage, result: ProcessResult, table: Any
    ) -> None:
        """Counts what a new cluster lacks if the beginning of the topic had expired."""
        if (message.topic, message.partition) not in self._late or result.dead_letter is not None:
            return
        if begins_in_the_middle(message, result.before):
            reason = "the messages before expired before a worker first read the topic"
            place = format_place(message.topic, message.partition, message.offset)
            cause, cluster = Cause(place, message.time_ms), result.before.image.cluster
            await self._count_loss(cluster, topic, reason, cause, message.partition, table)

    async def lose_input(self, cluster: ClusterId, topic: Topic, reason: str, cause: Cause) -> None:
        """Counts that messages of an input topic are lost, which is read from its beginning."""
        state = self._state_of(cluster)
        sources = state.image.sources.with_restarted(topic.short_name)
        before = replace(state, image=replace(state.image, sources=sources))
        step = step_lost(before, topic.short_name, reason, cause, self._limits)
        await self._apply_step(before, step)

    async def lose_output(
        self, cluster: ClusterId, topic: Topic, reason: str, cause: Cause
    ) -> None:
        """Counts that what was published of a cluster on an output topic is lost."""
        before = self._state_of(cluster)
        step = step_lost_outputs(before, topic.short_name, reason, cause, self._limits)
        await self._apply_step(before, step)

    async def publish_again(
        self, cluster: ClusterId, outputs: Collection[Topic], now_ms: int
    ) -> None:
        """Publishes what a cluster has now on output topics that were made anew."""
        state = self._state_of(cluster)
        if STATE in outputs:
            self.dirty.add(cluster)
        messages = []
        if ALERTS in outputs:
            alerts = (alert for alerts in state.firing.values() for alert in alerts)
            messages += [(ALERTS, encode_output(alert)) for alert in alerts]
        if EPOCHS in outputs and state.image.features.revision:
            messages.append((EPOCHS, encode_output(snapshot(state.image, now_ms))))
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

    async def _apply_step(self, before: MonitorState, step: StepResult) -> None:
        """Applies what follows from no message."""
        partition = partition_of(before.image.cluster.encode(), self._bus.partitions)
        await self._apply(_writes(self._bus, ProcessResult(before, step)), partition, None)

    async def _count_loss(
        self,
        cluster: ClusterId,
        topic: Topic,
        reason: str,
        cause: Cause,
        partition: int,
        table: Any,
    ) -> None:
        before = self._state_of(cluster)
        step = step_lost(before, topic.short_name, reason, cause, self._limits)
        await self._apply(_writes(self._bus, ProcessResult(before, step)), partition, table)

    async def _process(self, topic: Topic, message: InputMessage, table: Any) -> None:
        began_s = self._monotonic()
        writes = self._judge(message)
        await self._apply(writes, message.partition, table)
        cluster = writes.result.before.image.cluster
        if cluster in self.states:  # a key alone makes no cluster
            self.last_seen[cluster, topic.short_name] = self._monotonic()
        await self._report_reversal(topic, message, writes.result.before, table)
        await self._report_late(topic, message, writes.result, table)
        self._metrics.observe(topic, writes.result.step, self._monotonic() - began_s)

    def _judge(self, message: InputMessage) -> "_Writes":
        """What a message leads to. Whatever is in it, the messages after it are processed too."""
        try:
            return _writes(self._bus, process(message, self._state_of, self._limits))
        except Exception as error:  # its content is foreign, and the judgement has no side effects
            place = format_place(message.topic, message.partition, message.offset)
            LOG.exception("%s: cannot be processed", place)
            reason = f"it cannot be processed: {type(error).__name__}: {error}"
            return _writes(self._bus, set_aside(message, reason, self._state_of, self._limits))

    def _state_of(self, cluster: ClusterId) -> MonitorState:
        return self.states.get(cluster) or MonitorState.of(cluster)

    async def _apply(self, writes: "_Writes", partition: int, table: Any) -> None:
        await self._publish(writes)
        await self._persist(writes, partition, table)

    async def _publish(self, writes: "_Writes") -> None:
        dead_letter = writes.result.dead_letter
        if dead_letter is not None:
            LOG.error("%s: %s: kept in the dead letters", dead_letter.location, dead_letter.reason)
        deliveries = [
            await self._publisher.send(topic, message) for topic, message in writes.messages
        ]
        for delivery in deliveries:
            await delivery

    async def _persist(self, writes: "_Writes", partition: int, table: Any) -> None:
        before, after = writes.result.before, writes.result.step.state
        if after is before:
            return
        # Without a message there is no table to write: it gets the rows from the changelog.
        for name, value in writes.rows if table is not None else ():
            key = name.encode()
            if value is not None:
                table[key] = value
            elif key in table:
                del table[key]
        await self._changelog.write(partition, writes.rows)
        cluster = after.image.cluster
        self.states[cluster] = after
        self.dirty.add(cluster)


class _Writes(NamedTuple):
    """What a message leads to, as it will be written: messages with their topics, and rows."""

    result: ProcessResult
    messages: list[tuple[str, Message]]
    rows: list[Row]


def _writes(bus: BusSettings, result: ProcessResult) -> _Writes:
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
    return _Writes(result, messages, rows)


def _size_of_row(row: Row) -> int:
    name, value = row
    return len(name.encode()) + len(value or b"")


def _input_message(message: Any) -> InputMessage:
    """The input message of a Faust message, whose timestamp is in seconds.

    Any producer may set it to anything: it is put between the years 1970 and 9999.
    """
    time_ms = min(max(round((message.timestamp or 0) * 1000), 0), LATEST_MS)
    position = (message.topic, message.partition, message.offset)
    return InputMessage(*position, time_ms, message.key, message.value)


def _place(message: Any) -> str:
    return format_place(message.topic, message.partition, message.offset)
