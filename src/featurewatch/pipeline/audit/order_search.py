"""Searches for an order of a cluster's messages in which the fold yields the live outputs.

Messages of one partition are ordered by their offsets, those of two topics are not: the worker
processed them as they arrived, the lake folds them by Kafka's time, and the outputs may differ
although both are right. The search folds the messages in orders that keep that of each topic, until
one yields exactly the live outputs, with the same content and in the same sequence. The time of an
output shows when the worker processed its cause, so one of the first orders is mostly the right
one. Orders with the same beginning share it: it is folded once.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson
from immutables import Map

from featurewatch.monitor.input_messages import InputMessage, decode_message, process
from featurewatch.monitor.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.monitor.step import MonitorState
from featurewatch.pipeline.fold.messages import encoded_output
from featurewatch.streams.codec.outputs import Output
from featurewatch.streams.types import ClusterId

_SKEW_MS: Final = 5_000
"""How far the clocks of sources and workers may differ."""


def max_folds(message_count: int) -> int:
    """The messages that a search folds at most, of a cluster with so many messages.

    A valid order takes few corrections, while the number of all orders is exponential. Of a small
    cluster many are tried; of one with a million messages each takes minutes, so beyond the first
    turn of both preferences there are a million folds.
    """
    return min(4_000 + 70 * message_count, 1_000_000 + 4 * message_count)


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


class _OrderNode:
    """The result of an order: the position in each topic, the state, and the outputs so far.

    ``successors`` has the node after the next message of each topic that was tried (None: its
    outputs do not match). ``is_dead``: no valid order leads through this node.
    """

    __slots__ = ("is_dead", "positions", "produced", "state", "successors")

    def __init__(
        self, positions: tuple[int, ...], state: MonitorState, produced: ProducedOutputs
    ) -> None:
        self.positions = positions
        self.state = state
        self.produced = produced
        self.successors: dict[int, _OrderNode | None] = {}
        self.is_dead = False


_Key = Callable[[QueuedMessage], int]
"""A sort key: the message with the smallest value is tried first."""


class OrderSearch:
    """Tries the orders of a cluster's messages, one after the other.

    ``queues`` has the messages of each topic. ``live`` has the live outputs by their ids; an id may
    have several contents, since a log that went backwards and is read again repeats its records.

    The time of a message without outputs follows only from the outputs of other messages. The
    search therefore prefers, in turns, the order of a worker that was behind and that of one that
    never was: the best first guess for one is far from right for the other. Later turns use what
    earlier ones have folded.
    """

    def __init__(
        self,
        cluster: str,
        queues: Sequence[Sequence[QueuedMessage]],
        live: Mapping[str, Sequence[LiveOutput]],
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._queues = queues
        self._events = [[decode_message(queued.message) for queued in queue] for queue in queues]
        self._live = live
        self._limits = limits
        self._times = sorted(
            output.published_ms for outputs in live.values() for output in outputs if output.due
        )
        start = MonitorState.of(ClusterId(cluster))
        self._start = _OrderNode((0,) * len(queues), start, Map())
        self._nodes: dict[tuple[int, ...], list[_OrderNode]] = {}
        self._folded_count = 0

    def finds_order(self) -> bool | None:
        """Whether an order of the messages yields exactly the live outputs.

        None: neither an order nor that there is none was found in `max_folds` of messages.
        """
        message_count = sum(map(len, self._queues))
        budget, max_budget = 2 * message_count, max_folds(message_count)
        while self._folded_count < max_budget:
            for key in (_until_ms, _from_ms):
                left = min(budget, max_budget - self._folded_count)
                if (is_found := self._finds(key, left)) is not None:
                    return is_found
            budget *= 2
        return None

    def _finds(self, key: _Key, budget: int) -> bool | None:
        """Whether there is a valid order (None: not known after folding ``budget`` messages).

        ``key`` sorts the candidates for the next message.
        """
        last = self._folded_count + budget
        path = [(self._start, self._topics(self._start, key))]
        while path:
            node, topics = path[-1]
            for topic in topics:
                if topic not in node.successors and self._folded_count >= last:
                    return None
                after = self._successor(node, topic)
                if after is not None and not after.is_dead:
                    path.append((after, self._topics(after, key)))
                    break
            else:
                if len(node.produced) == len(self._times) and self._is_end(node.positions):
                    return True
                node.is_dead = True
                path.pop()
        return False

    def _successor(self, node: _OrderNode, topic: int) -> _OrderNode | None:
        """The node after a topic's next message (None: no valid order continues with it)."""
        if topic not in node.successors:
            node.successors[topic] = self._folded(node, topic)
        return node.successors[topic]

    def _folded(self, node: _OrderNode, topic: int) -> _OrderNode | None:
        at = node.positions[topic]
        queued = self._queues[topic][at]
        if self._is_late(queued, len(node.produced)):
            return None
        self._folded_count += 1
        event = self._events[topic][at]
        step = process(queued.message, lambda _: node.state, self._limits, event).step
        produced = self._with(node.produced, [*map(_content, step.outputs)], queued)
        if produced is None:
            return None
        positions = (*node.positions[:topic], at + 1, *node.positions[topic + 1 :])
        reached = self._nodes.setdefault(positions, [])
        for other in reached:
            if other.state == step.state and other.produced == produced:
                return other
        reached.append(_OrderNode(positions, step.state, produced))
        return reached[-1]

    def _topics(self, node: _OrderNode, key: _Key) -> Iterator[int]:
        """The indices of the topics with messages left, in the order of their next messages."""
        left = [n for n, queue in enumerate(self._queues) if node.positions[n] < len(queue)]
        return iter(sorted(left, key=lambda n: key(self._queues[n][node.positions[n]])))

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


def _until_ms(queued: QueuedMessage) -> int:
    return queued.until_ms


def _from_ms(queued: QueuedMessage) -> int:
    return queued.from_ms


def _content(output: Output) -> tuple[str, Any]:
    """The id and the content of an output, as on its topic."""
    row = encoded_output(output)
    return row.id, orjson.loads(row.value)
