"""Whether older software can be started again after an upgrade, and what must be lowered first."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from featurewatch.controller.kraft.releases import releases
from featurewatch.controller.levels import level_name
from featurewatch.controller.software import Direction, software_name
from featurewatch.streams.types import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    SupportedRange,
)
from featurewatch.tables.image.nodes import Capabilities

Levels = Mapping[FeatureName, FeatureLevel]


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

    Levels that older software does not support must be lowered first. metadata.version can be, as
    long as no level on the way changed metadata (KIP-778); kraft.version never (KIP-853); all
    others can.
    """
    names = ", ".join(map(software_name, before))
    if direction is Direction.DOWNGRADE:
        return RollbackPath(
            True, names, f"Nodes may be upgraded to {names} again, then levels raised."
        )
    excluded = {
        feature: level
        for feature, level in sorted(levels.items())
        if any(not _supports(known, feature, level) for known in before)
    }
    if not excluded:
        return RollbackPath(True, names, f"No finalized level excludes {names}: nodes may go back.")
    reasons = [*_obstacles(excluded, before, names)]
    if reasons:
        return RollbackPath(False, _oldest(levels) or newest, " ".join(reasons))
    lower = ", ".join(
        f"{feature} to {level_name(feature, _highest(before, feature))}" for feature in excluded
    )
    return RollbackPath(True, names, f"Once {lower} is lowered, nodes may go back to {names}.")


def _obstacles(excluded: Levels, before: Sequence[Capabilities], names: str) -> Iterator[str]:
    level = excluded.get(METADATA_VERSION)
    if level is not None:
        floor, shown = _floor(level), level_name(METADATA_VERSION, level)
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


def _supports(known: Capabilities, feature: FeatureName, level: FeatureLevel) -> bool:
    return known.ranges.of(feature).includes(level)


def _highest(before: Sequence[Capabilities], feature: FeatureName) -> FeatureLevel:
    return FeatureLevel(min(known.ranges.of(feature).maximum for known in before))


def _floor(level: FeatureLevel) -> FeatureLevel | None:
    """The lowest level without loss; None where the newest release of the table has no such one."""
    *_, newest = releases().values()
    return newest.floor(level) if newest.metadata_level(level) or level <= newest.minimum else None


def _oldest(levels: Levels) -> str | None:
    """The oldest release that can run these levels, once they were lowered without loss."""
    level, kraft = levels.get(METADATA_VERSION), levels.get(KRAFT_VERSION)
    floor = None if level is None else _floor(level)
    if level is None or floor is None:
        return None
    for release in releases().values():
        overlaps = release.supported.of(METADATA_VERSION).overlaps(SupportedRange(floor, level))
        if overlaps and (kraft is None or release.supported.of(KRAFT_VERSION).includes(kraft)):
            return release.name
    return None
