"""KIP-778 as written, where released Kafka decides differently (`updates`). Pure.

The document refuses a downgrade that may lose metadata with a specific error, and lets UNSAFE
override it; of the controllers it needs a majority to support a level, not all of them; and a
cluster's first level comes from ``meta.properties``.
"""

from collections.abc import Mapping
from typing import Final

from featurewatch.controller.kraft.map_order import by_name
from featurewatch.controller.kraft.releases import Release, release_of
from featurewatch.controller.kraft.requests import (
    ACCEPTED,
    ApiError,
    Errors,
    FeatureLevelRecord,
    LevelUpdate,
    UpdateDecision,
    UpdateRequest,
    rejected,
)
from featurewatch.controller.kraft.state import ControllerState
from featurewatch.streams.types import (
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    UpgradeType,
)

PREVIEW_LEVEL: Final = FeatureLevel(1)
"""The level of a cluster that was formatted without one: that of KRaft in Kafka 3.0."""


def first_record(
    levels: Mapping[FeatureName, FeatureLevel], formatted: FeatureLevel | None
) -> FeatureLevelRecord | None:
    """The record that an active controller writes when it has loaded its state.

    ``levels`` come from the log's FeatureLevelRecords, ``formatted`` from ``meta.properties``, None
    if that has no level, as in a preview cluster. Returns None if the log has any level.
    """
    if levels:
        return None
    return FeatureLevelRecord(METADATA_VERSION, formatted or PREVIEW_LEVEL)


def decide_update_as_written(
    release: str, state: ControllerState, request: UpdateRequest
) -> UpdateDecision:
    """The response of an active controller that follows KIP-778, and the records it appends.

    ``release`` is that of its software, which knows the levels. Each feature succeeds or fails by
    itself; a dry run has the same results and no records.

    Raises:
        UnknownReleaseError: if the release is unknown.
    """
    software = release_of(release)
    results: dict[FeatureName, ApiError] = {}
    records: list[FeatureLevelRecord] = []
    for feature, update in request.by_feature().items():
        results[feature] = _decide(software, state, update)
        if results[feature].accepted:
            records.append(FeatureLevelRecord(feature, FeatureLevel(max(0, update.level))))
    return UpdateDecision(
        ACCEPTED,
        tuple((FeatureName(name), results[FeatureName(name)]) for name in by_name(results)),
        () if request.dry_run else tuple(records),
    )


def _decide(software: Release, state: ControllerState, update: LevelUpdate) -> ApiError:
    level = FeatureLevel(max(0, update.level))  # below 1 asks for deletion
    is_metadata = update.feature == METADATA_VERSION
    current = state.levels.get(update.feature, PREVIEW_LEVEL if is_metadata else FeatureLevel(0))
    reason = _direction(update.kind, level, current)
    if is_metadata and level == 0:
        reason = reason or "KRaft needs a metadata.version, so it cannot be deleted."
    if level > 0:
        reason = reason or _brokers_without(state, update.feature, level)
        reason = reason or _quorum_without(state, update.feature, level)
    if reason:
        return rejected(Errors.INVALID_UPDATE_VERSION, f"{update.feature}={level}: {reason}")
    is_lossy = is_metadata and not software.lossless(current, level)
    if is_lossy and update.kind is not UpgradeType.UNSAFE_DOWNGRADE:
        return rejected(
            Errors.UNSAFE_FEATURE_DOWNGRADE,
            f"The downgrade of {update.feature} from {current} to {level} may lose metadata.",
        )
    return ACCEPTED


def _direction(kind: UpgradeType, level: int, current: int) -> str | None:
    if kind is UpgradeType.UNKNOWN:
        return "The type of the downgrade is not 0, 1 or 2."
    if kind is UpgradeType.UPGRADE:
        return None if level >= current else f"Going down from level {current} must be allowed."
    return None if level < current else f"A downgrade must be below the level {current}."


def _brokers_without(state: ControllerState, feature: FeatureName, level: int) -> str | None:
    for broker in sorted(state.brokers, key=lambda registered: registered.id):
        if not broker.ranges.of(feature).includes(level):
            return f"Broker {broker.id} does not support it."
    return None


def _quorum_without(state: ControllerState, feature: FeatureName, level: int) -> str | None:
    """The active controller supports the level, and a majority of the quorum does."""
    if not state.local.of(feature).includes(level):
        return "The active controller does not support it."
    ranges = {controller.id: controller.ranges for controller in state.controllers}
    ranges[state.id] = state.local
    quorum = state.quorum or tuple(ranges)
    supporting = sum(
        voter in ranges and ranges[voter].of(feature).includes(level) for voter in quorum
    )
    if supporting > len(quorum) // 2:
        return None
    return f"{supporting} of {len(quorum)} controllers support it, which is no majority."
