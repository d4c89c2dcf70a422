"""Parses the updates from the options, as ``FeatureCommand`` does."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from featurewatch.admin.features.updates import DowngradeType, FeatureUpdate
from featurewatch.cli.kafka_tools.errors import KafkaToolError
from featurewatch.cli.kafka_tools.features import KafkaFeaturesTool
from featurewatch.kafka.advisories import advisory_entries
from featurewatch.streams.types import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    UpgradeType,
)

UPGRADE, DOWNGRADE, DISABLE, DELETE = "upgrade", "downgrade", "disable", "delete"

_RELEASE_VERSION_FAULT: Final = "KAFKA-21426"
_DEPRECATED: Final = " `metadata` flag is deprecated and may be removed in a future release."


class LevelOptions(NamedTuple):
    """The options of ``upgrade`` and ``downgrade`` that name levels."""

    features: Sequence[str] | None = None
    metadata: str | None = None
    release_version: str | None = None
    unsafe: bool = False


def parse_level_updates(
    tool: KafkaFeaturesTool, operation: str, options: LevelOptions, say: Callable[[str], None]
) -> tuple[FeatureUpdate, ...]:
    """The updates of ``upgrade`` and ``downgrade``; ``say`` prints a line.

    Raises:
        KafkaToolError: With the tool's own text.
    """
    kind = UpgradeType.UPGRADE if operation == UPGRADE else downgrade_type(options.unsafe)
    metadata, version = options.metadata, options.release_version
    if version is not None:
        if metadata is not None or options.features:
            raise KafkaToolError("Can not specify `release-version` with other feature flags.")
        return _of_release(tool, version, kind)
    updates: dict[FeatureName, FeatureUpdate] = {}
    if metadata is not None:
        if tool.deprecates_metadata:
            say(_DEPRECATED)
        updates[METADATA_VERSION] = _update(METADATA_VERSION, tool.level_of(metadata), kind)
    for text in options.features or ():
        name, level = tool.named_level(text)
        _add(updates, _update(name, level, kind))
    return _checked(updates, operation)


def release_version_note(options: LevelOptions, updates: Iterable[FeatureUpdate]) -> str | None:
    """The known fault of an upgrade by ``--release-version``, if this one has it (KAFKA-21426)."""
    raised = any(
        update.feature == KRAFT_VERSION and update.kind is UpgradeType.UPGRADE for update in updates
    )
    if options.release_version is None or not raised:
        return None
    (entry,) = (one for one in advisory_entries() if one.id == _RELEASE_VERSION_FAULT)
    return f"known fault {entry.id}: {entry.fault} {entry.advice}"


def parse_removals(
    operation: str, features: Iterable[str] | None, *, unsafe: bool = False
) -> tuple[FeatureUpdate, ...]:
    """The updates of ``disable`` and ``delete``: level 0; raises `KafkaToolError`."""
    updates: dict[FeatureName, FeatureUpdate] = {}
    for name in features or ():
        _add(updates, FeatureUpdate(FeatureName(name), FeatureLevel(0), downgrade_type(unsafe)))
    return _checked(updates, operation)


def downgrade_type(unsafe: bool) -> UpgradeType:
    """``--unsafe``, in KIP-778's DowngradeType 2 instead of 1."""
    return (DowngradeType.UNSAFE if unsafe else DowngradeType.SAFE).upgrade_type


def _of_release(
    tool: KafkaFeaturesTool, version: str, kind: UpgradeType
) -> tuple[FeatureUpdate, ...]:
    level = tool.level_of(version)
    updates = [_update(METADATA_VERSION, level, kind)]
    for name, default in tool.default_levels(level):
        # An upgrade to level 0 would change nothing.
        if default > 0 or kind is not UpgradeType.UPGRADE:
            updates.append(_update(name, default, kind))
    return tuple(updates)


def _update(name: FeatureName, level: FeatureLevel, kind: UpgradeType) -> FeatureUpdate:
    """As ``FeatureUpdate`` is made, which refuses what no controller could take."""
    if level == 0 and kind is UpgradeType.UPGRADE:
        raise KafkaToolError(
            "The upgradeType flag should be set to SAFE_DOWNGRADE or UNSAFE_DOWNGRADE when the "
            f"provided maxVersionLevel:{level} is < 1."
        )
    if level < 0:
        raise KafkaToolError("Cannot specify a negative version level.")
    return FeatureUpdate(name, level, kind)


def _add(updates: dict[FeatureName, FeatureUpdate], update: FeatureUpdate) -> None:
    if update.feature in updates:
        raise KafkaToolError(f"Feature {update.feature} was specified more than once.")
    updates[update.feature] = update


def _checked(
    updates: dict[FeatureName, FeatureUpdate], operation: str
) -> tuple[FeatureUpdate, ...]:
    if not updates:
        raise KafkaToolError(f"You must specify at least one feature to {operation}")
    if any(not name.strip() for name in updates):
        raise KafkaToolError("Provided feature can not be empty.")
    return tuple(updates.values())
