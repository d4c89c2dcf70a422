"""Updates of features are decided as Kafka's controllers decide them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.controller.compatibility import Verdict, supports
from featurewatch.controller.kraft.releases import release_of
from featurewatch.controller.kraft.requests import (
    ConfigRecord,
    Errors,
    FeatureLevelRecord,
    LevelUpdate,
    NoOpRecord,
    UpdateRequest,
)
from featurewatch.controller.kraft.state import ControllerState, MinInsync, ZkMigrationState
from featurewatch.controller.kraft.support import reason_not_supported
from featurewatch.controller.kraft.updates import decide_update
from featurewatch.streams.types import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureLevel,
    NodeId,
    UpgradeType,
)
from featurewatch.tables.image.nodes import intern_capabilities
from tests.controller.kraft.states import ELR, FOO, SAFE, TV, UNSAFE, broker, reason, state, update

OLD, NEW = release_of("3.9").ranges(), release_of("4.3").ranges()
BOTH = pytest.mark.parametrize("release", ["3.9.1", "4.3.0"])


@pytest.mark.form("released")
@BOTH
def test_every_registered_broker_must_support_a_level(release: str) -> None:
    """A broker's range must include the new level; fenced brokers count as well (F-15 as
    released, F-33 as released)."""
    at = state(release, 17, broker(4, {METADATA_VERSION: (1, 19)}, fenced=True))
    assert update(release, at, 19).records == (
        FeatureLevelRecord(METADATA_VERSION, FeatureLevel(19)),
    )
    refused = update(release, at, 20)
    assert reason(refused) == (
        "Invalid update version 20 for feature metadata.version. "
        "Broker 4 only supports versions 1-19"
    )
    assert refused.records == ()


def test_a_broker_without_the_feature_fails_the_request() -> None:
    """A broker supports a feature that it omits at 0 only (F-34)."""
    at = state("4.3", 30, broker(5, {METADATA_VERSION: (7, 30)}))
    assert reason(update("4.3", at, 2, feature=TV)) == (
        "Invalid update version 2 for feature transaction.version. "
        "Broker 5 does not support this feature."
    )


@BOTH
def test_a_broker_that_supports_more_is_no_obstacle(release: str) -> None:
    """More features and wider ranges than the finalized ones are accepted (F-35)."""
    at = state(release, 17, broker(5, {**NEW, FOO: (0, 9), METADATA_VERSION: (1, 40)}))
    assert update(release, at, 21).accepted


@pytest.mark.form("released")
@BOTH
def test_a_lower_level_needs_a_downgrade(release: str) -> None:
    """By default a lower level is refused; SAFE and UNSAFE allow it (F-36 as released, M-07 as
    released)."""
    at = state(release, 21, local={TV: (0, 2)}, levels={TV: 2})
    for feature, level in ((METADATA_VERSION, 19), (TV, 1)):
        text = reason(update(release, at, level, feature=feature))
        assert text.endswith(
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
        for kind in (SAFE, UNSAFE):
            decision = update(release, at, level, kind, feature)
            assert decision.records == (FeatureLevelRecord(feature, FeatureLevel(level)),)


@BOTH
def test_a_downgrade_must_be_in_every_range_too(release: str) -> None:
    """Permission to downgrade does not skip the check of ranges (F-37)."""
    at = state(release, 21, broker(3, {METADATA_VERSION: (20, 21)}))
    text = reason(update(release, at, 19, SAFE))
    assert text.endswith("Broker 3 only supports versions 20-21")


@BOTH
def test_a_feature_in_use_can_be_removed(release: str) -> None:
    """A feature is removed even if nodes still depend on it: no check prevents it (F-41)."""
    at = state(release, 21, broker(3, {**OLD, TV: (0, 2)}), local={TV: (0, 2)}, levels={TV: 2})
    assert update(release, at, 0, SAFE, TV).records == (FeatureLevelRecord(TV, FeatureLevel(0)),)


@pytest.mark.form("released")
@BOTH
def test_a_level_of_0_removes_and_below_is_refused(release: str) -> None:
    """Levels start at 1, 0 deletes, and a negative level is refused (M-04 as released)."""
    at = state(release, 21, local={TV: (0, 2)}, levels={TV: 2})
    assert update(release, at, 0, SAFE, TV).accepted
    assert reason(update(release, at, -1, SAFE, TV)).endswith(
        "A feature version cannot be less than 0."
    )


@pytest.mark.form("released")
@BOTH
def test_a_downgrade_to_a_higher_level(release: str) -> None:
    """A downgrade request with a higher level is refused; with the same level it is accepted
    (M-06 as released)."""
    at = state(release, 17)
    assert reason(update(release, at, 19, SAFE)).endswith("Can't downgrade to a newer version.")
    assert update(release, at, 17, SAFE).records == (
        FeatureLevelRecord(METADATA_VERSION, FeatureLevel(17)),
    )


@pytest.mark.form("released")
@pytest.mark.parametrize(
    ("release", "before"),
    [
        ("3.9", "Invalid metadata.version 16."),
        ("4.0", "Invalid metadata.version 16."),
        ("4.1", "Invalid metadata.version 16."),
        ("4.2", "Unsupported metadata.version downgrade from 21 to 16."),
        ("4.3", "Unsupported metadata.version downgrade from 21 to 16."),
    ],
)
def test_a_lossy_downgrade_is_refused(release: str, before: str) -> None:
    """With SAFE or UNSAFE every release refuses it, with INVALID_UPDATE_VERSION.

    No request leads to a snapshot without records, which the writer of images could make.
    (M-09 as released, M-56, M-57 as released, M-58 as released)
    """
    at = state(release, 21)
    for kind, after in (
        (SAFE, "Refusing to perform the requested downgrade because it might delete metadata"),
        (UNSAFE, "Unsafe metadata downgrade is not supported in this version."),
    ):
        decision = update(release, at, 16, kind)
        assert reason(decision).startswith(f"{before} {after}")
        errors = {decision.answer.error, *(answer.error for _, answer in decision.results)}
        assert errors - {Errors.NONE} == {Errors.INVALID_UPDATE_VERSION}


@pytest.mark.form("released")
@BOTH
def test_controllers_count_once_they_register(release: str) -> None:
    """From level 15 on every controller is checked, and an unregistered one blocks.

    Below level 15 none is, so no majority of the quorum is required either (M-45 as released).
    """
    old = {METADATA_VERSION: (1, 19)}
    at = state(release, 17, controllers={1: OLD, 2: OLD, 9: old}, quorum=(1, 2, 3))
    assert reason(update(release, at, 21)).endswith("Controller 9 only supports versions 1-19")
    without = state(release, 17, controllers={1: OLD, 2: OLD}, quorum=(1, 2, 3))
    assert reason(update(release, without, 21)).endswith(
        "controller 3 has not registered, and may not support this feature"
    )
    before = state(release, 14, controllers={9: old}, quorum=(1, 2, 3))
    assert update(release, before, 21).accepted


@BOTH
def test_several_levels_online(release: str) -> None:
    """Once all nodes run the new software, each level is accepted without a restart (M-36)."""
    for level in range(8, 21):
        at = state(release, level, broker(2, OLD), controllers={1: OLD}, quorum=(1,))
        assert update(release, at, level + 1).accepted


@pytest.mark.form("released")
def test_level_without_a_record() -> None:
    """Up to 3.9 a log without a level has level 1; from 4.1 on the request fails (M-38 as
    released, M-40 as released).

    Level 1 is that of KRaft in Kafka 3.0 (M-41 as released).
    """
    empty = ControllerState(NodeId(1), OLD, {})
    assert update("3.9", empty, 4).accepted
    assert reason(update("3.9", empty, 2, SAFE)).endswith("Can't downgrade to a newer version.")
    assert release_of("3.9").metadata_level(1).name == "3.0-IV1"  # type: ignore[union-attr]
    decision = update("4.3", ControllerState(NodeId(1), NEW, {}), 30)
    assert decision.answer.error is Errors.UNKNOWN_SERVER_ERROR


def test_partial_before_4_and_all_or_nothing_since() -> None:
    """3.9 applies the valid updates of a request beside a refused one; since 4.0 it applies
    none."""
    updates = (LevelUpdate(METADATA_VERSION, FeatureLevel(20)), LevelUpdate(FOO, FeatureLevel(1)))
    request = UpdateRequest(updates)
    partial = decide_update("3.9", state("3.9", 19), request)
    assert [(name, answer.accepted) for name, answer in partial.results] == [
        (FOO, False),
        (METADATA_VERSION, True),
    ]
    assert partial.records == (FeatureLevelRecord(METADATA_VERSION, FeatureLevel(20)),)
    none = decide_update("4.3", state("4.3", 19), request)
    assert (none.results, none.records) == ((), ())
    assert none.refusals == (
        "The update failed for all features since the following feature had an error: Invalid "
        "update version 1 for feature foo. Local controller 1 does not support this feature.",
    )


def test_a_dry_run_writes_nothing() -> None:
    """The result is the same, without records."""
    request = UpdateRequest((LevelUpdate(METADATA_VERSION, FeatureLevel(20)),), dry_run=True)
    for release in ("3.9", "4.3"):
        decision = decide_update(release, state(release, 19), request)
        assert decision.accepted
        assert decision.records == ()


def test_dependencies_are_checked_from_4_0_on() -> None:
    """ELR needs metadata.version 23, which may be raised in the same request."""
    at = state("4.3", 22)
    assert reason(update("4.3", at, 1, feature=ELR)).endswith(
        "eligible.leader.replicas.version could not be set to 1 because it depends on "
        "metadata.version level 23"
    )
    both = (LevelUpdate(ELR, FeatureLevel(1)), LevelUpdate(METADATA_VERSION, FeatureLevel(23)))
    assert decide_update("4.3", at, UpdateRequest(both)).accepted


def test_elr_moves_min_insync_replicas() -> None:
    """Enabling ELR sets its configuration for the cluster and removes it from single brokers."""
    at = state("4.3", 30)
    moved = ControllerState(
        at.id, at.local, at.levels, min_insync=MinInsync(2, cluster=False, brokers=(NodeId(3),))
    )
    assert update("4.3", moved, 1, feature=ELR).records == (
        ConfigRecord("", "min.insync.replicas", "2"),
        ConfigRecord("3", "min.insync.replicas", None),
        FeatureLevelRecord(ELR, FeatureLevel(1)),
    )


def test_kraft_version_is_apart() -> None:
    """Since 4.1 raft decides: no record, and no downgrade; 3.9 writes a record without effect."""
    at = state("4.3", 30)
    raised = update("4.3", at, 1, feature=KRAFT_VERSION)
    assert (raised.kraft_version, raised.records) == (1, (NoOpRecord(),))
    idle = update("3.9", state("3.9", 21), 1, feature=KRAFT_VERSION)
    assert (idle.kraft_version, idle.records) == (
        None,
        (FeatureLevelRecord(KRAFT_VERSION, FeatureLevel(1)),),
    )
    up = ControllerState(at.id, at.local, at.levels, kraft_version=FeatureLevel(1))
    assert reason(update("4.3", up, 0, UNSAFE, KRAFT_VERSION)).endswith(
        "Can't downgrade the version of this feature."
    )


def test_metadata_version_is_fixed_during_a_migration() -> None:
    """During a migration from ZooKeeper metadata.version cannot change."""
    at = state("3.9", 17)
    moving = ControllerState(at.id, at.local, at.levels, migration=ZkMigrationState.MIGRATION)
    assert reason(update("3.9", moving, 19)).endswith(
        "Unable to modify metadata.version while a ZK migration is in progress."
    )


def test_unknown_upgrade_type() -> None:
    """Any number but 1, 2 and 3 is refused before any other check."""
    assert UpgradeType.of(7) is UpgradeType.UNKNOWN
    text = reason(update("4.3", state("4.3", 30), -5, UpgradeType.of(0)))
    assert text.endswith("The controller does not support the given upgrade type.")


@given(low=st.integers(0, 5), width=st.integers(0, 5), level=st.integers(1, 12))
def test_alerts_and_decisions_agree_on_compatibility(low: int, width: int, level: int) -> None:
    """Alerts about nodes and the controller's decisions agree for every range and level (F-39)."""
    ranges = {FOO: (low, low + width)}
    at = state("3.9", 17, broker(2, ranges), local={FOO: (0, 12)})
    text = reason_not_supported(at, FOO, level, FeatureLevel(17))
    verdict = supports(intern_capabilities(ranges), FOO, FeatureLevel(level))
    assert (text is None) == (verdict is Verdict.YES)
