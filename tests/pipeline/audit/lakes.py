"""Topics as sources and a worker leave them, without a bus: bronze for audits."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any, NamedTuple

from featurewatch.agents.timers import topic_of_source as topic_of_source
from featurewatch.controller.monitor import MonitorState, step
from featurewatch.pipeline.gold.query import GoldQuery
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import MESSAGES
from featurewatch.pipeline.run import run_once
from featurewatch.streams.codec.events import Message, encode
from featurewatch.streams.codec.outputs import Output, encode_output, topic_of
from featurewatch.streams.events import (
    Disagreement,
    Event,
    NodeAnswer,
    NodeSilent,
    SourceState,
    SourceStatus,
    ZnodeChange,
    ZnodeSnapshot,
)
from featurewatch.streams.topics import API_VERSIONS, METADATA_LOG, PREFIX, ZOOKEEPER, Topic
from featurewatch.streams.types import ClusterId
from featurewatch.tables.image.cluster import MessagePosition
from tests.pipeline.filling import EPOCH
from tests.simulation.world import World

START_MS = 1_750_000_000_000

TimedEvent = tuple[int, Topic, Event]
"""An event of a topic, and when it was published (ms)."""

Change = Callable[[Output, int], Iterable[tuple[Output, int]]]
"""What becomes of an output that is said at a time (ms)."""


def history(seed: int, steps: int = 25, start_ms: int = START_MS) -> list[TimedEvent]:
    """What the sources of a small cluster publish; its name is ``cluster-<seed>``."""
    found = []
    for event in World(Random(seed)).history(steps):
        moved: dict[str, Any] = {"cluster": ClusterId(f"cluster-{seed}")}
        for name in ("seen_ms", "append_ms"):
            if getattr(event, name, -1) >= 0:
                moved[name] = getattr(event, name) + start_ms
        event = replace(event, **moved)
        found.append((event.seen_ms, _topic(event), event))
    return sorted(found, key=lambda told: told[0])


def _topic(event: Event) -> Topic:
    if isinstance(event, SourceStatus):
        return topic_of_source(event.source)
    if isinstance(event, (NodeAnswer, NodeSilent, Disagreement)):
        return API_VERSIONS
    return ZOOKEEPER if isinstance(event, (ZnodeChange, ZnodeSnapshot)) else METADATA_LOG


def heartbeat(at_ms: int) -> TimedEvent:
    """A word of another cluster's source, by which the time goes on."""
    name, state = ClusterId("clock"), SourceState.FOLLOWING
    status = SourceStatus(name, "kraft", state, 5, 1, 6, 1, 1, "", at_ms)
    return at_ms, METADATA_LOG, status


class ReadEvent(NamedTuple):
    """An input as the worker reads it: where it stands, and when it was taken in (ms)."""

    offset: int
    timed: TimedEvent
    processed_ms: int


class Topics:
    """Messages with the offsets that they get, as rows of bronze."""

    def __init__(self) -> None:
        self._ends: Counter[str] = Counter()
        self._rows: list[tuple[Any, ...]] = []
        self._round = 0

    def add(self, name: str, message: Message, at_ms: int) -> int:
        """A message on the topic of a name; its offset."""
        offset = self._ends[name]
        self._ends[name] += 1
        time = EPOCH + timedelta(milliseconds=at_ms)
        place = (name, 0, offset, time, message.key, message.value, message.headers)
        self._rows.append((*place, time, time.date()))
        return offset

    def skip(self, topic: Topic, number: int = 1) -> None:
        """Messages that are gone."""
        self._ends[topic.name()] += number

    def publish(self, told: Iterable[TimedEvent], prefix: str = PREFIX) -> list[ReadEvent]:
        """Events as sources publish them; the worker takes each in a millisecond later."""
        return [
            ReadEvent(self.add(topic.name(prefix), encode(topic, event), at_ms), timed, at_ms + 1)
            for timed in told
            for at_ms, topic, event in [timed]
        ]

    def publish_output(self, output: Output, at_ms: int) -> None:
        """An output as the worker says it."""
        self.add(topic_of(output).name(), encode_output(output), at_ms)

    def into(self, lake: Lake) -> None:
        """Appends what was added since the last time, as one round of bronze."""
        self._round += 1
        found = [(*row[:8], self._round, row[8]) for row in self._rows]
        self._rows.clear()
        lake.append(MESSAGES, lake.session.createDataFrame(found, MESSAGES.ddl))


def work(reads: Iterable[ReadEvent]) -> Iterator[tuple[Output, int]]:
    """What a worker says that takes messages in, in the order given, each with the time (ms)."""
    states: dict[str, MonitorState] = {}
    for offset, (at_ms, topic, event), taken_ms in reads:
        state = states.get(event.cluster) or MonitorState.of(event.cluster)
        outcome = step(state, event, MessagePosition(topic.short_name, offset, at_ms))
        states[event.cluster] = outcome.state
        outputs: list[Output] = [*outcome.changes, *outcome.alerts]
        if outcome.snapshot is not None:
            outputs.append(outcome.snapshot)
        yield from ((output, taken_ms) for output in outputs)


def in_another_order(reads: list[ReadEvent], seed: int) -> list[ReadEvent]:
    """The same messages as a worker takes them that now and then is late with a topic.

    The messages of one topic keep their order.
    """
    chance = Random(seed)
    left: dict[str, deque[ReadEvent]] = {}
    for read in reads:
        left.setdefault(read.timed[1].short_name, deque()).append(read)
    now, found = reads[0].processed_ms, []
    while left:
        name = chance.choice([*left])
        for _ in range(chance.randint(1, 6)):
            if name in left:
                read = left[name].popleft()
                now = max(now + 1, read.processed_ms)
                found.append(read._replace(processed_ms=now))
                if not left[name]:
                    del left[name]
    return found


def with_crashes(topics: Topics, seed: int) -> tuple[list[ReadEvent], list[tuple[Output, int]]]:
    """The messages of a history, and what is said of them with the times (ms), after crashes.

    One message in ten was published again by its source, and one in ten said again by the worker,
    which is late with a topic now and then.
    """
    chance = Random(seed)

    def times() -> int:
        return 2 if chance.random() < 0.1 else 1

    reads = topics.publish(
        [timed_event for timed in history(seed) for timed_event in [timed] * times()]
    )
    worked = work(in_another_order(reads, seed))
    return reads, [one for said in worked for one in [said] * times()]


def fold_gold(lake: Lake) -> None:
    """Folds what bronze has."""
    run_once(lake, [GoldQuery(lake).writer])
