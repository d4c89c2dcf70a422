"""The fold of znodes: what counts, what stays, and what a repetition changes."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count, groupby
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from featurewatch.streams.events import Event, ZnodeChange, ZnodeSnapshot
from featurewatch.streams.types import FeatureLevel, NodeId, NodeKey, Role
from featurewatch.streams.znodes import FeaturesForm, FeaturesZnode, Znode
from featurewatch.tables.fold.fold import fold
from featurewatch.tables.image.cluster import Authority, ClusterImage
from featurewatch.tables.image.provenance import ZnodeProvenance
from tests.simulation import records as r
from tests.simulation import znodes as z
from tests.simulation.engine import Engine
from tests.simulation.ensemble import Ensemble
from tests.simulation.records import MV, NEW, OLD, TV
from tests.tables.images import fold_all

ONE = NodeKey(Role.BROKER, NodeId(1))


def watched(*znodes: Znode, zxid: int = 50) -> ClusterImage:
    """An image after one complete snapshot, with its source caught up."""
    return fold_all([*z.reading("s1", znodes, zxid), z.following()])


def test_the_broker_epoch_is_the_transaction_of_its_znode() -> None:
    """The broker epoch is the transaction that created the znode, as in Kafka; so is the
    provenance."""
    image = watched(z.broker(1, {TV: (0, 2)}, 10, 3))
    node = image.nodes.get(ONE)
    assert node is not None
    assert (node.epoch, node.fenced, node.capabilities.ranges) == (10, False, {TV: (0, 2)})
    assert node.provenance == ZnodeProvenance("/brokers/ids/1", 10, 13, 3, 500)
    assert (image.authority, image.ready) == (Authority.ZOOKEEPER, True)
    recreated = fold_all([z.change(z.broker(1, {}, 60), 60, recreated=True)], image).nodes.get(ONE)
    assert recreated is not None
    assert recreated.incarnation != node.incarnation


def test_nothing_counts_before_the_first_whole_reading() -> None:
    """A part of a snapshot changes neither nodes nor levels."""
    parts = z.reading("s1", [z.broker(1, OLD, 10), z.features({TV: 1}, 5)], 50, chunks=2)
    image = fold_all([z.change(z.broker(2, OLD, 9), 9), parts[0], z.following()])
    assert (image.authority, len(image.nodes), image.ready) == (Authority.NONE, 0, False)
    after = fold_all([parts[1]], image)
    assert (after.authority, len(after.nodes), after.ready) == (Authority.ZOOKEEPER, 1, True)


def test_the_epoch_is_the_version_of_the_znode() -> None:
    """Not the number in the early draft's JSON; it changes even if no level does (F-11)."""
    content = FeaturesZnode(
        FeaturesForm.EARLY_DRAFT, 0, True, {MV: FeatureLevel(3)}, {}, {}, epoch=99
    )
    image = watched(z.znode(z.DRAFT, content, 5, 7))
    assert (image.features.epoch, image.features.revision) == (7, 1)
    after = fold_all([z.change(z.znode(z.DRAFT, content, 5, 8), 60)], image)
    assert (after.features.epoch, after.features.revision) == (8, 1)


def test_a_level_of_zero_is_not_finalized() -> None:
    """A level of 0 is not finalized, as everywhere in the image."""
    assert dict(watched(z.features({MV: 3, TV: 0}, 5)).features.levels) == {MV: 3}


def test_absent_and_disabled_finalize_nothing() -> None:
    """Without a znode, or with a disabled one, there is no level and no epoch; it is no error."""
    image = watched(z.features({MV: 3}, 5, 7))
    off = z.change(z.features({}, 5, 8, enabled=False), 60)
    for event in (z.deleted(z.FEATURE, 60), off):
        after, delta = fold(image, event)
        assert (dict(after.features.levels), after.features.epoch) == ({}, -1)
        assert [(level.feature, level.before, level.after) for level in delta.levels] == [
            (MV, 3, 0)
        ]
        assert after.zookeeper.issues == image.zookeeper.issues
    gone = fold_all([z.deleted(z.FEATURE, 60)], image).features.provenance
    assert gone == ZnodeProvenance(z.FEATURE, -1, 60, -1, 600)


def test_an_unreadable_znode_keeps_the_levels_read_last() -> None:
    """The levels read last stay, with their epoch, and an issue is added."""
    image = watched(z.features({MV: 3}, 5, 7))
    after, delta = fold(image, z.change(z.unreadable(z.FEATURE, 5, 8), 60))
    assert after.features is image.features
    assert delta.levels == ()
    assert after.zookeeper.issues[z.FEATURE].unreadable == "not JSON"
    cleared = fold_all([z.change(z.features({MV: 3}, 5, 9), 61)], after)
    assert (cleared.features.epoch, cleared.features.revision) == (9, 1)
    assert len(cleared.zookeeper.issues) == 0


