"""Runs `controller.input_messages.process` on messages, publishes outputs, persists states.

In this order: process (pure), publish (and wait until the bus has all outputs), persist (the rows,
in order). After a crash between any two of these the same message is processed again, and outputs
that are published again have the same keys.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final

from featurewatch.agents.at_least_once import AtLeastOnceApp, OffsetTracker, SkippedOffsetsError
from featurewatch.agents.metrics import WorkerMetrics
from featurewatch.controller.input_messages import (
    InputMessage,
    ProcessResult,
    format_place,
    process,
)
from featurewatch.controller.monitor import MonitorState, StepResult
from featurewatch.controller.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.controller.rows import rows_of_step, states_of_rows
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.events import Message
from featurewatch.streams.codec.outputs import encode_output, topic_of
from featurewatch.streams.topics import DEAD_LETTERS, INPUTS, Topic
from featurewatch.streams.types import ClusterId

LOG: Final = logging.getLogger("featurewatch.worker")


class EventProcessor:
    """Holds the states of all clusters whose partitions this worker owns."""

    def __init__(
        self,
        app: AtLeastOnceApp,
        bus: BusSettings,
        publisher: Publisher,
        changelog: str,
        metrics: WorkerMetrics,
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
        self._monotonic = monotonic
        self._limits = limits
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

    async def process(self, topic: Topic, event: Any, table: Any) -> None:
        """Processes one message of an input topic, whatever it contains.

        An unexpected error ends the process at once, before the offset can be committed.
        """
        finished = False
        try:
            async with self._lock:
                if await self._is_due(event.message):
                    await self._process(topic, _input_message(event.message), table)
                    self._tracker.mark_processed(event.message.tp, event.message.offset)
            finished = True
        except asyncio.CancelledError:
            raise
        except BaseException:
            LOG.exception("stopping: %s", _place(event.message))
            exit_now()
        finally:
            if not finished:
                self._tracker.fail()

    async def _is_due(self, message: Any) -> bool:
        """Whether a message is still to be processed; false: it was processed before.

        Raises:
            SkippedOffsetsError: Messages before it were skipped, and the topic still has them.
        """
        expected = self._tracker.next_offset(message.tp)
        if expected is None:
            expected = self._app.committed(message.tp)
        if expected is None:
            expected = await self._app.log_start(message.tp)
        if message.offset <= expected:
            return bool(message.offset == expected)
        if await self._app.log_start(message.tp) < message.offset:
            raise SkippedOffsetsError(f"offset {expected} was due and did not come")
        LOG.error("%s: the messages since %d expired unread", _place(message), expected)
        return True

    async def _process(self, topic: Topic, message: InputMessage, table: Any) -> None:
        began_s = self._monotonic()
        result = process(message, self._state_of, self._limits)
        cluster = result.before.image.cluster
        self.last_seen[cluster, topic.short_name] = self._monotonic()
        await self._publish(result)
        await self._persist(result.before, result.step, message.partition, table)
        self._metrics.observe(topic, result.step, self._monotonic() - began_s)

    def _state_of(self, cluster: ClusterId) -> MonitorState:
        return self.states.get(cluster) or MonitorState.of(cluster)

    async def _publish(self, result: ProcessResult) -> None:
        dead_letter = result.dead_letter
        if dead_letter is not None:
            LOG.error("%s: %s: kept in the dead letters", dead_letter.location, dead_letter.reason)
            await (await self._publisher.publish(DEAD_LETTERS, dead_letter))
        deliveries = [
            await self._publisher.send(self._bus.topic(topic_of(output)), encode_output(output))
            for output in result.step.outputs
        ]
        for delivery in deliveries:
            await delivery

    async def _persist(
        self, before: MonitorState, result: StepResult, partition: int, table: Any
    ) -> None:
        if result.state is before:
            return
        for name, value in rows_of_step(before, result):
            key = name.encode()
            if value is not None:
                table[key] = value
            elif key in table:
                del table[key]
            await self._publisher.send(self._changelog, Message(key, value, []), partition)
        cluster = result.state.image.cluster
        self.states[cluster] = result.state
        self.dirty.add(cluster)


def exit_now() -> None:
    """Ends the process without Faust's orderly stop, which would commit unprocessed messages."""
    logging.shutdown()
    sys.stderr.flush()
    os._exit(70)  # EX_SOFTWARE


def _input_message(message: Any) -> InputMessage:
    """The input message of a Faust message, whose timestamp is in seconds."""
    time_ms = round(message.timestamp * 1000)
    position = (message.topic, message.partition, message.offset)
    return InputMessage(*position, time_ms, message.key, message.value)


def _place(message: Any) -> str:
    return format_place(message.topic, message.partition, message.offset)
