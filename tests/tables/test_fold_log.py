"""The fold of the metadata log: commits, snapshots, gaps, a log that went backwards."""

import sys
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.streams.events import RecordJson, SourceState
from featurewatch.streams.types import NodeId, NodeKey, Role
from featurewatch.tables.fold.fold import fold
from featurewatch.tables.image.cluster import ClusterDelta, ClusterImage
from tests import strategies as some
from tests.simulation import records as r
from tests.simulation.records import KV, MV, NEW, OLD, TV
from tests.tables.images import fold_all

SIX = {
    MV: 30,
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    TV: 2,
}


def broker(image: ClusterImage, node_id: int) -> object:
    """A broker of the image."""
    return image.nodes.get(NodeKey(Role.BROKER, NodeId(node_id)))


@pytest.mark.form("document")
def test_no_level_counts_without_its_record() -> None:
    """Without a record of metadata.version nothing is finalized, whatever nodes support (M-38)."""
    image = fold_all([r.commit(1, r.register(1, NEW)), r.following(1)])
    assert dict(image.features.levels) == {}
    assert image.features.revision == 0


def test_a_transaction_is_one_revision() -> None:
    """Six features finalized by one commit raise the revision once; each has its level (M-15)."""
    image = fold_all([r.commit(7, *(r.level(name, n) for name, n in SIX.items()))])
    assert dict(image.features.levels) == SIX
    assert (image.features.revision, image.features.epoch) == (1, 7)


def test_the_epoch_is_not_a_level() -> None:
    """The epoch is an offset of the whole set; it is no level (F-60)."""
    image = fold_all([r.commit(5, r.level(MV, 21)), r.commit(900, r.level(TV, 1))])
    assert image.features.epoch == 900
    assert dict(image.features.levels) == {MV: 21, TV: 1}


@pytest.mark.form("released")
def test_new_software_changes_ranges_and_no_level() -> None:
    """A broker on new software has new ranges, the finalized level stays (M-16, M-34,
    F-05 as released)."""
    image = fold_all([r.commit(2, r.level(MV, 21), r.register(1, OLD))])
    after = fold_all([r.commit(3, r.register(1, NEW))], image)
    assert after.features is image.features
    node = after.nodes.get(NodeKey(Role.BROKER, NodeId(1)))
    assert node is not None
    assert node.capabilities.ranges[MV] == (7, 30)


@pytest.mark.form("released")
def test_level_zero_removes_a_feature() -> None:
    """A level of 0 removes a feature, and removing it again is no change (M-04 as released)."""
    image = fold_all([r.commit(1, r.level(TV, 2)), r.commit(2, r.level(TV, 0))])
    assert (dict(image.features.levels), image.features.revision) == ({}, 2)
    assert fold_all([r.commit(3, r.level(TV, 0))], image).features is image.features


def test_the_same_level_again_is_no_revision() -> None:
    """Kafka writes a redundant record if a level is set to its current value: nothing changes."""
    image = fold_all([r.commit(1, r.level(MV, 21)), r.commit(2, r.level(MV, 21))])
    assert (image.features.revision, image.features.epoch) == (1, 1)


def test_kraft_version_comes_from_the_control_record() -> None:
    """A FeatureLevelRecord named kraft.version is ignored (KAFKA-18979)."""
    image = fold_all([r.commit(1, r.level(KV, 1))])
    assert dict(image.features.levels) == {}
    assert dict(fold_all([r.commit(2, r.kraft_version(1))], image).features.levels) == {KV: 1}


@pytest.mark.form("released")
def test_record_type_12_of_old_releases_is_unreadable() -> None:
    """Key 12 of releases up to 3.2 has the same version, and is not interpreted (M-12 as released,
    M-13)."""
    old = {"name": MV, "minFeatureLevel": 1, "maxFeatureLevel": 3}
    image = fold_all([r.commit(1, r.record("FEATURE_LEVEL_RECORD", old))])
    assert dict(image.features.levels) == {}
    assert image.sources.unreadable["FEATURE_LEVEL_RECORD"].count == 1


