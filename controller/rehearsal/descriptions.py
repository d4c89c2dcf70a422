"""What is said of a step beside the controller's own words."""

from collections.abc import Iterator, Mapping

from featurewatch.controller.downgrade_path import downgrade_path
from featurewatch.controller.kraft import Consequence, UpdateDecision, between
from featurewatch.controller.kraft.requests import (
    ConfigRecord,
    FeatureLevelRecord,
    NoOpRecord,
    Record,
)
from featurewatch.controller.levels import level_name
from featurewatch.controller.software import format_releases
from featurewatch.streams.types import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    SupportedRanges,
)

Levels = Mapping[FeatureName, FeatureLevel]


def describe_records(decision: UpdateDecision, before: Levels) -> Iterator[str]:
    """What a decision writes, a sentence for each record."""
    for record in decision.records:
        if text := _record(record, before):
            yield text
    if decision.kraft_version is not None:
        all_the_same = "" if decision.accepted else ", although the request is refused"
        yield f"raft writes {KRAFT_VERSION} {decision.kraft_version}{all_the_same}"


def describe_assumptions(decision: UpdateDecision) -> Iterator[str]:
    """What an accepted request depends on that is not read from the log."""
    if any(isinstance(record, ConfigRecord) for record in decision.records):
        yield "where min.insync.replicas is set is not read: taken as 1, and set nowhere"


def _record(record: Record, before: Levels) -> str:
    match record:
        case FeatureLevelRecord(feature, level):
            was = before.get(feature, FeatureLevel(0))
            if was == level:
                return f"writes {feature} {level_name(feature, level)} again"
            return f"writes {feature}: {level_name(feature, was)} -> {level_name(feature, level)}"
        case ConfigRecord(broker, name, value):
            where = f"of broker {broker}" if broker else "of all brokers"
            return f"sets {name}={value} {where}" if value else f"removes {name} {where}"
        case NoOpRecord():
            return ""


def ranges_text(ranges: SupportedRanges, before: SupportedRanges | None = None) -> str:
    """What a node supports of metadata.version, and did before; or of all features without it."""
    if METADATA_VERSION not in ranges:
        return ", ".join(f"{name} {bounds}" for name, bounds in sorted(ranges.items())) or "none"
    text = f"{METADATA_VERSION} {ranges[METADATA_VERSION]}"
    old = before.get(METADATA_VERSION) if before else None
    if old is None or old == ranges[METADATA_VERSION]:
        return text
    return f"{text}, before {old}"


def consequences_of(before: Levels, after: Levels) -> tuple[Consequence, ...]:
    """What the levels that were raised bring and cost."""
    return tuple(
        one
        for feature in sorted(after)
        for one in between(feature, before.get(feature, 0), after[feature])
    )


def irreversible_notes(before: Levels, after: Levels) -> Iterator[str]:
    """Whether raised levels can be lowered again, and which releases start no more, or again."""
    found = downgrade_path(before, after)
    if found is None or dict(before) == dict(after):
        return
    raised = (
        one for one in (METADATA_VERSION, KRAFT_VERSION) if after.get(one, 0) > before.get(one, 0)
    )
    if any(raised):
        yield found.why
    if lost := [name for name in found.before if name not in found.after]:
        yield f"nodes of Kafka {format_releases(lost)} do not start any more"
    if again := [name for name in found.after if name not in found.before]:
        yield f"nodes of Kafka {format_releases(again)} can start again"
