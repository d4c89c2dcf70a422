"""The point of no return: which software can still start afterwards, and what leads back."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from featurewatch.controller.kraft.releases import Release, production_levels, releases
from featurewatch.controller.levels import level_name
from featurewatch.controller.software import format_releases, startable_releases
from featurewatch.streams.types import KRAFT_VERSION, METADATA_VERSION, FeatureLevel, FeatureName

Levels = Mapping[FeatureName, FeatureLevel]

_OFF: Final = FeatureLevel(0)


@dataclass(frozen=True, slots=True)
class DowngradePath:
    """What finalizing does to the choice of software.

    ``before`` and ``after`` are the releases whose nodes can start with the levels as they are and
    as they would be. ``lossless`` says whether metadata.version can be lowered again to where it
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
    """The way back from levels that would be finalized to those that are.

    None where metadata.version is not among them: what ZooKeeper holds can be lowered as it was
    raised (KIP-584). Kafka refuses every downgrade of metadata.version across a level that changed
    what is stored, the unsafe ones too (KIP-778), and none of kraft.version is possible; all other
    features can be lowered.
    """
    high = then.get(METADATA_VERSION, _OFF)
    if not high:
        return None
    low = now.get(METADATA_VERSION, _OFF)
    kept = {name: level for name, level in then.items() if name == KRAFT_VERSION}
    table = _table_of(high)
    floor = min(high, table.floor(high))
    before, to = startable_releases(now), startable_releases({**kept, METADATA_VERSION: floor})
    again = startable_releases({**kept, METADATA_VERSION: low})
    crossed = bool(low) and (low >= high or _is_lossless(table, high, low))
    lossless = crossed and {*before} <= {*again}
    why = _why(table, now, then, again=again, to=to)
    return DowngradePath(lossless, before, startable_releases(then), floor, to, why)


def _table_of(level: FeatureLevel) -> Release:
    """The release that first had a level in production; the newest for one beyond the table."""
    known = production_levels()
    since = known[level - 1].since if 1 <= level <= len(known) else None
    return releases()[since] if since else list(releases().values())[-1]


def _is_lossless(table: Release, high: FeatureLevel, low: FeatureLevel) -> bool:
    """What a level does is a fact when it is in production, and not before."""
    return high <= len(production_levels()) and table.lossless(high, low)


def _why(
    table: Release, now: Levels, then: Levels, *, again: tuple[str, ...], to: tuple[str, ...]
) -> str:
    low, high = now.get(METADATA_VERSION, _OFF), then[METADATA_VERSION]
    kraft = then.get(KRAFT_VERSION, _OFF)
    raised = kraft > now.get(KRAFT_VERSION, _OFF)
    stays = f" kraft.version stays at {kraft}, it cannot be lowered." if raised else ""
    if high < low:
        return f"metadata.version can be raised to {level_name(METADATA_VERSION, low)} again."
    if high == low:
        return f"metadata.version stays at {level_name(METADATA_VERSION, low)}.{stays}"
    if _is_lossless(table, high, low):
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
        level_name(METADATA_VERSION, one.level)
        for one in table.levels
        if low < one.level <= high and one.changes_metadata
    ]
    what = " and ".join(changing) or "a level that is newer than the table"
    verb = "change" if len(changing) > 1 else "changes"
    floor = table.floor(high)
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