def test_unknown_fields_and_types_are_skipped() -> None:
    """Unknown fields, and record types that do not matter, change nothing (M-60)."""
    plain = r.register(1, OLD)
    extended = {**plain, "data": {**plain["data"], "cordonedLogDirs": ["x"]}}
    image = fold_all([r.commit(1, extended, r.record("TOPIC_RECORD", {"name": "t"}))])
    assert image == fold_all([r.commit(1, plain, r.record("NO_OP_RECORD", {}))])


def test_a_delta_holds_what_changed() -> None:
    """The delta of a level change has no node, that of an unfencing no level and one node, and that
    of a fencing of a fenced node nothing (M-63)."""
    image = fold_all([r.commit(9, r.level(MV, 21), *(r.register(i, OLD) for i in range(50)))])
    _, delta = fold(image, r.commit(10, r.level(MV, 20)))
    assert (dict(delta.nodes), len(delta.levels)) == ({}, 1)
    image, delta = fold(image, r.commit(10, r.unfence(3)))
    assert ([key.node_id for key in delta.nodes], delta.levels) == ([3], ())
    for again in (r.unfence(3), r.change(3, fenced=-1), r.fence(4), r.change(4, fenced=1)):
        after, delta = fold(image, r.commit(11, again))
        assert (dict(delta.nodes), delta.levels, after.nodes) == ({}, (), image.nodes)


def test_the_cost_of_a_commit_follows_the_change() -> None:
    """The lines that run for a change of a level or of one node are as many in a cluster of 20
    nodes as in one of 200 (M-63)."""

    def cost(size: int, *records: RecordJson) -> int:
        image = fold_all([r.commit(9, r.level(MV, 21), *(r.register(i, OLD) for i in range(size)))])
        event, lines = r.commit(10, *records), 0

        def count(_frame: FrameType, kind: str, _argument: object) -> Any:
            nonlocal lines
            lines += kind == "line"
            return count

        before = sys.gettrace()
        sys.settrace(count)
        try:
            fold(image, event)
        finally:
            sys.settrace(before)
        return lines

    for record in (r.level(MV, 20), r.fence(3)):
        assert 0 < cost(20, record) == cost(200, record)


def test_only_a_registration_ends_a_controlled_shutdown() -> None:
    """Old and new records fence and unfence; only a registration ends a controlled shutdown."""
    image = fold_all([r.commit(1, r.register(1, OLD, fenced=False))])
    steps = [
        (r.fence(1), (True, False)),
        (r.unfence(1), (False, False)),
        (r.change(1, shutdown=1), (False, True)),
        (r.change(1, fenced=1), (True, True)),
        (r.change(1, fenced=-1), (False, True)),
        (r.register(1, OLD), (True, False)),
    ]
    for offset, (record, expected) in enumerate(steps, start=2):
        image = fold_all([r.commit(offset, record)], image)
        node = image.nodes.get(NodeKey(Role.BROKER, NodeId(1)))
        assert node is not None
        assert (node.fenced, node.shutting_down) == expected


def test_a_change_of_an_unknown_broker_is_counted() -> None:
    """A registration was missed; the rest of the commit is applied."""
    image = fold_all([r.commit(1, r.fence(4), r.level(MV, 7))])
    assert "broker-4" in image.sources.unreadable["FENCE_BROKER_RECORD"].reason
    assert dict(image.features.levels) == {MV: 7}


def test_changes_of_unknown_brokers_cost_what_they_are() -> None:
    """None of them is compared with all records after it: a message may have 150,000."""

    def reads_of(count: int) -> int:
        reads = 0

        class Data(dict[str, object]):
            def get(self, *arguments: str) -> object:  # type: ignore[override]
                nonlocal reads
                reads += 1
                return super().get(*arguments)

        changes = [r.record("FENCE_BROKER_RECORD", {"id": 5000, "epoch": 1}) for _ in range(count)]
        removals = [{**r.unregister(node), "data": Data(brokerId=node)} for node in range(count)]
        image = fold_all([r.commit(5000, *changes, *removals)])
        assert image.sources.unreadable["FENCE_BROKER_RECORD"].count == count
        return reads

    assert reads_of(200) <= 400


