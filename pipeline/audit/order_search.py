"""Searches for an order of a cluster's messages in which the fold yields the live outputs.

Messages of one partition are ordered by their offsets, those of two topics are not: the worker
processed them as they arrived, the lake folds them by Kafka's time, and the outputs may differ
although both are right. The search folds the messages in orders that keep that of each topic, until
one yields exactly the live outputs, with the same content and in the same sequence. The time of an
output shows when the worker processed its cause, so one of the first orders is mostly the right
one.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import orjson
from immutables import Map

from featurewatch.controller.input_messages import InputMessage
from featurewatch.controller.monitor import MonitorState
from featurewatch.controller.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.pipeline.fold.messages import (
    ALERT,
    CHANGE,
    OPERATION,
    SNAPSHOT,
    fold_message,
    restore_state,
)

_LIVE: Final = (CHANGE, ALERT, SNAPSHOT, OPERATION)
_SKEW_MS: Final = 5_000
"""How far the clocks of sources and workers may differ."""


class LiveOutput(NamedTuple):
    """The content of a live output, and when it was first published with this content (ms).

    ``due``: gold has folded its cause, so a valid order must yield it.
    """

    content: Any
    published_ms: int
    due: bool


ProducedOutputs = Map[tuple[str, int], int]
"""The outputs that an order has yielded so far: (id, index of the content) to publish time (ms)."""


class TimedMessage(NamedTuple):
    """A message, and when the worker published its outputs (ms; None: unknown).

    ``settled``: its outputs have been published, or never will be.
    """

    message: InputMessage
    published_ms: int | None
    settled: bool


class QueuedMessage(NamedTuple):
    """A message of a topic, and when the worker may have processed it (ms).

    ``from_ms`` is the earliest time. ``until_ms`` is the latest time for a worker that was behind
    with the topic: when it published outputs of this message, or of the next message of the topic
    that has any.
    """

    message: InputMessage
    from_ms: int
    until_ms: int
    settled: bool


def queued(messages: Sequence[TimedMessage]) -> list[QueuedMessage]:
    """Returns the messages of one topic, in its order, with the bounds of their processing
    times."""
    queue, now_ms = [], 0
    for timed in messages:
        now_ms = max(now_ms, timed.message.time_ms, timed.published_ms or 0)
        queue.append(QueuedMessage(timed.message, now_ms, now_ms, timed.settled))
    next_published_ms: int | None = None
    for index in range(len(queue) - 1, -1, -1):
        times = [ms for ms in (next_published_ms, messages[index].published_ms) if ms is not None]
        next_published_ms = min(times, default=None)
        until_ms = max(queue[index].from_ms, next_published_ms or 0)
        queue[index] = queue[index]._replace(until_ms=until_ms)
    return queue


class _Step(NamedTuple):
    """One step of an order: the position in each topic, the state, the outputs so far, and the
    topics still to try next."""

    positions: tuple[int, ...]
    state: MonitorState
    produced: ProducedOutputs
    topics: Iterator[int]


_Key = Callable[[QueuedMessage], int]
"""A sort key: the message with the smallest value is tried first."""


class OrderSearch:
    """Tries the orders of a cluster's messages, one after the other.

    ``queues`` has the messages of each topic. ``live`` has the live outputs by their ids; an id may
    have several contents, since a log that went backwards and is read again repeats its records.

    The time of a message without outputs follows only from the outputs of other messages. So the
    search begins with the order of a worker that was never behind, and then tries that of a worker
    that was: the best first guess for one is far from right for the other.
    """

    def __init__(
        self,
        cluster: str,
        queues: Sequence[Sequence[QueuedMessage]],
        live: Mapping[str, Sequence[LiveOutput]],
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._start = restore_state(cluster, {})
        self._queues = queues
        self._live = live
        self._limits = limits
        self._times = sorted(
            output.published_ms for outputs in live.values() for output in outputs if output.due
        )

    def finds_order(self) -> bool:
        """Whether an order within the step budget yields exactly the live outputs."""
        # A valid order takes few corrections; the number of all orders is exponential.
        message_count = sum(map(len, self._queues))
        return self._finds(lambda queued: queued.from_ms, 10 * message_count) or self._finds(
            lambda queued: queued.until_ms, 4_000 + 60 * message_count
        )

    def _finds(self, key: _Key, budget: int) -> bool:
        """Whether at most ``budget`` steps lead to a valid order; ``key`` sorts the candidates."""
        start = (0,) * len(self._queues)
        path = [_Step(start, self._start.monitor, Map(), self._topics(start, key))]
        tried: dict[tuple[int, ...], list[tuple[MonitorState, ProducedOutputs]]] = {}
        while path:
            last = path[-1]
            for topic in last.topics:
                queued = self._queues[topic][last.positions[topic]]
                if self._is_late(queued, len(last.produced)):
                    continue
                budget -= 1
                if budget < 0:
                    return False
                positions = (
                    *last.positions[:topic],
                    last.positions[topic] + 1,
                    *last.positions[topic + 1 :],
                )
                before = replace(self._start, monitor=last.state)
                after, rows = fold_message(before, queued.message, self._limits)
                outputs = [(row.id, orjson.loads(row.value)) for row in rows if row.kind in _LIVE]
                produced = self._with(last.produced, outputs, queued)
                if produced is None or (after.monitor, produced) in tried.get(positions, ()):
                    continue
                tried.setdefault(positions, []).append((after.monitor, produced))
                topics = self._topics(positions, key)
                path.append(_Step(positions, after.monitor, produced, topics))
                break
            else:
                if len(last.produced) == len(self._times) and self._is_end(last.positions):
                    return True
                path.pop()
        return False

    def _topics(self, positions: tuple[int, ...], key: _Key) -> Iterator[int]:
        """The indices of the topics with messages left, in the order of their next messages."""
        left = [n for n, queue in enumerate(self._queues) if positions[n] < len(queue)]
        return iter(sorted(left, key=lambda n: key(self._queues[n][positions[n]])))

    def _is_end(self, positions: tuple[int, ...]) -> bool:
        return all(n == len(queue) for n, queue in zip(positions, self._queues, strict=True))

    def _is_late(self, queued: QueuedMessage, produced_count: int) -> bool:
        """Whether a message is newer than a live output that the order has not yielded yet."""
        return (
            produced_count < len(self._times)
            and queued.message.time_ms > self._times[produced_count] + _SKEW_MS
        )

    def _with(
        self,
        produced: ProducedOutputs,
        outputs: Sequence[tuple[str, Any]],
        queued: QueuedMessage,
    ) -> ProducedOutputs | None:
        """Adds the outputs of a message; None if they do not match the live ones.

        They match if every live output of an earlier time was yielded before. Repeated outputs are
        not counted again.
        """
        if any(id_ not in self._live for id_, _ in outputs):
            is_pending = not queued.settled and not any(id_ in self._live for id_, _ in outputs)
            return produced if is_pending else None
        added = []
        for id_, content in outputs:
            live = self._live[id_]
            index = next((n for n, output in enumerate(live) if output.content == content), None)
            if index is None:
                return None
            if live[index].due and (id_, index) not in produced:
                added.append(((id_, index), live[index].published_ms))
        if added and bisect_left(self._times, min(at for _, at in added)) > len(produced):
            return None
        return produced.update(added)