def test_an_unreadable_broker_is_live_with_unknown_ranges() -> None:
    """The broker is live with unknown ranges; an earlier version of the same znode counts."""
    image = watched(z.unreadable("/brokers/ids/1", 10), z.broker(2, OLD, 11))
    node = image.nodes.get(ONE)
    assert node is not None
    assert (dict(node.capabilities.ranges), node.capabilities.complete) == ({}, False)
    after = fold_all([z.change(z.unreadable("/brokers/ids/2", 11, 1), 60)], image)
    other = after.nodes.get(NodeKey(Role.BROKER, NodeId(2)))
    assert other is not None
    assert (dict(other.capabilities.ranges), other.epoch) == (OLD, 11)


@pytest.mark.form("document")
def test_a_lower_epoch_of_one_znode_never_counts() -> None:
    """Neither in a change nor in a snapshot; in a recreated znode it does (F-12, F-58)."""
    image = watched(z.features({MV: 3}, 5, 7))
    lower = z.features({MV: 2}, 5, 6)
    assert fold(image, z.change(lower, 60))[0].features is image.features
    restored = fold_all(z.reading("s2", [lower], 40), image)
    assert restored.features is image.features
    assert [
        (znode.version, max_version) for znode, max_version in restored.zookeeper.regressed()
    ] == [(6, 7)]
    recreated = fold_all([z.change(z.features({MV: 2}, 60, 0), 60, recreated=True)], image)
    assert (dict(recreated.features.levels), recreated.features.epoch) == ({MV: 2}, 0)
    assert [
        (znode.version, max_version) for znode, max_version in recreated.zookeeper.regressed()
    ] == [(0, 7)]


def test_changes_that_were_read_before_are_skipped() -> None:
    """A change up to a transaction behind the newest one is skipped, and so is a repeated
    snapshot."""
    first = z.reading("s1", [z.broker(1, OLD, 10)], 50)
    changes = [z.change(z.broker(2, NEW, 60), 60), z.deleted("/brokers/ids/2", 61)]
    events: list[Event] = [*first, *changes]
    image = fold_all(events)
    for event in events:
        after, delta = fold(image, event)
        assert after is image
        assert delta.skipped


def test_a_partition_state_changes_no_image() -> None:
    """The state of a partition does not affect the image."""
    image = watched(z.broker(1, OLD, 10))
    after = fold_all([z.change(z.partition(1, 3), 60, missed=3)], image)
    assert (after.nodes, after.features, after.zookeeper.znodes) == (
        image.nodes,
        image.features,
        image.zookeeper.znodes,
    )
    assert len(after.zookeeper.issues) == 0


def test_the_controller_comes_from_its_znode() -> None:
    """Its id, its epoch, and whether it is a KRaft one; none if the znode does not exist."""
    image = watched(z.controller(7, 10), z.controller_epoch(4), z.migration(3000, 11))
    zookeeper = image.zookeeper
    assert zookeeper.controller is not None
    assert (
        zookeeper.controller.node_id,
        zookeeper.controller.kraft_epoch,
        zookeeper.controller_epoch,
    ) == (
        *(7, -1),
        4,
    )
    assert zookeeper.migration is not None
    assert zookeeper.migration.kraft_controller_id == 3000
    after = fold_all([z.deleted("/controller", 60)], image).zookeeper
    assert (after.controller, after.controller_epoch) == (None, 4)


def test_the_log_outranks_zookeeper() -> None:
    """When the log is read its nodes are the nodes; the brokers of ZooKeeper stay beside them."""
    image = watched(z.broker(1, NEW, 10), z.broker(2, NEW, 11), z.features({TV: 2}, 5))
    partial, delta = fold(image, r.commit(5, r.level(MV, 21), r.register(1, OLD, migrating=True)))
    assert (partial.authority, partial.ready, len(partial.nodes)) == (Authority.LOG, False, 2)
    assert {key.node_id for key in delta.zookeeper.nodes} == {1, 2}
    complete = fold_all([r.following(5)], partial)
    assert (len(complete.nodes), len(complete.zookeeper.nodes), complete.ready) == (1, 2, True)
    assert dict(complete.features.levels) == {MV: 21}
    assert set(complete.zookeeper.unregistered) == {2}
    after = fold_all(
        [z.change(z.features({TV: 1}, 5, 1), 60), z.deleted("/brokers/ids/2", 61)], complete
    )
    assert after.features is complete.features
    assert (len(after.zookeeper.nodes), len(after.zookeeper.unregistered)) == (1, 0)