def test_a_broker_may_be_unregistered_twice() -> None:
    """After a crash a broker may be unregistered before its commit is applied again."""
    image = fold_all([r.commit(2, r.change(4, 1), r.unregister(4))])
    assert dict(image.sources.unreadable) == {}


def test_an_unregistered_controller_leaves_the_image() -> None:
    """UnregisterControllerRecord removes the controller alone, and one that is unknown is no error
    (KIP-1312)."""
    before = fold_all(
        [r.commit(2, r.level(MV, 33), r.register(9, NEW), r.register_controller(9, NEW))]
    )
    image, delta = fold(before, r.commit(3, r.unregister_controller(9), r.unregister_controller(8)))
    assert [*image.nodes.nodes] == [NodeKey(Role.BROKER, NodeId(9))]
    assert dict(delta.nodes)[NodeKey(Role.CONTROLLER, NodeId(9))] is None
    assert dict(image.sources.unreadable) == {}


STATE = (r.level(MV, 21), r.register(1, OLD), r.register(2, NEW), r.register_controller(3, NEW))


def test_a_snapshot_replaces_the_image() -> None:
    """A node that it lacks is removed, and the delta has only differences (M-65)."""
    before = fold_all(
        [r.commit(5, r.level(MV, 21), r.level(TV, 1), r.register(1, OLD), r.register(9, OLD))]
    )
    image, first = fold(before, r.chunk(20, 0, *STATE[:2]))
    assert (image.features, image.nodes, dict(first.nodes)) == (before.features, before.nodes, {})
    image, delta = fold(image, r.chunk(20, 1, *STATE[2:], last=True))
    assert broker(image, 9) is None
    assert dict(image.features.levels) == {MV: 21}
    assert [(c.feature, c.before, c.after) for c in delta.levels] == [(TV, 1, 0)]
    assert delta.from_snapshot
    assert image.log.provenance.offset == 19


def test_a_snapshot_gives_the_same_image_whatever_it_replaces() -> None:
    """Levels, nodes and provenance are the same, whatever the image was before (M-64)."""
    chunks = [r.chunk(20, 0, *STATE[:1]), r.chunk(20, 1, *STATE[1:], last=True)]
    over = fold_all(chunks, fold_all([r.commit(5, r.level(TV, 1), r.register(9, NEW))]))
    empty = fold_all(chunks)
    assert (over.features.levels, over.nodes, over.log.provenance) == (
        empty.features.levels,
        empty.nodes,
        empty.log.provenance,
    )


def test_repeated_chunks_change_nothing() -> None:
    """A repeated chunk, and a snapshot behind the image, are skipped."""
    first, second = r.chunk(20, 0, *STATE[:2]), r.chunk(20, 1, *STATE[2:], last=True)
    image = fold_all([first, second])
    for chunk in (first, second, r.chunk(12, 0, last=True)):
        after, delta = fold(image, chunk)
        assert after is image
        assert delta.skipped
    begun = fold_all([first, r.chunk(20, 1, STATE[2])])
    assert fold(begun, r.chunk(20, 1, STATE[2]))[0] == begun


def test_a_restarted_snapshot_has_nothing_of_the_first() -> None:
    """The source crashed and publishes another snapshot: only that one counts."""
    image = fold_all([r.chunk(20, 0, r.register(7, OLD)), r.chunk(30, 0, *STATE, last=True)])
    assert broker(image, 7) is None
    assert image.log.provenance.offset == 29


def test_a_chunk_without_the_one_before_is_not_applied() -> None:
    """A missing chunk is counted as unreadable, and the old image stays."""
    before = fold_all([r.commit(5, r.level(MV, 21))])
    image = fold_all([r.chunk(20, 0, STATE[1]), r.chunk(20, 2, last=True)], before)
    assert image.features is before.features
    assert image.sources.unreadable["SNAPSHOT"].count == 1


def test_a_commit_ends_an_incomplete_snapshot() -> None:
    """The source continues with the log: the image continues from its last offset."""
    before = fold_all([r.commit(5, r.level(MV, 21))])
    image = fold_all([r.chunk(20, 0, r.register(7, OLD)), r.commit(6, r.level(TV, 1))], before)
    assert image.log.resync is None
    assert broker(image, 7) is None
    assert dict(image.features.levels) == {MV: 21, TV: 1}


