"""Which levels can be lowered again after an upgrade, and which software can start then.

metadata.version can be lowered unless a level in between changed what is stored (KIP-778).
kraft.version can never be lowered (KIP-853), every other feature can. `downgrade_path` covers
levels that would be finalized, `rollback_path` software that was replaced.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from featurewatch.common.text import enumeration
from featurewatch.controller.kraft.releases import Release, production_levels, releases
from featurewatch.controller.levels import level_name
from featurewatch.controller.software import (
    LEARN,
    Direction,
    format_releases,
    software_name,
    startable_releases,
)
from featurewatch.streams.types import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    SupportedRange,
)
from featurewatch.tables.image.nodes import Capabilities

Levels = Mapping[FeatureName, FeatureLevel]

_OFF: Final = FeatureLevel(0)


def lossless_floor(level: FeatureLevel) -> FeatureLevel | None:
    """The lowest metadata.version that can be reached from a level without loss.

    None for a level newer than the table, since what it changed is unknown.
    """
    *_, newest = releases().values()
    if level > newest.levels[-1].level:
        return None
    return min(level, _release_of_level(level).floor(level))


def _release_of_level(level: FeatureLevel) -> Release:
    """The first release with the level in production; the newest release for any other level."""
    levels = production_levels()
    since = levels[level - 1].since if 1 <= level <= len(levels) else None
    return releases()[since] if since else list(releases().values())[-1]


@dataclass(frozen=True, slots=True)
class DowngradePath:
    """How finalizing levels restricts the choice of software.

    ``before`` and ``after`` are the releases whose nodes can start with the current and with the
    target levels. ``lossless``: metadata.version can be lowered again to its current level, and all
    of ``before`` can start then; None where that is not known. ``floor`` is the lowest
    metadata.version that can be reached again without loss, and ``to`` are the releases that can
    start there. ``reason`` is a sentence.
    """

    lossless: bool | None
    before: tuple[str, ...]
    after: tuple[str, ...]
    floor: FeatureLevel
    to: tuple[str, ...]
    reason: str


def downgrade_path(current: Levels, target: Levels) -> DowngradePath | None:
    """The downgrade from target levels back to the current ones.

    None where ``target`` has no metadata.version: levels in ZooKeeper can be lowered as they were
    raised (KIP-584). Kafka refuses every downgrade of metadata.version, an unsafe one too, across a
    level that changed what is stored.
    """
    high = target.get(METADATA_VERSION, _OFF)
    if not high:
        return None
    low = current.get(METADATA_VERSION, _OFF)
    kraft = {name: level for name, level in target.items() if name == KRAFT_VERSION}
    floor = lossless_floor(high) or high
    before, to = startable_releases(current), startable_releases({**kraft, METADATA_VERSION: floor})
    startable = startable_releases({**kraft, METADATA_VERSION: low})
    crossed = bool(low) and (low >= high or _is_lossless(high, low))
    lossless: bool | None = crossed and {*before} <= {*startable}
    if low < high and lossless_floor(high) is None:
        lossless = None
    reason = _reason(current, target, floor, startable=startable, to=to)
    return DowngradePath(lossless, before, startable_releases(target), floor, to, reason)


def _is_lossless(high: FeatureLevel, low: FeatureLevel) -> bool:
    """Whether a downgrade loses nothing; false above production levels, as they may change."""
    return high <= len(production_levels()) and _release_of_level(high).lossless(high, low)


def _reason(
    current: Levels,
    target: Levels,
    floor: FeatureLevel,
    *,
    startable: tuple[str, ...],
    to: tuple[str, ...],
) -> str:
    low, high = current.get(METADATA_VERSION, _OFF), target[METADATA_VERSION]
    kraft = target.get(KRAFT_VERSION, _OFF)
    raised = kraft > current.get(KRAFT_VERSION, _OFF)
    stays = f" kraft.version stays at {kraft}, it cannot be lowered." if raised else ""
    if high < low:
        return f"metadata.version can be raised to {level_name(METADATA_VERSION, low)} again."
    if high == low:
        return f"metadata.version stays at {level_name(METADATA_VERSION, low)}.{stays}"
    if lossless_floor(high) is None:
        return (
            f"Whether there is a way back is not known: metadata.version {high} belongs to a "
            f"release that is not known here; {LEARN}.{stays}"
        )
    if _is_lossless(high, low):
        lost = [
            name for name in startable_releases(current) if name not in startable_releases(target)
        ]
        regained = [name for name in lost if name in startable]
        lost_for_good = [name for name in lost if name not in startable]
        text = (
            f"metadata.version can be lowered to {level_name(METADATA_VERSION, low)} without loss"
        )
        text += f", and {format_releases(regained)} can start again after that" if regained else ""
        return f"{text}.{stays}" + (
            f" {format_releases(lost_for_good)} cannot start any more." if lost_for_good else ""
        )
    changing = [
        level_name(METADATA_VERSION, level.level)
        for level in _release_of_level(high).levels
        if low < level.level <= high and level.changes_metadata
    ]
    changes = enumeration(changing) or "a level in between"
    verb = "change" if len(changing) > 1 else "changes"
    floor_note = (
        f"; down to {level_name(METADATA_VERSION, floor)} it can go, "
        f"where {format_releases(to)} can start"
        if floor < high
        else ""
    )
    return (
        f"There is no way back: {changes} {verb} what is stored, and Kafka refuses every downgrade "
        f"across {'them' if len(changing) > 1 else 'it'}{floor_note}.{stays}"
    )


@dataclass(frozen=True, slots=True)
class RollbackPath:
    """Whether the previous software can be restored without loss, and why.

    ``to`` is the oldest release that can be restored without loss: the previous one where
    ``lossless``, otherwise a newer one; empty where none is known.
    """

    lossless: bool
    to: str
    reason: str


def rollback_path(
    direction: Direction, levels: Levels, before: Sequence[Capabilities], newest: str = ""
) -> RollbackPath:
    """The rollback to the software ``before`` while these levels are finalized.

    ``newest`` is the release that runs now. Levels that older software does not support must be
    lowered first.
    """
    names = ", ".join(map(software_name, before))
    if direction is Direction.DOWNGRADE:
        return RollbackPath(
            True, names, f"Nodes may be upgraded to {names} again, then levels raised."
        )
    excluded = {
        feature: level
        for feature, level in sorted(levels.items())
        if not all(capabilities.ranges.of(feature).includes(level) for capabilities in before)
    }
    if not excluded:
        return RollbackPath(True, names, f"No finalized level excludes {names}: nodes may go back.")
    obstacles = [*_obstacles(excluded, before, names)]
    if obstacles:
        return RollbackPath(False, _oldest(levels) or newest, " ".join(obstacles))
    lower = ", ".join(
        f"{feature} to {level_name(feature, _highest(before, feature))}" for feature in excluded
    )
    return RollbackPath(True, names, f"Once {lower} is lowered, nodes may go back to {names}.")


def _obstacles(excluded: Levels, before: Sequence[Capabilities], names: str) -> Iterator[str]:
    level = excluded.get(METADATA_VERSION)
    if level is not None:
        floor, label = lossless_floor(level), level_name(METADATA_VERSION, level)
        if floor is None:
            yield f"What {METADATA_VERSION} {label} changed is not known."
        elif floor > _highest(before, METADATA_VERSION):
            lowest = level_name(METADATA_VERSION, floor)
            yield (
                f"{METADATA_VERSION} {label} is not lowered below {lowest} without loss, "
                f"and {names} does not support that."
            )
    if KRAFT_VERSION in excluded:
        label = level_name(KRAFT_VERSION, excluded[KRAFT_VERSION])
        yield f"{KRAFT_VERSION} {label} is never lowered, and {names} does not support it."


def _highest(before: Sequence[Capabilities], feature: FeatureName) -> FeatureLevel:
    return FeatureLevel(min(capabilities.ranges.of(feature).maximum for capabilities in before))


def _oldest(levels: Levels) -> str | None:
    """The oldest release that can run these levels after they are lowered without loss."""
    level, kraft = levels.get(METADATA_VERSION), levels.get(KRAFT_VERSION)
    floor = None if level is None else lossless_floor(level)
    if level is None or floor is None:
        return None
    for release in releases().values():
        overlaps = release.supported.of(METADATA_VERSION).overlaps(SupportedRange(floor, level))
        if overlaps and (kraft is None or release.supported.of(KRAFT_VERSION).includes(kraft)):
            return release.name
    return None
