"""The rules for one item in released Kafka 2.7 to 3.9, with its texts (``KafkaController``).

Kafka's oddities are kept: the error for a level above the supported maximum speaks of the minimum,
and an unsafe downgrade of a level is rejected like an upgrade request, while an unsafe deletion is
accepted. One is not: Kafka ignores ``validate_only``, so that a dry run writes; here it does not.
"""

from featurewatch.reference.zookeeper.machines.compatibility import is_compatible
from featurewatch.reference.zookeeper.machines.features.items import (
    ItemDecision,
    UpdateContext,
    reject,
)
from featurewatch.reference.zookeeper.machines.requests import (
    ErrorCode,
    ItemResult,
    ReleasedUpdate,
    Update,
)
from featurewatch.streams.types import UpgradeType


def check_released_update(context: UpdateContext, update: Update, version: int) -> ItemDecision:
    """``KafkaController.validateFeatureUpdate``."""
    if not isinstance(update, ReleasedUpdate):
        return reject(update.name, "The item is of another form of UpdateFeatures.")
    feature, level, kind = update.feature, update.max_version_level, _kind(update, version)
    if not feature:
        return reject(feature, "Feature name can not be empty.")
    if kind is UpgradeType.UNKNOWN:
        return reject(feature, "Received unknown upgrade type.")
    existing = context.levels.get(feature)
    if level < 1:
        return _deletion(feature, level, existing, kind)
    error = None if existing is None else _direction_error(existing, level, kind)
    return reject(feature, error) if error else _supported(context, feature, level)


def _kind(update: ReleasedUpdate, version: int) -> UpgradeType:
    if version == 0:
        return UpgradeType.SAFE_DOWNGRADE if update.allow_downgrade else UpgradeType.UPGRADE
    try:
        return UpgradeType(update.upgrade_type)
    except ValueError:
        return UpgradeType.UNKNOWN


def _deletion(feature: str, level: int, existing: int | None, kind: UpgradeType) -> ItemDecision:
    if kind is UpgradeType.UPGRADE:
        return reject(
            feature,
            f"Can not provide versionLevel: {level} less than 1 without setting the SAFE"
            " downgradeType in the request.",
        )
    if existing is None:
        return reject(feature, "Can not delete non-existing finalized feature.")
    return _accept(feature, None)


def _direction_error(existing: int, level: int, kind: UpgradeType) -> str | None:
    if level == existing:
        verb = "downgrade" if kind is UpgradeType.SAFE_DOWNGRADE else "upgrade"
        return (
            f"Can not {verb} a finalized feature from existing versionLevel:{existing}"
            " to the same value."
        )
    if level < existing and kind is not UpgradeType.SAFE_DOWNGRADE:
        return (
            f"Can not downgrade finalized feature from existing versionLevel:{existing} to"
            f" provided versionLevel:{level} without setting the downgradeType to SAFE in the"
            " request."
        )
    if level > existing and kind is not UpgradeType.UPGRADE:
        return (
            "When the downgradeType is set to SAFE in the request, the provided"
            f" versionLevel:{level} can not be greater than existing versionLevel:{existing}."
        )
    return None


def _supported(context: UpdateContext, feature: str, level: int) -> ItemDecision:
    """``newFinalizedVersionOrIncompatibilityError``."""
    prefix = "Could not apply finalized feature update because"
    ranges = {str(name): span for name, span in context.local.ranges.items()}
    if feature not in ranges:
        return reject(feature, f"{prefix} the provided feature is not supported.")
    if not is_compatible(context.dialect, context.local, feature, level):
        return reject(
            feature,
            f"{prefix} the provided versionLevel:{level} is lower than the supported"
            f" minVersion:{ranges[feature][0]}.",
        )
    if context.incompatible_brokers(feature, level):
        return reject(
            feature, f"{prefix} brokers were found to have incompatible versions for the feature."
        )
    return _accept(feature, level)


def _accept(feature: str, level: int | None) -> ItemDecision:
    """An accepted item; its message is ``NONE``, from Kafka's ``new ApiError(Errors.NONE)``."""
    return ItemDecision(ItemResult(feature, message=ErrorCode.NONE.name), level)
