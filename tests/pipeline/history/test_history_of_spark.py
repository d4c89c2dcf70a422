"""The history of a lake that Spark filled equals the state of the fold."""

from datetime import UTC, datetime

import pytest

from featurewatch.cli.commands.history.rendering import roll_lines, state_parts
from featurewatch.monitor.snapshot import snapshot
from featurewatch.monitor.step import MonitorState, step
from featurewatch.pipeline.derived.query import FoldQuery
from featurewatch.pipeline.history.differences import upgrades
from featurewatch.pipeline.history.moments import AtRevision, AtTime
from featurewatch.pipeline.history.plot.layout import layout
from featurewatch.pipeline.history.plot.picture import picture
from featurewatch.pipeline.history.point_in_time import clusters, state_at
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.reader import LakeReader
from featurewatch.streams.types import ClusterId
from tests.pipeline.gold.parity import history, in_turn, into

SEEDS = range(3)


@pytest.mark.stack
def test_now_is_what_the_fold_has_come_to(lake: Lake) -> None:
    """Levels, capabilities, incompatible nodes, firing alerts, and the digest of each revision are
    equal.

    The simulated histories contain transactions, resets, snapshots, ZooKeeper and migrations.
    """
    for _ in into(lake, in_turn(map(history, SEEDS))):
        pass
    FoldQuery(lake).rebuild()
    reader, now = LakeReader(lake.root), datetime.now(UTC)
    assert clusters(reader) == [f"cluster-{seed}" for seed in SEEDS]
    for seed in SEEDS:
        cluster = f"cluster-{seed}"
        state, digests = MonitorState.of(ClusterId(cluster)), {}
        for event in history(seed):
            outcome = step(state, event)
            state = outcome.state
            if outcome.snapshot is not None:
                digests[outcome.snapshot.revision] = outcome.snapshot.digest
        historical = state_at(reader, cluster, AtTime(now), now)
        assert historical.levels == dict(state.image.features.levels), cluster
        supported = {
            (cls.role, node_id): {name: tuple(bounds) for name, bounds in cls.ranges.items()}
            for cls in historical.classes
            for node_id in cls.nodes
        }
        assert supported == {
            (str(key.role), key.node_id): dict(node.capabilities.ranges)
            for key, node in state.image.nodes.nodes.items()
        }, cluster
        firing = {alert.id for alerts in state.firing.values() for alert in alerts}
        assert {row["id"] for row in historical.alerts} == firing, cluster
        excluded = snapshot(state.image, 0).incompatible
        assert {
            (row["role"], row["node_id"], row["feature"], row["level"], row["verdict"])
            for row in historical.incompatible
            if row["verdict"] == "no"
        } == {
            (str(each.role), each.node_id, each.feature, each.level, each.verdict)
            for each in excluded
            if each.verdict == "no"
        }, cluster
        for revision, digest in digests.items():
            assert state_at(reader, cluster, AtRevision(revision), now).digest == digest
        drawn = layout(picture(reader, cluster, None, None, now))
        assert drawn.shapes, cluster
        lines = [*state_parts(historical)]
        for roll in upgrades(reader, cluster, None):
            lines += roll_lines(roll, nodes=True)
        assert lines, cluster
