"""KIP-778 as written decides differently from every release."""

import pytest

from featurewatch.controller.kraft import ControllerState, Errors, LevelUpdate, UpdateRequest
from featurewatch.controller.kraft.kip_778 import decide_update_as_written, first_record
from featurewatch.controller.kraft.releases import release_of
from featurewatch.controller.kraft.requests import FeatureLevelRecord, UpdateDecision
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, FeatureName, UpgradeType
from tests.controller.kraft.states import SAFE, TV, UNSAFE, UP, broker, state, update

OLD, NEW = release_of("3.9").ranges(), release_of("4.3").ranges()


def written(
    at: ControllerState,
    level: int,
    kind: UpgradeType = UP,
    feature: FeatureName = METADATA_VERSION,
    *,
    dry_run: bool = False,
) -> UpdateDecision:
    """The decision about a single feature."""
    requested = LevelUpdate(feature, FeatureLevel(level), kind)
    return decide_update_as_written("4.3", at, UpdateRequest((requested,), dry_run))


def error(decision: UpdateDecision) -> Errors:
    """The error of the only feature."""
    ((_, answer),) = decision.results
    return answer.error


@pytest.mark.form("document")
def test_a_lossy_downgrade_has_its_own_error_code() -> None:
    """SAFE is refused with UNSAFE_FEATURE_DOWNGRADE and writes nothing (M-09, M-56)."""
    decision = written(state("4.3", 21), 16, SAFE)
    assert error(decision) is Errors.UNSAFE_FEATURE_DOWNGRADE
    assert decision.records == ()
    assert error(written(state("4.3", 21), 22, SAFE)) is Errors.INVALID_UPDATE_VERSION


@pytest.mark.form("document")
def test_unsafe_overrides_the_refusal() -> None:
    """The record of the lower level is written (M-57); a level out of range is not forced."""
    decision = written(state("4.3", 21), 16, UNSAFE)
    assert decision.accepted
    assert decision.records == (FeatureLevelRecord(METADATA_VERSION, FeatureLevel(16)),)
    in_the_way = state("4.3", 21, broker(2, {METADATA_VERSION: (17, 30)}))
    assert error(written(in_the_way, 16, UNSAFE)) is Errors.INVALID_UPDATE_VERSION


@pytest.mark.form("document")
def test_a_lossless_downgrade_must_be_permitted() -> None:
    """NONE performs no downgrade; SAFE does one that loses nothing (M-05, M-52)."""
    at = state("4.3", 21)
    assert error(written(at, 19)) is Errors.INVALID_UPDATE_VERSION
    for kind in (SAFE, UNSAFE):
        assert written(at, 19, kind).records == (
            FeatureLevelRecord(METADATA_VERSION, FeatureLevel(19)),
        )


@pytest.mark.form("document")
@pytest.mark.parametrize("level", [17, 18])
def test_a_permitted_downgrade_must_be_lower(level: int) -> None:
    """A request that allows a downgrade fails if the level is equal or higher (M-06)."""
    for kind in (SAFE, UNSAFE):
        decision = written(state("4.3", 17), level, kind)
        assert error(decision) is Errors.INVALID_UPDATE_VERSION
    assert written(state("4.3", 17), level).accepted


@pytest.mark.form("document")
@pytest.mark.parametrize("level", [0, -1, -32768])
def test_a_level_below_1_deletes(level: int) -> None:
    """Any level below 1 asks for deletion, which must be permitted; 1 is a level (M-04)."""
    at = state("4.3", 30, levels={TV: 2})
    assert not written(at, level, UP, TV).accepted
    assert written(at, level, SAFE, TV).records == (FeatureLevelRecord(TV, FeatureLevel(0)),)
    assert written(at, 1, SAFE, TV).records == (FeatureLevelRecord(TV, FeatureLevel(1)),)


@pytest.mark.form("document")
def test_what_is_safe_is_decided_feature_by_feature() -> None:
    """One request lowers a feature, which loses nothing, and is refused for metadata.version,
    where metadata may be lost (M-07)."""
    updates = (
        LevelUpdate(METADATA_VERSION, FeatureLevel(16), SAFE),
        LevelUpdate(TV, FeatureLevel(1), SAFE),
    )
    decision = decide_update_as_written(
        "4.3", state("4.3", 21, levels={TV: 2}), UpdateRequest(updates)
    )
    errors = {name: answer.error for name, answer in decision.results}
    assert errors == {METADATA_VERSION: Errors.UNSAFE_FEATURE_DOWNGRADE, TV: Errors.NONE}
    assert decision.records == (FeatureLevelRecord(TV, FeatureLevel(1)),)


