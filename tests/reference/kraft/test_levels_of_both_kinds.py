"""Controllers of both kinds lead one quorum at each level, and write the same log and snapshots."""

import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from featurewatch.controller.kraft import release_of
from featurewatch.reference.kraft.machines.batches import of_scanned
from featurewatch.reference.kraft.machines.metadata.records import Record, record_bytes, records_of
from featurewatch.reference.kraft.machines.metadata.replay import apply
from featurewatch.reference.kraft.machines.metadata.snapshots import at_level, read_snapshot
from featurewatch.reference.kraft.machines.metadata.state import EMPTY, MetadataState
from featurewatch.stack.java.jars import Cache, newest_tools
from featurewatch.stack.kafka.node import KafkaNode
from featurewatch.stack.kafka.specs import NEWEST_TESTED
from featurewatch.streams.kraft.records.batch import RecordBatch, scan_batches
from featurewatch.streams.kraft.snapshot import snapshot_name
from featurewatch.streams.types import METADATA_VERSION, OffsetAndEpoch
from tests.conformance.dump_log import differences, kafkas, ours
from tests.reference.kraft.reference_cluster import (
    ReferenceCluster,
    reference_cluster,
    snapshot_levels,
    snapshots,
)
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.nightly]

FIRST = 7
"""3.3-IV3, the oldest level of controllers of 4.0 and later."""
LEFT_OUT = ("ZK_MIGRATION_STATE_RECORD",)
"""What Kafka 4.0 and later read and write no more: they migrate from ZooKeeper no more."""
SMALL = {"metadata.log.max.record.bytes.between.snapshots": "600"}
"""A topic is enough for a snapshot."""


class Levels:
    """Raises one level after the other; either kind leads at each of them."""

    def __init__(self, found: ReferenceCluster) -> None:
        self.cluster = found
        self.first_of = {
            is_reference: next(
                node for node in found.controllers if node.spec.is_reference is is_reference
            )
            for is_reference in (True, False)
        }
        self.topics = 0
        self.written: dict[OffsetAndEpoch, bytes] = {}
        """The snapshots of ours, which delete all but the newest."""

    def pass_through(self, newest: int) -> None:
        """The kind that leads at a level hands over there to the other kind, which raises it."""
        is_reference = self.cluster.cluster.leader().spec.is_reference
        for level in range(FIRST, newest + 1):
            if level > FIRST:
                assert self.cluster.upgrade(level) == ""
                assert eventually(partial(self._is_at, level))
            self._write_snapshots(level)
            is_reference = not is_reference
            self._lead(is_reference, f"handed-over-at-{level}")

    def _lead(self, is_reference: bool, topic: str) -> None:
        """Hands leadership over to a kind, and creates a topic under it."""
        if self.cluster.cluster.leader().spec.is_reference is not is_reference:
            self.cluster.hand_over(self.first_of[is_reference], topic)
        self.cluster.create_topic(f"{topic}-c", 1)

    def _is_at(self, level: int) -> bool:
        return self.cluster.levels()[METADATA_VERSION] == level

    def _write_snapshots(self, level: int) -> None:
        """Creates topics until each controller has a snapshot of the level."""

        def are_written() -> bool:
            self.topics += 1
            self.cluster.create_topic(f"topic-{self.topics}", 1)
            for node in self.cluster.controllers:
                if node.spec.is_reference:
                    self.written |= snapshots(node)
            return all(level in snapshot_levels(node) for node in self.cluster.controllers)

        assert eventually(are_written), level


def batches_of(node: KafkaNode) -> list[RecordBatch]:
    """The batches in the log of a controller that has never deleted any."""
    (segment,) = node.metadata_log.glob("*.log")
    scan = scan_batches(segment.read_bytes())
    assert not scan.error
    return scan.batches


def states(batches: list[RecordBatch], ends: set[int]) -> Iterator[tuple[int, MetadataState]]:
    """The state of a log before each of these offsets."""
    state = EMPTY
    for batch in batches:
        if batch.base_offset in ends:
            yield batch.base_offset, state
        if not batch.control:
            for offset, record in records_of(of_scanned(batch)):
                state = apply(state, offset, record)
    yield batches[-1].last_offset + 1, state