def test_a_gap_is_bridged_by_a_snapshot() -> None:
    """The gap stays until the snapshot is complete; published again afterwards it is skipped."""
    lost, complete = r.gap(6, 19), r.chunk(20, 0, *STATE, last=True)
    image = fold_all([r.commit(5, r.level(MV, 21)), lost])
    assert image.log.gap == "lost"
    image = fold_all([complete], image)
    assert image.log.gap == ""
    assert fold_all([lost, complete], image) == image


def test_a_log_that_went_backwards_is_read_to_its_end_first() -> None:
    """Until then the old image stays; a heartbeat in between does not end the resync."""
    before = fold_all(
        [r.commit(3, r.level(MV, 21), r.register(1, OLD)), r.commit(9, r.level(TV, 1))]
    )
    before = fold_all([r.following(9)], before)
    image = fold_all([r.gap(4, 9, reset=True)], before)
    image = fold_all([r.status(SourceState.FOLLOWING, 1, behind=3, seen_ms=500)], image)
    assert (image.features, image.nodes, image.ready) == (before.features, before.nodes, False)
    image = fold_all([r.commit(3, r.level(MV, 21), r.register(1, OLD))], image)
    assert image.features is before.features
    after, delta = fold(image, r.following(3, seen_ms=600))
    assert [(c.feature, c.after) for c in delta.levels] == [(TV, 0)]
    assert (dict(after.features.levels), after.nodes, after.ready) == ({MV: 21}, before.nodes, True)
    assert (image.log.max_offset, after.log.provenance.offset, after.log.max_offset) == (9, 3, 3)


def test_a_log_that_went_backwards_twice_keeps_nothing_of_the_first_reading() -> None:
    """Each resync starts without nodes and levels."""
    image = fold_all([r.commit(9, r.register(1, OLD)), r.following(9)])
    image = fold_all([r.gap(0, 9, reset=True), r.commit(2, r.register(5, OLD))], image)
    image = fold_all(
        [r.gap(0, 2, reset=True), r.commit(1, r.register(6, OLD)), r.following(1)], image
    )
    assert [key.node_id for key in image.nodes.nodes] == [6]


@pytest.mark.parametrize("state", [SourceState.STALLED, SourceState.SILENT])
def test_a_source_that_stalls_while_catching_up_is_not_ready(state: SourceState) -> None:
    """A source that stalls while catching up has published a part; one that followed,
    everything."""
    partial = fold_all([r.catching_up(1), r.commit(1, r.level(MV, 21)), r.status(state, 1)])
    assert not partial.ready
    complete = fold_all([r.following(1), r.status(state, 1)], partial)
    assert complete.ready
    assert not fold_all([r.catching_up(1)], complete).ready


@given(parts=some.partitions_of(12), records=st.lists(some.records, min_size=12, max_size=12))
def test_every_split_gives_the_same_image(parts: list[int], records: list[RecordJson]) -> None:
    """The same records in any commits give the same levels, nodes and quorum."""

    def run(sizes: list[int]) -> ClusterImage:
        events, at = [], 0
        for size in sizes:
            commit = r.commit(at + size, *records[at : at + size], first=at + 1)
            events.append(replace(commit, append_ms=7))
            at += size
        return fold_all(events)

    image, many = run([1] * 12), run(parts)
    assert image.features.levels == many.features.levels
    assert image.log.quorum == many.log.quorum
    assert some.plain_nodes(image) == some.plain_nodes(many)


@given(commits=st.lists(st.lists(some.records, max_size=3), min_size=1, max_size=8), data=st.data())
def test_repeated_commits_change_nothing(
    commits: list[list[RecordJson]], data: st.DataObject
) -> None:
    """Any range of commits that was applied before is skipped, and the image is the same object."""
    events = [r.commit(10 * i, *records) for i, records in enumerate(commits, start=1)]
    image = fold_all(events)
    first = data.draw(st.integers(0, len(events) - 1))
    for event in events[first : data.draw(st.integers(first, len(events)))]:
        after, delta = fold(image, event)
        assert after is image
        assert delta == ClusterDelta(skipped=True)
