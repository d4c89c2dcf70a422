"""Bronze for audits: topics as sources and a worker leave them, without a bus."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any, NamedTuple

from featurewatch.monitor.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.monitor.step import MonitorState, step
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.streams.codec.events import Message, encode
from featurewatch.streams.codec.outputs import Output, encode_output, topic_of
from featurewatch.streams.events import (
    Disagreement,
    Event,
    NodeAnswer,
    NodeSilent,
    QuorumStatus,
    SourceState,
    SourceStatus,
    ZnodeChange,
    ZnodeSnapshot,
)
from featurewatch.streams.topics import (
    API_VERSIONS,
    INPUT_OF_SOURCE,
    METADATA_LOG,
    PREFIX,
    ZOOKEEPER,
    Topic,
)
from featurewatch.streams.types import ClusterId
from featurewatch.tables.image.sources import MessagePosition
from tests.pipeline.filling import EPOCH, append_messages
from tests.simulation.world import World

START_MS = 1_750_000_000_000

SourceEvent = tuple[int, Topic, Event]
"""An event with its topic and its publish time (ms)."""

Change = Callable[[Output, int], Iterable[tuple[Output, int]]]
"""Maps an output and its publish time (ms) to the outputs that are published instead."""


def history(
    seed: int, steps: int = 25, start_ms: int = START_MS, leaps_ms: Sequence[int] = ()
) -> list[SourceEvent]:
    """The events of a small cluster named ``cluster-<seed>``, with topics and times, in order.

    ``leaps_ms`` are those of `World`.
    """
    events = []
    for event in World(Random(seed), leaps_ms=leaps_ms).history(steps):
        fields: dict[str, Any] = {"cluster": ClusterId(f"cluster-{seed}")}
        for name in ("seen_ms", "append_ms"):
            if getattr(event, name, -1) >= 0:
                fields[name] = getattr(event, name) + start_ms
        event = replace(event, **fields)
        events.append((event.seen_ms, _topic(event), event))
    return sorted(events, key=lambda source_event: source_event[0])


def _topic(event: Event) -> Topic:
    if isinstance(event, SourceStatus):
        return INPUT_OF_SOURCE[event.source]
    if isinstance(event, (NodeAnswer, NodeSilent, Disagreement, QuorumStatus)):
        return API_VERSIONS
    return ZOOKEEPER if isinstance(event, (ZnodeChange, ZnodeSnapshot)) else METADATA_LOG


def heartbeat(at_ms: int) -> SourceEvent:
    """A heartbeat of another cluster's source, which advances the newest time in bronze."""
    name, state = ClusterId("clock"), SourceState.FOLLOWING
    status = SourceStatus(name, "kraft", state, 5, 1, 6, 1, 1, "", at_ms)
    return at_ms, METADATA_LOG, status


class Read(NamedTuple):
    """An input as the worker reads it: its offset, and when it was processed (ms)."""

    offset: int
    source_event: SourceEvent
    processed_ms: int


class Topics:
    """Messages with their offsets, as rows of bronze."""

    def __init__(self) -> None:
        self._ends: Counter[str] = Counter()
        self._rows: list[tuple[Any, ...]] = []
        self._round = 0

    def add(self, name: str, message: Message, at_ms: int) -> int:
        """Adds a message to the named topic and returns its offset."""
        offset = self._ends[name]
        self._ends[name] += 1
        time = EPOCH + timedelta(milliseconds=at_ms)
        position = (name, 0, offset, time, message.key, message.value, message.headers)
        self._rows.append((*position, time, time.date()))
        return offset

    def skip(self, topic: Topic, number: int = 1) -> None:
        """Skips offsets, as if their messages were lost."""
        self._ends[topic.name()] += number

    def publish(self, source_events: Iterable[SourceEvent], prefix: str = PREFIX) -> list[Read]:
        """Adds events as their sources publish them; the worker processes each a millisecond
        later."""
        return [
            Read(self.add(topic.name(prefix), encode(topic, event), at_ms), source_event, at_ms + 1)
            for source_event in source_events
            for at_ms, topic, event in [source_event]
        ]

    def publish_output(self, output: Output, at_ms: int) -> None:
        """Adds an output as the worker publishes it."""
        self.add(topic_of(output).name(), encode_output(output), at_ms)

    def into(self, lake: Lake) -> None:
        """Appends the messages added since the last call, as one round of bronze."""
        self._round += 1
        round_rows = [(*row[:8], self._round, row[8]) for row in self._rows]
        self._rows.clear()
        append_messages(lake, round_rows)


def work(reads: Iterable[Read], limits: Limits = DEFAULT_LIMITS) -> Iterator[tuple[Output, int]]:
    """The outputs of a worker that processes messages in the given order, each with its time
    (ms)."""
    states: dict[str, MonitorState] = {}
    for offset, (at_ms, topic, event), processed_ms in reads:
        state = states.get(event.cluster) or MonitorState.of(event.cluster)
        position = MessagePosition(topic.short_name, offset, at_ms)
        outcome = step(state, event, position, limits)
        states[event.cluster] = outcome.state
        yield from ((output, processed_ms) for output in outcome.outputs)


def in_another_order(reads: list[Read], seed: int) -> list[Read]:
    """The same messages in the order of a worker that is sometimes late with a topic.

    The messages of one topic keep their order.
    """
    random = Random(seed)
    left: dict[str, deque[Read]] = {}
    for read in reads:
        left.setdefault(read.source_event[1].short_name, deque()).append(read)
    now_ms, reordered = reads[0].processed_ms, []
    while left:
        name = random.choice([*left])
        for _ in range(random.randint(1, 6)):
            if name in left:
                read = left[name].popleft()
                now_ms = max(now_ms + 1, read.processed_ms)
                reordered.append(read._replace(processed_ms=now_ms))
                if not left[name]:
                    del left[name]
    return reordered


def with_crashes(
    topics: Topics, seed: int, leaps_ms: Sequence[int] = ()
) -> tuple[list[Read], list[tuple[Output, int]]]:
    """The messages of a history, and their outputs with times (ms), with duplicates after crashes.

    A source published one message in ten again, and the worker one output in ten; the worker is
    sometimes late with a topic.
    """
    random = Random(seed)

    def times() -> int:
        return 2 if random.random() < 0.1 else 1

    events = history(seed, leaps_ms=leaps_ms)
    reads = topics.publish([copy for event in events for copy in [event] * times()])
    outputs = work(in_another_order(reads, seed))
    return reads, [copy for output in outputs for copy in [output] * times()]