def test_zookeeper_outranks_responses() -> None:
    """Responses are held beside the nodes, and the last chunk of a snapshot replaces the nodes."""
    image = fold_all([r.answer(1, NEW, {MV: 21}, 50, 10), r.following(0, source="api-versions")])
    parts = z.reading("s1", [z.broker(1, NEW, 10), z.features({MV: 21}, 5, 2)], 50, chunks=2)
    assert fold_all(parts[:1], image).authority is Authority.ANSWERS
    after = fold_all([*parts, z.following()], image)
    assert (after.authority, after.features.epoch, after.features.revision) == ("zookeeper", 2, 1)
    answered = fold_all([r.answer(2, OLD, {MV: 9}, 99, 9000)], after)
    assert (len(answered.nodes), len(answered.answers.nodes)) == (1, 2)
    assert answered.features is after.features


def test_one_znode_costs_two_rows() -> None:
    """One of a thousand brokers restarts: its page and the cluster's own row are written."""
    engine = Engine()
    engine.apply_all([*z.reading("s1", (z.broker(i, OLD, 10) for i in range(1000)), 50)])
    before = dict(engine.rows)
    engine.apply(z.change(z.broker(500, OLD, 60), 60))
    assert sum(before.get(key) != value for key, value in engine.rows.items()) == 2


def history(seed: int) -> list[Event]:
    """The events of a simulated source."""
    time = count(1000, 7)
    return Ensemble(Random(seed), lambda: next(time)).history(steps=20)


def split_chunks(events: Sequence[Event], dice: Random) -> list[Event]:
    """The same events with each snapshot cut into other chunks; times stay."""
    split_events: list[Event] = []
    names = count()
    for name, group in groupby(
        events,
        lambda event: event.resync if isinstance(event, ZnodeSnapshot) else str(next(names)),
    ):
        parts = [*group]
        first = parts[0]
        if not isinstance(first, ZnodeSnapshot) or first.index or not _whole(parts):
            split_events += parts
            continue
        znodes = [znode for part in parts for znode in getattr(part, "znodes", ())]
        dice.shuffle(znodes)
        chunks = dice.randint(1, 5)
        split_events += [
            replace(part, seen_ms=first.seen_ms)
            for part in z.reading(name, znodes, first.zxid, chunks=chunks)
        ]
    return split_events


def _whole(parts: Sequence[Event]) -> bool:
    last = parts[-1]
    return isinstance(last, ZnodeSnapshot) and last.last


def repeated(events: Sequence[Event], dice: Random) -> list[Event]:
    """The same events with windows repeated, each since the last complete snapshot began."""
    repeated_events: list[Event] = []
    since: list[Event] = []
    parts: list[ZnodeSnapshot] = []
    for event in events:
        repeated_events.append(event)
        if isinstance(event, ZnodeSnapshot):
            parts = [*(part for part in parts if part.resync == event.resync), event]
            if event.last and [part.index for part in parts] == [*range(event.index + 1)]:
                since = [*parts]
        elif isinstance(event, ZnodeChange):
            since = [*since, event]
        if since and dice.random() < 0.4:
            repeated_events += since[dice.randrange(len(since)) :]
    return repeated_events


def run_engine(events: Sequence[Event]) -> tuple[Engine, list[str]]:
    """The engine after some events, and the ids of its changes."""
    engine = Engine()
    change_ids = []
    for event in events:
        change_ids += [change.id for change in engine.apply(event).changes]
    return engine, change_ids


@settings(max_examples=150)
@given(seed=st.integers(0, 10**9), dice=st.randoms(use_true_random=False))
def test_any_split_gives_the_same_image(seed: int, dice: Random) -> None:
    """Any cut of a snapshot into chunks, and any order of its znodes, give the same image."""
    events = history(seed)
    expected, actual = run_engine(events), run_engine(split_chunks(events, dice))
    assert actual[0].state.image == expected[0].state.image
    assert actual[1] == expected[1]


@settings(max_examples=150)
@given(seed=st.integers(0, 10**9), dice=st.randoms(use_true_random=False))
def test_any_repetition_gives_the_same_image(seed: int, dice: Random) -> None:
    """Events since the last complete snapshot may be repeated any number of times without
    effect."""
    events = history(seed)
    expected, actual = run_engine(events), run_engine(repeated(events, dice))
    assert actual[0].state.image == expected[0].state.image
    assert actual[1] == expected[1]
