"""The compatibility function, and the blockers of a level."""

import pytest

from featurewatch.controller.compatibility import Verdict, incompatibilities, supports
from featurewatch.controller.levels import level_name, metadata_version_names
from featurewatch.monitor.readiness import NodeCondition, assess_readiness
from featurewatch.monitor.rules import needs_evaluation
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, Role
from featurewatch.tables.image.nodes import intern_capabilities
from tests.simulation import records as r
from tests.simulation.records import MV, NEW, OLD, TV
from tests.tables.images import fold_all

YES, NO, UNKNOWN = Verdict.YES, Verdict.NO, Verdict.UNKNOWN


@pytest.mark.form("document", "released")
@pytest.mark.parametrize(
    ("bounds", "level", "verdict"),
    [
        ((1, 21), 1, YES),
        ((1, 21), 21, YES),
        ((1, 21), 22, NO),
        ((7, 30), 6, NO),
        ((0, 1), 0, YES),
        ((1, 2), 0, NO),
        ((0, 0), 1, NO),
        ((5, 5), 5, YES),
        ((9, 3), 5, UNKNOWN),
        ((9, 3), 0, UNKNOWN),
        ((-1, 21), 5, UNKNOWN),
    ],
)
def test_a_range_includes_both_ends(bounds: tuple[int, int], level: int, verdict: Verdict) -> None:
    """Minimum ≤ level ≤ maximum, for level 0 too; an invalid range is unknown (F-03 as released,
    F-33)."""
    assert supports(intern_capabilities({MV: bounds}), MV, FeatureLevel(level)) is verdict


def test_a_missing_feature() -> None:
    """A missing feature counts as 0-0 (F-34), and as unknown if the response may omit it."""
    for complete, verdict in ((True, NO), (False, UNKNOWN)):
        capabilities = intern_capabilities({MV: (1, 21)}, complete=complete)
        assert supports(capabilities, TV, FeatureLevel(1)) is verdict
        assert supports(capabilities, TV, FeatureLevel(0)) is YES


def test_more_features_than_finalized_are_compatible() -> None:
    """Features that are not finalized are not checked (F-35, F-41)."""
    image = fold_all([r.commit(1, r.level(MV, 21))])
    assert incompatibilities(intern_capabilities(NEW), image.features.levels) == ()
    assert not needs_evaluation(intern_capabilities(NEW), image.features.levels)
    assert needs_evaluation(intern_capabilities({MV: (9, 3)}), image.features.levels)


@pytest.mark.form("released")
def test_fenced_nodes_are_blockers_too() -> None:
    """All blockers, not the first only as in Kafka; all registered brokers count (F-33 as released,
    F-37, F-38)."""
    image = fold_all(
        [r.commit(9, r.level(MV, 14), r.register(3, OLD), r.register(1, OLD, fenced=False),
                  r.register(2, NEW), r.register_controller(7, OLD))]
    )  # fmt: skip
    blockers = assess_readiness(image, None, {MV: FeatureLevel(25)}).blockers
    assert [(b.node_id, b.condition, b.levels[0].range, b.verdict) for b in blockers] == [
        (1, NodeCondition.RUNNING, (1, 21), NO),
        (3, NodeCondition.FENCED, (1, 21), NO),
    ]
    down = assess_readiness(image, None, {MV: FeatureLevel(6)}).blockers
    assert [b.node_id for b in down] == [2]


def test_controllers_count_from_level_15_on() -> None:
    """Registered controllers by their range, and voters that have not registered (KIP-919)."""
    events = [
        r.commit(1, r.leader_change(1, (1, 2))),
        r.commit(5, r.level(MV, 15), r.register_controller(1, OLD)),
    ]
    blockers = assess_readiness(fold_all(events), None, {MV: FeatureLevel(25)}).blockers
    assert [(b.role, b.node_id, b.condition, b.verdict) for b in blockers] == [
        (Role.CONTROLLER, 1, NodeCondition.RUNNING, NO),
        (Role.CONTROLLER, 2, NodeCondition.UNREGISTERED, UNKNOWN),
    ]


def test_level_names() -> None:
    """Every level from 1 on has one name, and a level that is too new raises no error (M-67)."""
    assert level_name(METADATA_VERSION, FeatureLevel(1)) == "1 (3.0-IV1)"
    assert level_name(METADATA_VERSION, FeatureLevel(21)) == "21 (3.9-IV0)"
    assert level_name(METADATA_VERSION, FeatureLevel(30)) == "30 (4.3-IV0)"
    newest = len(metadata_version_names())
    assert "newer" in level_name(METADATA_VERSION, FeatureLevel(newest + 1))
    assert level_name(TV, FeatureLevel(2)) == "2"
    assert level_name(TV, FeatureLevel(0)) == "off"
    assert len(set(metadata_version_names())) == len(metadata_version_names())
