"""The point of no return: which software can still start afterwards, and what leads back."""

from collections.abc import Mapping
from dataclasses import dataclass

from controller.kraft.table import Release, production_levels, releases
from controller.levels import level_name
from controller.readiness.software import able, span
from streams.types import KRAFT_VERSION, METADATA_VERSION, FeatureLevel, FeatureName

Levels = Mapping[FeatureName, FeatureLevel]


@dataclass(frozen=True, slots=True)
class WayBack:
    """What finalizing does to the choice of software.

    ``before`` and ``after`` are the releases whose nodes can start with the levels as they are and
    as they would be. ``lossless`` says whether the levels can be lowered again to where they are.
    ``floor`` is the lowest metadata.version that is reached again without loss, and ``to`` are the
    releases that can start there. ``why`` is a sentence.
    """

    lossless: bool
    before: tuple[str, ...]
    after: tuple[str, ...]
    floor: FeatureLevel
    to: tuple[str, ...]
    why: str


def way_back(now: Levels, then: Levels) -> WayBack | None:
    """The way back from levels that would be finalized to those that are.

    None where metadata.version is not among them: what ZooKeeper holds can be lowered as it was
    raised (KIP-584). Kafka refuses every downgrade of metadata.version across a level that changed
    what is stored, the unsafe ones too (KIP-778), and none of kraft.version is possible.
    """
    high = then.get(METADATA_VERSION, FeatureLevel(0))
    if not high:
        return None
    low = now.get(METADATA_VERSION, FeatureLevel(0))
    table = _table_of(high)
    floor = table.floor(high)
    kraft = then.get(KRAFT_VERSION, 0) > now.get(KRAFT_VERSION, 0)
    before, after = able(now), able(then)
    kept = {name: level for name, level in then.items() if name == KRAFT_VERSION}
    to = able({**kept, METADATA_VERSION: floor})
    lossless = bool(low) and (low >= high or table.lossless(high, low)) and not kraft
    return WayBack(lossless, before, after, floor, to, _why(table, now, then, to, kraft=kraft))


def _table_of(level: FeatureLevel) -> Release:
    """The release that first had a level in production; the newest for one beyond the table."""
    known = production_levels()
    since = known[level - 1].since if 1 <= level <= len(known) else None
    return releases()[since] if since else list(releases().values())[-1]


def _why(table: Release, now: Levels, then: Levels, to: tuple[str, ...], *, kraft: bool) -> str:
    low, high = now.get(METADATA_VERSION, FeatureLevel(0)), then[METADATA_VERSION]
    one_way = " kraft.version cannot be lowered at all." if kraft else ""
    lost = span(name for name in able(now) if name not in able(then))
    if high <= low:
        return f"metadata.version stays at {level_name(METADATA_VERSION, low)}.{one_way}"
    if table.lossless(high, low):
        again = "" if lost == "none" or kraft else f", and {lost} can start again after that"
        return (
            f"metadata.version can be lowered to {level_name(METADATA_VERSION, low)} again without "
            f"loss{again}.{one_way}"
        )
    changing = [
        level_name(METADATA_VERSION, one.level)
        for one in table.levels
        if low < one.level <= high and one.changes_metadata
    ]
    what = ", ".join(changing) or "a level that is newer than the table"
    floor = table.floor(high)
    reach = (
        f"; down to {level_name(METADATA_VERSION, floor)} it can go, where {span(to)} can start"
        if floor < high
        else ""
    )
    return (
        f"There is no way back: {what} change what is stored, and Kafka refuses every downgrade "
        f"across that{reach}.{one_way}"
    )
