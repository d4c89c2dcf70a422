"""Takes in events and says what follows from them: the shell around `controller.monitor.step`.

For each message, in this order: decide (pure), say (and wait until the bus has it), keep (the rows,
in order). A crash between any two of them leads to the same event again, and what is then said
again has the same keys.
"""

import asyncio
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from featurewatch.agents.at_least_once import AtLeastOnceApp, OffsetTracker, SkippedOffsetsError
from featurewatch.agents.metrics import WorkerMetrics
from featurewatch.controller.monitor import MonitorState, StepResult, step, step_unreadable
from featurewatch.controller.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.controller.rows import rows_of_step, states_of_rows
from featurewatch.streams.bus import BusSettings, Publisher
from featurewatch.streams.codec.events import MalformedEventError, Message, decode
from featurewatch.streams.codec.outputs import Output, encode_output, topic_of
from featurewatch.streams.events import DeadLetter
from featurewatch.streams.topics import DEAD_LETTERS, INPUTS, Topic
from featurewatch.streams.types import ClusterId
from featurewatch.tables.image.cluster import MessagePosition

LOG: Final = logging.getLogger("featurewatch.worker")


class EventProcessor:
    """The states of all clusters whose partitions this worker owns, and the way to the bus."""

    def __init__(
        self,
        app: AtLeastOnceApp,
        bus: BusSettings,
        publisher: Publisher,
        changelog: str,
        meters: WorkerMetrics,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.states: dict[ClusterId, MonitorState] = {}
        self.last_seen: dict[tuple[ClusterId, str], float] = {}
        """When each cluster was last heard of on an input topic, which is called by its short name,
        on the monotonic clock, in seconds."""
        self.dirty: set[ClusterId] = set()
        """The clusters whose newest state has not been published."""
        self._bus = bus
        self._publisher = publisher
        self._app = app
        self._ledger: OffsetTracker = app.ledger
        self._changelog = changelog
        self._meters = meters
        self._limits = limits
        # Agents of different topics share the states: one event at a time.
        self._turn = asyncio.Lock()

    def restore(
        self, rows: Iterable[tuple[bytes, bytes]], owned: Callable[[ClusterId], bool]
    ) -> None:
        """Takes up the rows of a table that was just recovered, for the clusters owned now."""
        self._ledger.reset()
        found = states_of_rows((key.decode(), value) for key, value in rows)
        self.states.clear()
        self.states.update((name, state) for name, state in found.items() if owned(name))
        everywhere = ((name, topic.short_name) for name in self.states for topic in INPUTS)
        self.last_seen = dict.fromkeys(everywhere, time.monotonic())
        self.dirty = set(self.states)
        nodes = sum(len(state.image.nodes) for state in self.states.values())
        LOG.info("recovered %d clusters with %d nodes", len(self.states), nodes)

    async def process(self, topic: Topic, event: Any, table: Any) -> None:
        """Takes in one message of an input topic, whatever is in it.

        Anything unexpected ends the process at once, before the offset can be committed.
        """
        finished = False
        try:
            async with self._turn:
                if await self._is_due(event.message):
                    await self._take(topic, event.message, table)
                    self._ledger.mark_processed(event.message.tp, event.message.offset)
            finished = True
        except asyncio.CancelledError:
            raise
        except BaseException:
            LOG.exception("stopping: %s", _place(event.message))
            exit_now()
        finally:
            if not finished:
                self._ledger.fail()

    async def _is_due(self, message: Any) -> bool:
        """Whether a message has still to be worked on; false: it was finished before.

        Raises:
            MissedError: Messages before it were passed over, and the topic still has them.
        """
        expected = self._ledger.next_offset(message.tp)
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

    async def _take(self, topic: Topic, message: Any, table: Any) -> None:
        began = time.perf_counter()
        try:
            event = decode(topic, message.value, message.key)
        except MalformedEventError as error:
            before, outcome = await self._unreadable(topic, message, str(error))
        else:
            assert not isinstance(event, DeadLetter)  # noqa: S101 - not on input topics
            before = self._state(event.cluster, topic)
            outcome = step(before, event, _delivery(topic, message), self._limits)
        await self._say(outcome)
        await self._keep(before, outcome, message.partition, table)
        self._meters.observe(topic, outcome, time.perf_counter() - began)

    def _state(self, cluster: ClusterId, topic: Topic) -> MonitorState:
        self.last_seen[cluster, topic.short_name] = time.monotonic()
        return self.states.get(cluster) or MonitorState.of(cluster)

    async def _unreadable(
        self, topic: Topic, message: Any, reason: str
    ) -> tuple[MonitorState, StepResult]:
        key = message.key or b""
        before = self._state(ClusterId(key.decode(errors="replace") or "unknown"), topic)
        place, delivery = _place(message), _delivery(topic, message)
        LOG.error("%s: %s: kept in the dead letters", place, reason)
        cluster = before.image.cluster
        letter = DeadLetter(cluster, place, reason, message.value or b"", delivery.time_ms)
        await (await self._publisher.publish(DEAD_LETTERS, letter))
        return before, step_unreadable(before, place, reason, delivery, self._limits)

    async def _say(self, outcome: StepResult) -> None:
        outputs: list[Output] = [*outcome.changes, *outcome.alerts]
        if outcome.snapshot is not None:
            outputs.append(outcome.snapshot)
        sent = [
            await self._publisher.send(self._bus.topic(topic_of(output)), encode_output(output))
            for output in outputs
        ]
        for delivery in sent:
            await delivery

    async def _keep(
        self, before: MonitorState, outcome: StepResult, partition: int, table: Any
    ) -> None:
        if outcome.state is before:
            return
        for name, value in rows_of_step(before, outcome):
            key = name.encode()
            if value is not None:
                table[key] = value
            elif key in table:
                del table[key]
            await self._publisher.send(self._changelog, Message(key, value, []), partition)
        cluster = outcome.state.image.cluster
        self.states[cluster] = outcome.state
        self.dirty.add(cluster)


def exit_now() -> None:
    """Ends the process without Faust's orderly stop, which would commit what was not finished."""
    logging.shutdown()
    sys.stderr.flush()
    os._exit(70)  # EX_SOFTWARE


def _delivery(topic: Topic, message: Any) -> MessagePosition:
    return MessagePosition(topic.short_name, message.offset, round(message.timestamp * 1000))


def _place(message: Any) -> str:
    return f"{message.topic} partition {message.partition} offset {message.offset}"