@pytest.mark.form("document")
@pytest.mark.parametrize("kind", [SAFE, UNSAFE])
def test_metadata_version_cannot_be_deleted(kind: UpgradeType) -> None:
    """KRaft needs a stored metadata.version (M-68)."""
    decision = written(state("4.3", 7), 0, kind)
    assert error(decision) is Errors.INVALID_UPDATE_VERSION
    assert decision.records == ()


@pytest.mark.form("document")
@pytest.mark.parametrize(
    ("supporting", "voters", "accepted"),
    [(1, 1, True), (1, 2, False), (1, 3, False), (2, 3, True), (2, 4, False), (3, 5, True)],
)
def test_a_majority_of_the_quorum_suffices(supporting: int, voters: int, accepted: bool) -> None:
    """Half is too few, and controllers on old software do not block a majority (M-45)."""
    controllers = {node: NEW if node <= supporting else OLD for node in range(1, voters + 1)}
    at = state("4.3", 21, controllers=controllers, quorum=tuple(controllers))
    assert written(at, 25).accepted is accepted


@pytest.mark.form("document")
def test_controllers_that_are_down_do_not_block() -> None:
    """Those that have never registered count as not supporting; the active one must (M-45)."""
    at = state("4.3", 21, controllers={1: NEW, 2: NEW}, quorum=(1, 2, 3))
    assert written(at, 25).accepted
    assert not update("4.3", at, 25).accepted
    alone = state("4.3", 21, controllers={1: NEW}, quorum=(1, 2, 3))
    assert error(written(alone, 25)) is Errors.INVALID_UPDATE_VERSION
    old = state("3.9", 21, controllers={1: OLD, 2: NEW, 3: NEW}, quorum=(1, 2, 3))
    assert error(written(old, 25)) is Errors.INVALID_UPDATE_VERSION


def test_every_broker_must_support_a_level() -> None:
    """The majority is of controllers alone; a fenced broker counts as well."""
    at = state("4.3", 21, broker(5, NEW), broker(6, OLD, fenced=True))
    assert error(written(at, 25)) is Errors.INVALID_UPDATE_VERSION


@pytest.mark.form("document")
def test_a_dry_run_has_the_same_result_and_no_records() -> None:
    """Validated and answered like the real request, nothing is written; false by default
    (M-08)."""
    for level, kind in ((19, SAFE), (16, UNSAFE), (16, SAFE)):
        real = written(state("4.3", 21), level, kind)
        dry = written(state("4.3", 21), level, kind, dry_run=True)
        assert (dry.results, dry.records) == (real.results, ())
        assert bool(real.records) is real.accepted


@pytest.mark.form("document")
def test_the_first_level_is_that_of_meta_properties() -> None:
    """A controller that has met no FeatureLevelRecord writes it, and else nothing (M-39).

    A level of another feature counts, too.
    """
    record = first_record({}, FeatureLevel(19))
    assert record == FeatureLevelRecord(METADATA_VERSION, FeatureLevel(19))
    for feature in (METADATA_VERSION, FeatureName("group.version")):
        assert first_record({feature: FeatureLevel(7)}, FeatureLevel(19)) is None


@pytest.mark.form("document")
def test_a_preview_cluster_begins_at_level_1() -> None:
    """Its file has no level; level 1 is that of KRaft in Kafka 3.0, which has no records that 3.0
    does not know, so that 3.0 can come back (M-40, M-41)."""
    assert first_record({}, None) == FeatureLevelRecord(METADATA_VERSION, FeatureLevel(1))
    first = release_of("3.3").metadata_level(1)
    assert first is not None
    assert (first.name, first.level) == ("3.0-IV1", release_of("3.3").minimum)
    none = ControllerState(state("3.3", 1).id, state("3.3", 1).local, {})
    assert written(none, 1).accepted
    assert error(written(none, 0, SAFE)) is Errors.INVALID_UPDATE_VERSION
