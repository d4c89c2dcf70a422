"""One step: changes, snapshots, digests."""

from dataclasses import replace

import pytest

from featurewatch.monitor.snapshot import snapshot
from featurewatch.streams.outputs import ChangeKind
from featurewatch.streams.types import Role
from tests.simulation import records as r
from tests.simulation.engine import Engine
from tests.simulation.records import MV, NEW, OLD, TV


@pytest.mark.form("released")
def test_the_kinds_of_change() -> None:
    """Finalized, upgraded, downgraded, removed, each with revision and provenance (M-36, F-36 as
    released)."""
    engine = Engine()
    changes = []
    for offset, value in enumerate((1, 2, 1, 0), start=1):
        (change,) = engine.apply(r.commit(offset, r.level(TV, value))).changes
        assert change.provenance == {"offset": offset, "leader_epoch": 1, "append_ms": offset * 10}
        assert (change.epoch, change.revision, change.from_snapshot) == (offset, offset, False)
        changes.append((change.kind, change.before, change.after))
    assert changes == [
        (ChangeKind.FINALIZED, 0, 1),
        (ChangeKind.UPGRADED, 1, 2),
        (ChangeKind.DOWNGRADED, 2, 1),
        (ChangeKind.REMOVED, 1, 0),
    ]


def test_a_level_is_recorded_and_announced_and_nothing_else() -> None:
    """Nodes stay as they are, also those that the level excludes; one change and one snapshot are
    published, and with the incompatible node an alert (F-40)."""
    engine = Engine()
    engine.apply_all([r.commit(1, r.register(1, OLD), r.register(2, NEW)), r.following(1)])
    before = engine.state.image
    outcome = engine.apply(r.commit(2, r.level(MV, 25)))
    after = engine.state.image
    assert after.nodes is before.nodes
    assert replace(after, features=before.features, log=before.log) == before
    assert [(change.feature, change.after) for change in outcome.changes] == [(MV, 25)]
    assert {alert.rule for alert in outcome.alerts} == {"incompatible-node", "level-above-support"}
    assert outcome.snapshot is not None
    assert outcome.snapshot.finalized == {MV: 25}


def test_what_a_snapshot_of_the_log_changes_is_marked() -> None:
    """The change follows from a comparison; equal levels are no change (M-65)."""
    engine = Engine()
    engine.apply(r.commit(1, r.level(MV, 21), r.level(TV, 1)))
    outcome = engine.apply(r.chunk(9, 0, r.level(MV, 21), r.level(TV, 2), last=True))
    assert [(c.feature, c.from_snapshot) for c in outcome.changes] == [(TV, True)]
    assert engine.apply(r.chunk(20, 0, r.level(MV, 21), r.level(TV, 2), last=True)).changes == ()


def test_a_snapshot_groups_nodes_that_are_alike() -> None:
    """Two releases are two classes with their ids, for any number of nodes."""
    engine = Engine()
    nodes = [r.register(i, OLD if i % 2 else NEW, fenced=i == 3) for i in range(20)]
    snapshot = engine.apply(r.commit(90, r.level(MV, 25), *nodes)).snapshot
    assert snapshot is not None
    assert [(c.role, len(c.nodes), c.fenced) for c in snapshot.classes] == [
        (Role.BROKER, 10, ()),
        (Role.BROKER, 10, (3,)),
    ]
    assert [node.node_id for node in snapshot.incompatible] == list(range(1, 20, 2))


def test_a_digest_covers_the_content_and_not_the_time() -> None:
    """Equal content has one digest; another level, node or fencing changes it."""
    engine = Engine()
    engine.apply(r.commit(5, r.level(MV, 21), r.register(1, OLD), r.register(2, OLD)))
    image = engine.state.image
    digest = snapshot(image, 1).digest
    log = replace(image.log, quorum=replace(image.log.quorum, leader_id=9))
    assert snapshot(replace(image, log=log), 2).digest == digest
    assert snapshot(Engine(engine.rows).state.image, 3).digest == digest
    for record in (r.unfence(1), r.register(1, NEW), r.unregister(2), r.level(MV, 20)):
        other = Engine(engine.rows)
        other.apply(r.commit(9, record))
        assert snapshot(other.state.image, 1).digest != digest


def test_a_repeated_event_has_no_outputs() -> None:
    """Neither changes nor alerts nor a snapshot; the state is the same object."""
    engine = Engine()
    engine.apply_all([r.following(0, seen_ms=1), r.commit(5, r.level(MV, 25), r.register(1, OLD))])
    before = engine.state
    outcome = engine.apply(r.commit(5, r.level(MV, 25), r.register(1, OLD)))
    assert outcome.state is before
    assert (outcome.changes, outcome.alerts, outcome.snapshot) == ((), (), None)
