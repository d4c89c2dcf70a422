"""Decisions on requests, in each form of KIP-584."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from featurewatch.reference.zookeeper.machines.broker import BrokerIdentity, ReferenceBroker
from featurewatch.reference.zookeeper.machines.controller.live_brokers import (
    LiveBroker,
    LiveBrokers,
)
from featurewatch.reference.zookeeper.machines.dialect import (
    DIALECTS,
    EARLY_DRAFT,
    LATER_DRAFT,
    RELEASED,
    RELEASED_1,
    Dialect,
)
from featurewatch.reference.zookeeper.machines.encoding import encode_features
from featurewatch.reference.zookeeper.machines.features.items import UpdateContext
from featurewatch.reference.zookeeper.machines.features.updates import ALL_FAILED, decide
from featurewatch.reference.zookeeper.machines.requests import (
    DeleteFeatures,
    EarlyUpdate,
    ErrorCode,
    LaterUpdate,
    ReleasedUpdate,
    Update,
    UpdateFeatures,
    UpdateResponse,
)
from featurewatch.reference.zookeeper.machines.zookeeper import Create
from featurewatch.streams.types import FeatureName, SupportedRange, UpgradeType
from featurewatch.tables.image.nodes import intern_capabilities
from tests.reference.zookeeper.machines.driving import Driver
from tests.reference.zookeeper.machines.results import succeeded

LEVELS = {"alpha": 2, "beta": 1}


def capabilities_of(**ranges: tuple[int, int]) -> Any:
    """The capabilities object of these ranges."""
    return intern_capabilities({FeatureName(name): span for name, span in ranges.items()})


def context(dialect: Dialect, **levels: int) -> UpdateContext:
    """A controller and brokers 1 and 2 that support alpha 1-4 and beta 1-3; 3 lacks gamma."""
    local = capabilities_of(alpha=(1, 4), beta=(1, 3), gamma=(2, 2))
    lacking = capabilities_of(alpha=(1, 4), beta=(1, 3))
    return UpdateContext(dialect, levels or LEVELS, {local: {1, 2}, lacking: {3}}, local)


@pytest.mark.form("released")
@pytest.mark.parametrize(
    ("item", "message"),
    [
        (ReleasedUpdate("", 1), "Feature name can not be empty."),
        (ReleasedUpdate("alpha", 3, upgrade_type=7), "Received unknown upgrade type."),
        (
            ReleasedUpdate("zeta", 0, upgrade_type=2),
            "Can not delete non-existing finalized feature.",
        ),
        (
            ReleasedUpdate("alpha", 0),
            "Can not provide versionLevel: 0 less than 1 without setting the SAFE downgradeType in"
            " the request.",
        ),
        (
            ReleasedUpdate("alpha", 2),
            "Can not upgrade a finalized feature from existing versionLevel:2 to the same value.",
        ),
        (
            ReleasedUpdate("alpha", 2, upgrade_type=2),
            "Can not downgrade a finalized feature from existing versionLevel:2 to the same value.",
        ),
        (
            ReleasedUpdate("alpha", 1),
            "Can not downgrade finalized feature from existing versionLevel:2 to provided"
            " versionLevel:1 without setting the downgradeType to SAFE in the request.",
        ),
        (
            ReleasedUpdate("alpha", 1, upgrade_type=3),
            "Can not downgrade finalized feature from existing versionLevel:2 to provided"
            " versionLevel:1 without setting the downgradeType to SAFE in the request.",
        ),
        (
            ReleasedUpdate("alpha", 3, upgrade_type=2),
            "When the downgradeType is set to SAFE in the request, the provided versionLevel:3 can"
            " not be greater than existing versionLevel:2.",
        ),
        (
            ReleasedUpdate("zeta", 1),
            "Could not apply finalized feature update because the provided feature is not"
            " supported.",
        ),
        (
            ReleasedUpdate("alpha", 5),
            "Could not apply finalized feature update because the provided versionLevel:5 is lower"
            " than the supported minVersion:1.",
        ),
        (
            ReleasedUpdate("gamma", 2),
            "Could not apply finalized feature update because brokers were found to have"
            " incompatible versions for the feature.",
        ),
        (ReleasedUpdate("alpha", 3), None),
        (ReleasedUpdate("alpha", 1, upgrade_type=2), None),
        (ReleasedUpdate("alpha", 0, upgrade_type=3), None),
    ],
)
def test_released_texts(item: ReleasedUpdate, message: str | None) -> None:
    """Each rejection has the text of KafkaController 3.9 (F-25 as released, F-36 as released)."""
    (result,) = decide(context(RELEASED), UpdateFeatures((item,))).response.results
    assert result.message == (message or "NONE")
    assert result.error is (ErrorCode.INVALID_REQUEST if message else ErrorCode.NONE)


@pytest.mark.form("released")
@pytest.mark.parametrize("level", [0, -1])
def test_a_level_below_1_deletes_in_released_kafka(level: int) -> None:
    """There is no type for it, and it must be permitted as a downgrade is (F-23 as released)."""
    deletion = UpdateFeatures((ReleasedUpdate("alpha", level, upgrade_type=2),))
    assert decide(context(RELEASED), deletion).levels == {"beta": 1}
    raised = UpdateFeatures((ReleasedUpdate("alpha", level, upgrade_type=1),))
    assert decide(context(RELEASED), raised).levels is None


@pytest.mark.form("released")
def test_version_0_has_a_flag_in_place_of_the_type() -> None:
    """In version 0 ``allow_downgrade`` is a safe downgrade, and the type is ignored (F-24 as
    released)."""
    down = UpdateFeatures((ReleasedUpdate("alpha", 1, True, UpgradeType.UPGRADE),), version=0)
    assert decide(context(RELEASED), down).levels == {"alpha": 1, "beta": 1}
    not_down = UpdateFeatures((ReleasedUpdate("alpha", 1, False, 2),), version=0)
    assert decide(context(RELEASED), not_down).levels is None


@pytest.mark.form("released")
def test_version_2_has_one_result_for_all() -> None:
    """Kafka 4.0 returns the first feature's error, without results (F-26 as released, F-30 as
    released)."""
    items = (ReleasedUpdate("beta", 2), ReleasedUpdate("alpha", 2), ReleasedUpdate("zeta", 1))
    decision = decide(context(RELEASED), UpdateFeatures(items, version=2))
    assert decision.levels is None
    assert decision.response == UpdateResponse(
        ErrorCode.INVALID_REQUEST,
        ALL_FAILED.format(
            "Can not upgrade a finalized feature from existing versionLevel:2 to the same value."
        ),
    )
    good = decide(context(RELEASED), UpdateFeatures(items[:1], version=2))
    assert (good.levels, good.response) == ({"alpha": 2, "beta": 2}, UpdateResponse())


@pytest.mark.form("document")
def test_the_later_draft_names_every_item_that_fails_and_every_broker() -> None:
    """FEATURE_UPDATES_FAILED has each reason; a success has no code and no text (F-26, F-31)."""
    items = (LaterUpdate("gamma", 2), LaterUpdate("beta", 2), LaterUpdate("alpha", 1))
    decision = decide(context(LATER_DRAFT), UpdateFeatures(items))
    assert decision.response == UpdateResponse(
        ErrorCode.FEATURE_UPDATES_FAILED,
        "gamma: Level 2 is not supported by 1 brokers: 3."
        " alpha: Going from level 2 down to 1 must be allowed.",
    )
    good = decide(context(LATER_DRAFT), UpdateFeatures(items[1:2]))
    assert (good.response.error, good.response.message) == (ErrorCode.NONE, None)


def test_an_item_of_another_form_is_rejected() -> None:
    """So is DELETE_FEATURES in dialects without it."""
    items: dict[Dialect, Update] = {
        RELEASED: LaterUpdate("alpha", 3),
        LATER_DRAFT: EarlyUpdate("alpha", 3),
        EARLY_DRAFT: ReleasedUpdate("alpha", 3),
    }
    for dialect, item in items.items():
        assert not succeeded(decide(context(dialect), UpdateFeatures((item,))).response)
    for dialect in (RELEASED, LATER_DRAFT):
        assert decide(context(dialect), DeleteFeatures(("alpha",))).levels is None
    twice = (LaterUpdate("alpha", 3), LaterUpdate("alpha", 4))
    assert not succeeded(decide(context(LATER_DRAFT), UpdateFeatures(twice)).response)


NAMES = st.sampled_from(["alpha", "beta", "gamma", "delta"])
NUMBERS = st.integers(-1, 5)
RANGES = st.dictionaries(NAMES, st.builds(SupportedRange, st.integers(0, 2), st.integers(2, 5)))
ITEMS: dict[str, st.SearchStrategy[Update]] = {
    "released": st.builds(ReleasedUpdate, NAMES, NUMBERS, st.booleans(), st.integers(0, 3)),
    "later-draft": st.builds(LaterUpdate, NAMES, NUMBERS, st.booleans()),
    "early-draft": st.builds(EarlyUpdate, NAMES, NUMBERS, st.integers(0, 3)),
}
ITEMS["released-1"] = ITEMS["kip-778"] = ITEMS["released"]


@pytest.mark.form("document", "released")
@given(st.data(), st.sampled_from([*DIALECTS]))
def test_decisions_hold_for_every_broker(data: st.DataObject, name: str) -> None:
    """Each level that a decision changes is in all ranges of the live set (F-33, F-35, F-37).

    No level is lowered without permission, no unnamed feature changes, and if all items must be
    valid, nothing is written if one is not (F-30, F-36).
    """
    dialect = DIALECTS[name]
    groups = data.draw(st.lists(RANGES, max_size=3))
    accepted = {capabilities_of(**ranges): {number} for number, ranges in enumerate(groups)}
    levels = data.draw(st.dictionaries(NAMES, st.integers(max(1, dialect.lowest_level), 5)))
    local = capabilities_of(**data.draw(RANGES))
    items = data.draw(st.lists(ITEMS[name], max_size=4, unique_by=_name))
    version = data.draw(st.integers(0, 2)) if dialect.per_item else 1
    decision = decide(
        UpdateContext(dialect, levels, accepted, local), UpdateFeatures((*items,), version=version)
    )
    is_atomic = not dialect.per_item or version == 2
    if decision.levels is None:
        return
    assert succeeded(decision.response) or not is_atomic
    for feature in {*levels, *decision.levels}:
        before, after = levels.get(feature), decision.levels.get(feature)
        if before == after:
            continue
        item = next(item for item in items if _name(item) == feature)
        if before is not None and (after is None or after < before):
            assert _downward(item, version)
        if after is not None:
            for ranges in groups:
                assert ranges[feature][0] <= after <= ranges[feature][1]


def _name(item: Update) -> str:
    return item.feature if isinstance(item, ReleasedUpdate) else item.name


def _downward(item: Update, version: int) -> bool:
    match item:
        case ReleasedUpdate():
            return item.allow_downgrade if version == 0 else item.upgrade_type in (2, 3)
        case LaterUpdate():
            return item.allow_downgrade
        case EarlyUpdate():
            return item.update_type in (1, 2)


@pytest.mark.form("document")
@given(st.sets(NAMES), st.sets(NAMES, min_size=1))
def test_deletion_needs_no_range(finalized: set[str], named: set[str]) -> None:
    """A finalized feature is deleted whoever supports it; if one name is not finalized, none is
    deleted (F-51, F-53)."""
    situation = UpdateContext(
        EARLY_DRAFT, dict.fromkeys(finalized, 3), {capabilities_of(): {1}}, capabilities_of()
    )
    decision = decide(situation, DeleteFeatures((*named,)))
    if named <= finalized:
        assert decision.levels == dict.fromkeys(finalized - named, 3)
    else:
        assert (decision.levels, decision.response.error) == (None, ErrorCode.INVALID_REQUEST)


@given(RANGES, st.dictionaries(NAMES, st.integers(1, 5), max_size=2), st.sampled_from([*DIALECTS]))
def test_broker_and_controller_agree(
    ranges: dict[str, SupportedRange], levels: dict[str, int], name: str
) -> None:
    """Three checks exclude the same brokers (F-39).

    They are the broker's at its start, the controller's when that broker joins, and the
    controller's when it decides on those levels with the broker registered.
    """
    dialect = DIALECTS[name]
    assume(all(map(dialect.is_valid_range, ranges.values())))  # others do not start at all
    driver = Driver(ReferenceBroker(BrokerIdentity(4), dialect, ranges))
    driver.history.write(0, Create(dialect.path, encode_features(dialect, levels)))
    driver.start()
    live = LiveBrokers(dialect)
    accepted = live.put(4, LiveBroker(capabilities_of(**ranges), 1), levels)
    assert accepted is not bool(driver.exits)
    every = capabilities_of(**dict.fromkeys(["alpha", "beta", "gamma", "delta"], (1, 5)))
    situation = UpdateContext(dialect, {}, {capabilities_of(**ranges): {4}}, every)
    items: dict[str, Callable[[str, int], Update]] = {
        "early-draft": EarlyUpdate,
        "later-draft": LaterUpdate,
    }
    make = items.get(name, ReleasedUpdate)
    updates = tuple(make(feature, level) for feature, level in levels.items())
    assert succeeded(decide(situation, UpdateFeatures(updates)).response) is accepted


@pytest.mark.form("document")
def test_ranges_of_the_early_draft_begin_at_0() -> None:
    """0 is an ordinary level and end of a range; a reversed or negative range is invalid (F-03)."""
    valid = [(0, 0), (0, 3), (1, 1), (2, 7)]
    for bounds in valid:
        assert EARLY_DRAFT.is_valid_range(SupportedRange(*bounds))
        assert _finalizes(EARLY_DRAFT, bounds, bounds[0])
    for bounds in [(-1, 3), (-2, -1), (3, 2), (0, -1)]:
        assert not EARLY_DRAFT.is_valid_range(SupportedRange(*bounds))
        assert not _finalizes(EARLY_DRAFT, bounds, 2)


@pytest.mark.parametrize("dialect", [LATER_DRAFT, RELEASED_1])
def test_ranges_begin_at_1(dialect: Dialect) -> None:
    """In the later draft, and in ZooKeeper mode up to Kafka 3.8, both ends are 1 or more (F-04,
    F-04 as released): no level is in another range."""
    for bounds in [(1, 1), (1, 3), (2, 7)]:
        assert dialect.is_valid_range(SupportedRange(*bounds))
        assert _finalizes(dialect, bounds, bounds[1])
    for bounds in [(0, 3), (0, 0), (-1, 3), (3, 2), (1, 0)]:
        assert not dialect.is_valid_range(SupportedRange(*bounds))
        assert not _finalizes(dialect, bounds, 2)


@pytest.mark.form("released")
def test_ranges_of_kafka_3_9_begin_at_0() -> None:
    """Also in ZooKeeper mode, as its own feature command shows (F-04 as released)."""
    for bounds in [(0, 3), (1, 3)]:
        assert RELEASED.is_valid_range(SupportedRange(*bounds))
        assert _finalizes(RELEASED, bounds, 3)
    for bounds in [(-1, 3), (3, 2), (1, 0)]:
        assert not RELEASED.is_valid_range(SupportedRange(*bounds))
        assert not _finalizes(RELEASED, bounds, 2)


def _finalizes(dialect: Dialect, bounds: tuple[int, int], level: int) -> bool:
    """Whether a level can be finalized with a broker that advertises a range."""
    every = capabilities_of(alpha=(0 if dialect is EARLY_DRAFT else 1, 9))
    situation = UpdateContext(dialect, {}, {capabilities_of(alpha=bounds): {4}}, every)
    items: dict[str, Callable[[str, int], Update]] = {
        "early-draft": EarlyUpdate,
        "later-draft": LaterUpdate,
    }
    make = items.get(dialect.name, ReleasedUpdate)
    return succeeded(decide(situation, UpdateFeatures((make("alpha", level),))).response)


@pytest.mark.form("document")
def test_the_early_draft_reports_the_first_failed_item() -> None:
    """Of several, in the request's order, whatever its name or error; a top-level error comes
    before any (F-74)."""
    bad = [EarlyUpdate("zeta", 9), EarlyUpdate("alpha", 9), EarlyUpdate("beta", 7)]
    for items in (bad, bad[::-1], [EarlyUpdate("alpha", 3), bad[0], bad[2]]):
        response = decide(context(EARLY_DRAFT), UpdateFeatures(tuple(items))).response
        first = next(item for item in items if item in bad)
        assert response.error is ErrorCode.INVALID_REQUEST
        assert (response.message or "").startswith(f"{first.name}: ")
        assert not any(f" {item.name}: " in (response.message or "") for item in bad)


@pytest.mark.form("document")
def test_the_later_draft_reports_all_failed_items() -> None:
    """Each of them is in the error of the request (F-74)."""
    bad = [LaterUpdate("zeta", 9, False), LaterUpdate("alpha", 9, False)]
    response = decide(
        context(LATER_DRAFT), UpdateFeatures((LaterUpdate("beta", 2, False), *bad))
    ).response
    assert response.error is ErrorCode.FEATURE_UPDATES_FAILED
    message = response.message or ""
    assert ("zeta: " in message, "alpha: " in message, "beta: " in message) == (True, True, False)


def test_a_dry_run_decides_and_writes_nothing() -> None:
    """``validate_only`` has the same response as a real update."""
    items = (ReleasedUpdate("alpha", 3), ReleasedUpdate("beta", 9))
    real = decide(context(RELEASED), UpdateFeatures(items))
    dry = decide(context(RELEASED), UpdateFeatures(items, validate_only=True))
    assert (dry.response, dry.levels) == (real.response, None)
    assert real.levels == {"alpha": 3, "beta": 1}
