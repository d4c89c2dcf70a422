"""A year of a source on an input topic that keeps a week: its size, and what new readers learn."""

import random
from collections import deque
from typing import NamedTuple

import pytest

from featurewatch.streams.codec.events import encode
from featurewatch.streams.events import Event, SourceStatus
from featurewatch.streams.source_shell import RESYNC_INTERVAL_MS
from featurewatch.streams.topics import INPUTS, METADATA_LOG
from featurewatch.tables.fold.fold import fold
from featurewatch.tables.image.cluster import ClusterImage
from tests.plugins.nightly import case_count
from tests.simulation import records as r
from tests.simulation.records import MV, NEW, OLD

MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS
BEAT_MS = 10 * MINUTE_MS
BEATS = BEAT_MS // 3000
"""A heartbeat here stands for those of ten minutes, one each three seconds."""

RETENTION_MS = int(METADATA_LOG.config["retention.ms"])
SEGMENT_MS = int(METADATA_LOG.config["segment.ms"])


class Kept(NamedTuple):
    """A message on the topic, with the size of all that it stands for."""

    at_ms: int
    event: Event
    size: int


class YearOfASource:
    """A cluster that changes at random, and its topic: retention deletes whole segments."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_ms = 0
        self.topic: deque[Kept] = deque()
        self.size = self.largest = self.written = 0
        self.image = ClusterImage(r.CLUSTER)
        self.offset = 0
        self.level = 20
        self.brokers: set[int] = set()
        self.publish(r.commit(0, r.leader_change(3, [1, 2, 3])))

    def publish(self, event: Event) -> None:
        """The source publishes, and a reader that was always there folds."""
        size = encode(METADATA_LOG, event).size * (BEATS if isinstance(event, SourceStatus) else 1)
        self.topic.append(Kept(self.now_ms, event, size))
        self.size += size
        self.written += size
        self.image, _ = fold(self.image, event)

    def trim(self) -> None:
        """Deletes the segments whose newest message is too old."""
        while self.topic:
            segment = self.topic[0].at_ms // SEGMENT_MS
            if (segment + 1) * SEGMENT_MS > self.now_ms - RETENTION_MS:
                break
            self.size -= self.topic.popleft().size
        self.largest = max(self.largest, self.size)

    def change(self) -> None:
        """One committed change."""
        self.offset += 1
        node = self.random.randrange(1, 30)
        match self.random.randrange(3):
            case 0:
                self.level = self.random.randrange(15, 26)
                self.publish(r.commit(self.offset, r.level(MV, self.level)))
            case 1 if node in self.brokers:
                self.brokers.remove(node)
                self.publish(r.commit(self.offset, r.unregister(node)))
            case _:
                self.brokers.add(node)
                ranges = self.random.choice((OLD, NEW))
                self.publish(r.commit(self.offset, r.register(node, ranges, epoch=self.offset)))

    def resync(self) -> None:
        """The whole state again: a snapshot and, as it is a moment old, a change after it."""
        image, end = self.image, self.offset + 1
        nodes = [
            r.register(key.node_id, node.capabilities.ranges, epoch=node.epoch)
            for key, node in image.nodes.nodes.items()
        ]
        self.publish(r.resync(seen_ms=self.now_ms))
        self.publish(r.chunk(end, 0, r.level(MV, self.level), *nodes, last=True))
        self.offset = end
        self.change()

    def run(self) -> None:
        """Ten minutes."""
        self.now_ms += BEAT_MS
        if self.random.random() < 0.01:
            self.change()
        if self.now_ms % RESYNC_INTERVAL_MS == 0:
            self.resync()
        self.publish(r.following(self.offset, seen_ms=self.now_ms))
        self.trim()

    def new_reader(self) -> ClusterImage:
        """The state of a reader that begins with the first message that is left."""
        image = ClusterImage(r.CLUSTER)
        for kept in self.topic:
            image, _ = fold(image, kept.event)
        return image


@pytest.mark.parametrize("seed", range(case_count(10)))
def test_a_year_stays_as_large_as_a_week(seed: int) -> None:
    """Without retention a year would be forty times as much; a reader that begins any day learns
    the same cluster."""
    world = YearOfASource(seed)
    for day in range(1, 366):
        for _ in range(DAY_MS // BEAT_MS):
            world.run()
        if day % 15 == 0:
            late = world.new_reader()
            assert late.ready
            assert late.features.levels == world.image.features.levels
            assert {k: n.capabilities for k, n in late.nodes.nodes.items()} == {
                k: n.capabilities for k, n in world.image.nodes.nodes.items()
            }
            assert set(late.nodes.nodes) == {*world.image.nodes.nodes}
            assert {key.node_id for key in late.nodes.nodes} == world.brokers
    days_kept = (RETENTION_MS + 2 * SEGMENT_MS) / DAY_MS
    assert world.largest <= world.written / 365 * days_kept * 1.05
    assert world.written > 40 * world.largest


def test_every_input_topic_has_a_retention_of_several_resyncs() -> None:
    """A reader that is down for some days finds a whole state, whichever topic it reads."""
    for topic in INPUTS:
        assert int(topic.config["retention.ms"]) >= 5 * RESYNC_INTERVAL_MS
        assert int(topic.config["segment.ms"]) <= RESYNC_INTERVAL_MS