def different(
    batches: list[RecordBatch],
    found: Mapping[OffsetAndEpoch, bytes],
    left_out: Collection[str] = (),
) -> list[tuple[str, list[Record], list[Record]]]:
    """The snapshots that do not have what our writer makes of the log: what each of both lacks.

    ``left_out`` are types of records that a writer leaves out.
    """
    by_end = {one.offset: (one, read_snapshot(content).records) for one, content in found.items()}
    wrong = []
    checked = 0
    for end, state in states(batches, {*by_end}):
        if end not in by_end:
            continue
        checked += 1
        snapshot, written = by_end[end]
        wanted = [one for one in at_level(state).records if one.type not in left_out]
        expected = {_content(one): one for one in wanted}
        actual = {_content(one): one for one in written}
        assert len(actual) == len(written)
        missing = [one for content, one in expected.items() if content not in actual]
        surplus = [one for content, one in actual.items() if content not in expected]
        if missing or surplus or len(wanted) != len(written):
            wrong.append((snapshot_name(snapshot), missing, surplus))
    assert checked == len(by_end)
    return wrong


def _content(record: Record) -> bytes:
    """A record's bytes, whatever the order of a node's ranges and listeners.

    Kafka keeps both as maps (``BrokerRegistration``), and its snapshots have the order of those.
    """
    ordered = {
        name: sorted(value, key=itemgetter("name")) if name in {"features", "endPoints"} else value
        for name, value in record.data.items()
    }
    return record_bytes(record._replace(data=ordered))


@pytest.mark.parametrize("references", [1, 2], ids=["1:2", "2:1"])
def test_either_kind_leads_at_each_level(
    stack_cache: Cache, tmp_path: Path, references: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Levels are raised by both kinds in turn, and topics are created under both at each level.

    The logs are the same byte by byte. Every snapshot of either kind has the records that our
    writer makes of the log before it, in their bytes but for the order of maps. Kafka's tool and
    our reader read both alike.
    """
    began = time.monotonic()
    newest = int(release_of(NEWEST_TESTED).newest(METADATA_VERSION))
    copies: list[Any] = []
    with reference_cluster(
        tmp_path / "cluster",
        stack_cache,
        [NEWEST_TESTED],
        references=references,
        javas=3 - references,
        level="3.3-IV3",
        properties=SMALL,
    ) as found:
        levels = Levels(found)
        levels.pass_through(newest)
        for node in [*found.brokers, *found.controllers]:
            node.kill()
        assert "Traceback" not in found.logs()
        logs = [batches_of(node) for node in found.controllers]
        ends = [log[-1].last_offset for log in logs]
        whole = [
            [one.buffer[one.at : one.end] for one in log if one.last_offset <= min(ends)]
            for log in logs
        ]
        assert whole[0] == whole[1] == whole[2]
        longest = logs[ends.index(max(ends))]
        of_kafka = [snapshots(one) for one in found.controllers if not one.spec.is_reference]
        for group, left_out in ((levels.written, ()), *((one, LEFT_OUT) for one in of_kafka)):
            assert len(group) > newest - FIRST
            assert different(longest, group, left_out) == []
            for snapshot in (min(group), max(group)):
                copies.append(tmp_path / f"{len(copies)}" / snapshot_name(snapshot))
                copies[-1].parent.mkdir()
                copies[-1].write_bytes(group[snapshot])
        for node in (levels.first_of[True], levels.first_of[False]):
            (segment,) = node.metadata_log.glob("*.log")
            copies.append(tmp_path / f"{len(copies)}" / segment.name)
            copies[-1].parent.mkdir()
            copies[-1].write_bytes(segment.read_bytes())
    for copy in copies:
        assert differences(kafkas(copy, newest_tools(), stack_cache), ours(copy)) == [], copy
    same = [{*levels.written} & {*one} for one in of_kafka]
    with capsys.disabled():
        sys.stdout.write(
            f"\n  {references} of ours: levels {FIRST} to {newest}, {levels.topics} topics,"
            f" {max(ends)} records, {len(levels.written)} snapshots of ours,"
            f" {[len(one) for one in of_kafka]} of Kafka's, at the same offset:"
            f" {[len(one) for one in same]}; {time.monotonic() - began:.0f} s"
        )
    assert Counter(len(one) > 0 for one in same)[True] > 0
