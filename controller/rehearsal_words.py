"""What is said of a step beside the controller's own words."""

from collections.abc import Iterable, Iterator, Mapping

from controller.kraft import Consequence, Release, UpdateDecision, between
from controller.kraft.answers import ConfigRecord, LevelRecord, NothingRecord, Record
from controller.levels import level_name
from controller.rehearsal_releases import why_not_able
from controller.rehearsal_scene import Ranges
from streams.types import KRAFT_VERSION, METADATA_VERSION, FeatureLevel, FeatureName, Range

Levels = Mapping[FeatureName, FeatureLevel]


def applied(decision: UpdateDecision, before: Levels) -> Iterator[str]:
    """What a decision writes, a sentence for each record."""
    for record in decision.records:
        if text := _record(record, before):
            yield text
    if decision.kraft_version is not None:
        all_the_same = "" if decision.accepted else ", although the request is refused"
        yield f"raft writes {KRAFT_VERSION} {decision.kraft_version}{all_the_same}"


def assumed(decision: UpdateDecision) -> Iterator[str]:
    """What an accepted request depends on that is not read from the log."""
    if any(isinstance(record, ConfigRecord) for record in decision.records):
        yield "where min.insync.replicas is set is not read: taken as 1, and set nowhere"


def _record(record: Record, before: Levels) -> str:
    match record:
        case LevelRecord(feature, level):
            was = before.get(feature, FeatureLevel(0))
            if was == level:
                return f"writes {feature} {level_name(feature, level)} again"
            return f"writes {feature}: {level_name(feature, was)} -> {level_name(feature, level)}"
        case ConfigRecord(broker, name, value):
            where = f"of broker {broker}" if broker else "of all brokers"
            return f"sets {name}={value} {where}" if value else f"removes {name} {where}"
        case NothingRecord():
            return ""


def ranges_text(ranges: Ranges, before: Ranges | None = None) -> str:
    """What a node supports of metadata.version, and did before; or of all features without it."""
    if METADATA_VERSION not in ranges:
        return ", ".join(f"{name} {_range(one)}" for name, one in sorted(ranges.items())) or "none"
    said = f"{METADATA_VERSION} {_range(ranges[METADATA_VERSION])}"
    old = (before or {}).get(METADATA_VERSION)
    if old is None or old == ranges[METADATA_VERSION]:
        return said
    return f"{said}, before {_range(old)}"


def _range(bounds: Range) -> str:
    return f"{bounds[0]}-{bounds[1]}"


def comes_with(before: Levels, after: Levels) -> tuple[Consequence, ...]:
    """What the levels that were raised bring and cost."""
    return tuple(
        one
        for feature in sorted(after)
        for one in between(feature, before.get(feature, 0), after[feature])
    )


def way_back(release: Release, before: Levels, after: Levels) -> Iterator[str]:
    """Whether a raised metadata.version can be lowered again, and which releases are left out."""
    old, new = before.get(METADATA_VERSION), after.get(METADATA_VERSION)
    if old is not None and new is not None and new > old:
        floor = release.floor(new)
        if floor <= old:
            yield f"the way back to {level_name(METADATA_VERSION, old)} loses nothing"
        elif floor == new:
            yield "there is no way back: the new level changed the metadata"
        else:
            yield (
                f"the way back ends at {level_name(METADATA_VERSION, floor)}: "
                f"{level_name(METADATA_VERSION, old)} cannot be reached any more"
            )
    could, can = why_not_able(before), why_not_able(after)
    if gone := [name for name in can if could[name] is None and can[name] is not None]:
        yield f"nodes of Kafka {_listed(gone)} do not start any more"
    if back := [name for name in can if could[name] is not None and can[name] is None]:
        yield f"nodes of Kafka {_listed(back)} can start again"


def _listed(names: Iterable[str]) -> str:
    *rest, last = names
    return f"{', '.join(rest)} and {last}" if rest else last
