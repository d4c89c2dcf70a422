"""What leads back after an upgrade: which levels can be lowered, and which software can start then.

metadata.version can be lowered as long as no level on the way changed what is stored (KIP-778);
kraft.version never (KIP-853); all other features can. `downgrade_path` is about levels that would
be finalized, `rollback_path` about software that was replaced.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from featurewatch.controller.kraft.releases import Release, production_levels, releases
from featurewatch.controller.levels import level_name
from featurewatch.controller.software import (
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
    """The lowest metadata.version that is reached from a level without loss.

    None for a level that is newer than the table: it is not known what it changed.
    """
    *_, newest = releases().values()
    if level > newest.levels[-1].level:
        return None
    return min(level, _release_of_level(level).floor(level))


def _release_of_level(level: FeatureLevel) -> Release:
    """The release that first had a level in production; the newest for any other level."""
    known = production_levels()
    since = known[level - 1].since if 1 <= level <= len(known) else None
    return releases()[since] if since else list(releases().values())[-1]


@dataclass(frozen=True, slots=True)
class DowngradePath:
    """What finalizing does to the choice of software.

    ``before`` and ``after`` are the releases whose nodes can start with the levels as they are and
    as they would be. ``lossless`` tells whether metadata.version can be lowered again to where it
    is, and all of ``before`` can start then. ``floor`` is the lowest metadata.version that is
    reached again without loss, and ``to`` are the releases that can start there. ``why`` is a
    sentence.
    """

    lossless: bool
    before: tuple[str, ...]
    after: tuple[str, ...]
    floor: FeatureLevel
    to: tuple[str, ...]
    why: str


def downgrade_path(now: Levels, then: Levels) -> DowngradePath | None:
    """The way from levels that would be finalized back to those that are.

    None where metadata.version is not among them: what ZooKeeper holds can be lowered as it was
    raised (KIP-584). Kafka refuses every downgrade of metadata.version across a level that changed
    what is stored, the unsafe ones too.
    """
    high = then.get(METADATA_VERSION, _OFF)
    if not high:
        return None
    low = now.get(METADATA_VERSION, _OFF)
    kraft = {name: level for name, level in then.items() if name == KRAFT_VERSION}
    floor = lossless_floor(high) or high
    before, to = startable_releases(now), startable_releases({**kraft, METADATA_VERSION: floor})
    again = startable_releases({**kraft, METADATA_VERSION: low})
    crossed = bool(low) and (low >= high or _is_lossless(high, low))
    lossless = crossed and {*before} <= {*again}
    why = _why(now, then, floor, again=again, to=to)
    return DowngradePath(lossless, before, startable_releases(then), floor, to, why)


def _is_lossless(high: FeatureLevel, low: FeatureLevel) -> bool:
    """What a level does is a fact when it is in production, and not before."""
    return high <= len(production_levels()) and _release_of_level(high).lossless(high, low)


def _why(
    now: Levels, then: Levels, floor: FeatureLevel, *, again: tuple[str, ...], to: tuple[str, ...]
) -> str:
    low, high = now.get(METADATA_VERSION, _OFF), then[METADATA_VERSION]
    kraft = then.get(KRAFT_VERSION, _OFF)
    raised = kraft > now.get(KRAFT_VERSION, _OFF)
    stays = f" kraft.version stays at {kraft}, it cannot be lowered." if raised else ""
    if high < low:
        return f"metadata.version can be raised to {level_name(METADATA_VERSION, low)} again."
    if high == low:
        return f"metadata.version stays at {level_name(METADATA_VERSION, low)}.{stays}"
    if _is_lossless(high, low):
        lost = [name for name in startable_releases(now) if name not in startable_releases(then)]
        back = [name for name in lost if name in again]
        never = [name for name in lost if name not in again]
        text = (
            f"metadata.version can be lowered to {level_name(METADATA_VERSION, low)} without loss"
        )
        text += f", and {format_releases(back)} can start again after that" if back else ""
        return f"{text}.{stays}" + (
            f" {format_releases(never)} cannot start any more." if never else ""
        )
    changing = [
        level_name(METADATA_VERSION, level.level)
        for level in _release_of_level(high).levels
        if low < level.level <= high and level.changes_metadata
    ]
    what = " and ".join(changing) or "a level that is newer than the table"
    verb = "change" if len(changing) > 1 else "changes"
    reach = (
        f"; down to {level_name(METADATA_VERSION, floor)} it can go, "
        f"where {format_releases(to)} can start"
        if floor < high
        else ""
    )
    return (
        f"There is no way back: {what} {verb} what is stored, and Kafka refuses every downgrade "
        f"across that{reach}.{stays}"
    )


@dataclass(frozen=True, slots=True)
class RollbackPath:
    """The way back to the software from before: whether nothing is lost on it, and why.

    ``to`` is the oldest release that can be gone back to without loss: the one from before where
    ``lossless``, otherwise a newer one; empty where none is known.
    """

    lossless: bool
    to: str
    why: str


def rollback_path(
    direction: Direction, levels: Levels, before: Sequence[Capabilities], newest: str = ""
) -> RollbackPath:
    """The way back to ``before`` while these levels are finalized; ``newest`` runs now.

    Levels that older software does not support must be lowered first.
    """
    names = ", ".join(map(software_name, before))
    if direction is Direction.DOWNGRADE:
        return RollbackPath(
            True, names, f"Nodes may be upgraded to {names} again, then levels raised."
        )
    excluded = {
        feature: level
        for feature, level in sorted(levels.items())
        if not all(old.ranges.of(feature).includes(level) for old in before)
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
        floor, shown = lossless_floor(level), level_name(METADATA_VERSION, level)
        if floor is None:
            yield f"What {METADATA_VERSION} {shown} changed is not known."
        elif floor > _highest(before, METADATA_VERSION):
            lowest = level_name(METADATA_VERSION, floor)
            yield (
                f"{METADATA_VERSION} {shown} is not lowered below {lowest} without loss, "
                f"and {names} does not support that."
            )
    if KRAFT_VERSION in excluded:
        shown = level_name(KRAFT_VERSION, excluded[KRAFT_VERSION])
        yield f"{KRAFT_VERSION} {shown} is never lowered, and {names} does not support it."


def _highest(before: Sequence[Capabilities], feature: FeatureName) -> FeatureLevel:
    return FeatureLevel(min(old.ranges.of(feature).maximum for old in before))


def _oldest(levels: Levels) -> str | None:
    """The oldest release that can run these levels, once they were lowered without loss."""
    level, kraft = levels.get(METADATA_VERSION), levels.get(KRAFT_VERSION)
    floor = None if level is None else lossless_floor(level)
    if level is None or floor is None:
        return None
    for release in releases().values():
        overlaps = release.supported.of(METADATA_VERSION).overlaps(SupportedRange(floor, level))
        if overlaps and (kraft is None or release.supported.of(KRAFT_VERSION).includes(kraft)):
            return release.name
    return None
