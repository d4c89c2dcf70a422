"""Whether there is an order of a cluster's messages in which the fold says what was said live.

Messages of one topic have an order, those of two topics have none: the worker took them as they
came to it, the lake folds them by Kafka's time, and what follows may differ where both are right.
So messages are folded in orders that keep that of each topic, until one says all that was said
live, word by word and one after the other, and nothing else. When the worker said something shows
when it took in what caused that; so one of the first orders is mostly the right one.
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
from featurewatch.pipeline.fold.messages import ALERT, CHANGE, SNAPSHOT, fold_message, restore_state

_SAID: Final = (CHANGE, ALERT, SNAPSHOT)
_SKEW_MS: Final = 5_000
"""How far the clocks of sources and workers may be apart."""


class LiveOutput(NamedTuple):
    """What was said live under an id, and when it was said with these words the first time (ms).

    ``due``: gold has folded its cause, so that an order has to come to it.
    """

    content: Any
    said_ms: int
    due: bool


ProducedOutputs = Map[tuple[str, int], int]
"""What an order has come to so far: sayings by their id and number, with their time (ms)."""


class TimedMessage(NamedTuple):
    """A message, and when the worker said what followed from it (ms; None: nothing is known).

    ``settled``: what follows from it has been said, or never will be.
    """

    message: InputMessage
    said_ms: int | None
    settled: bool


class QueuedMessage(NamedTuple):
    """A message of a topic, and when the worker may have taken it in (ms).

    It did at ``from_ms`` at the earliest. If it was behind with the topic, it did by ``until_ms``,
    when it spoke of this message or of the next one of the topic of which it spoke at all.
    """

    message: InputMessage
    from_ms: int
    until_ms: int
    settled: bool


def queued(messages: Sequence[TimedMessage]) -> list[QueuedMessage]:
    """The messages of one topic, in its order, with the times that follow from each other."""
    found, now = [], 0
    for one in messages:
        now = max(now, one.message.time_ms, one.said_ms or 0)
        found.append(QueuedMessage(one.message, now, now, one.settled))
    spoken: int | None = None
    for n in range(len(found) - 1, -1, -1):
        times = [ms for ms in (spoken, messages[n].said_ms) if ms is not None]
        spoken = min(times, default=None)
        found[n] = found[n]._replace(until_ms=max(found[n].from_ms, spoken or 0))
    return found


class _Step(NamedTuple):
    """How far an order has come: the place in each topic, what is known then, what was said."""

    at: tuple[int, ...]
    known: MonitorState
    said: ProducedOutputs
    heads: Iterator[int]


_Key = Callable[[QueuedMessage], int]
"""What is less for the message to try first."""


class OrderSearch:
    """The orders of a cluster's messages, tried one after the other.

    ``live`` has the sayings by their ids. An id may be said with other words later on: a log that
    is read again after it went backwards tells its records anew.

    When a message was taken in of which nothing was said shows only in what was said of others.
    The search begins with the order of a worker that was never behind, and then with that of one
    that was: what is right at first sight for the one is far away for the other.
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
        self._times = sorted(one.said_ms for each in live.values() for one in each if one.due)

    def finds_order(self) -> bool:
        """Whether an order was found that says what was said live."""
        # An order is found at once or after some corrections; a search through all is endless.
        number = sum(map(len, self._queues))
        return self._finds(lambda one: one.from_ms, 10 * number) or self._finds(
            lambda one: one.until_ms, 4_000 + 60 * number
        )

    def _finds(self, key: _Key, budget: int) -> bool:
        """Whether so many steps lead to such an order, each to the message first that is least."""
        start = (0,) * len(self._queues)
        path = [_Step(start, self._start.monitor, Map(), self._heads(start, key))]
        tried: dict[tuple[int, ...], list[tuple[MonitorState, ProducedOutputs]]] = {}
        while path:
            last = path[-1]
            for head in last.heads:
                one = self._queues[head][last.at[head]]
                if self._is_late(one, len(last.said)):
                    continue
                budget -= 1
                if budget < 0:
                    return False
                now = (*last.at[:head], last.at[head] + 1, *last.at[head + 1 :])
                before = replace(self._start, monitor=last.known)
                after, outputs = fold_message(before, one.message, self._limits)
                found = [(out.id, orjson.loads(out.value)) for out in outputs if out.kind in _SAID]
                said = self._with(last.said, found, one)
                if said is None or (after.monitor, said) in tried.get(now, ()):
                    continue
                tried.setdefault(now, []).append((after.monitor, said))
                path.append(_Step(now, after.monitor, said, self._heads(now, key)))
                break
            else:
                if len(last.said) == len(self._times) and self._is_end(last.at):
                    return True
                path.pop()
        return False

    def _heads(self, at: tuple[int, ...], key: _Key) -> Iterator[int]:
        """The topics with messages left, the one first whose next message is least."""
        left = [n for n, queue in enumerate(self._queues) if at[n] < len(queue)]
        return iter(sorted(left, key=lambda n: key(self._queues[n][at[n]])))

    def _is_end(self, at: tuple[int, ...]) -> bool:
        return all(n == len(queue) for n, queue in zip(at, self._queues, strict=True))

    def _is_late(self, one: QueuedMessage, said: int) -> bool:
        """Whether a message came after something was said that has not come out yet."""
        return said < len(self._times) and one.message.time_ms > self._times[said] + _SKEW_MS

    def _with(
        self, said: ProducedOutputs, found: Sequence[tuple[str, Any]], one: QueuedMessage
    ) -> ProducedOutputs | None:
        """What was said after a message too; None if that is not what was said live.

        It is if all that was said before it has come out. What is said again has been heard.
        """
        if any(id_ not in self._live for id_, _ in found):
            unsaid = not one.settled and not any(id_ in self._live for id_, _ in found)
            return said if unsaid else None
        news = []
        for id_, content in found:
            sayings = self._live[id_]
            number = next((n for n, each in enumerate(sayings) if each.content == content), None)
            if number is None:
                return None
            if sayings[number].due and (id_, number) not in said:
                news.append(((id_, number), sayings[number].said_ms))
        if news and bisect_left(self._times, min(at for _, at in news)) > len(said):
            return None
        return said.update(news)
