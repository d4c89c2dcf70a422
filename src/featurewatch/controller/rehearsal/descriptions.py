"""Describes a step beyond the controller's own texts."""

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
    """The records that a decision writes, a sentence for each."""
    for record in decision.records:
        if text := _describe_record(record, before):
            yield text
    if decision.kraft_version is not None:
        reservation = "" if decision.accepted else ", although the request is refused"
        yield f"raft writes {KRAFT_VERSION} {decision.kraft_version}{reservation}"


def describe_assumptions(decision: UpdateDecision) -> Iterator[str]:
    """The assumptions of an accepted request about state that is not in the log."""
    if any(isinstance(record, ConfigRecord) for record in decision.records):
        yield "where min.insync.replicas is set is not read: taken as 1, and set nowhere"


def _describe_record(record: Record, before: Levels) -> str:
    match record:
        case FeatureLevelRecord(feature, level):
            old_level = before.get(feature, FeatureLevel(0))
            if old_level == level:
                return f"writes {feature} {level_name(feature, level)} again"
            names = f"{level_name(feature, old_level)} -> {level_name(feature, level)}"
            return f"writes {feature}: {names}"
        case ConfigRecord(broker, name, value):
            target = f"of broker {broker}" if broker else "of all brokers"
            return f"sets {name}={value} {target}" if value else f"removes {name} {target}"
        case NoOpRecord():
            return ""


def ranges_text(ranges: SupportedRanges, before: SupportedRanges | None = None) -> str:
    """Formats a node's range of metadata.version and its previous one; without it, all ranges."""
    if METADATA_VERSION not in ranges:
        return ", ".join(f"{name} {bounds}" for name, bounds in sorted(ranges.items())) or "none"
    text = f"{METADATA_VERSION} {ranges[METADATA_VERSION]}"
    old = before.get(METADATA_VERSION) if before else None
    if old is None or old == ranges[METADATA_VERSION]:
        return text
    return f"{text}, before {old}"


def consequences_of(before: Levels, after: Levels) -> tuple[Consequence, ...]:
    """The consequences of the levels that were raised."""
    return tuple(
        consequence
        for feature in sorted(after)
        for consequence in between(feature, before.get(feature, 0), after[feature])
    )


def irreversible_notes(before: Levels, after: Levels) -> Iterator[str]:
    """Whether raised levels can be lowered, and which releases can no longer or again start."""
    path = downgrade_path(before, after)
    if path is None or dict(before) == dict(after):
        return
    raised = (
        feature
        for feature in (METADATA_VERSION, KRAFT_VERSION)
        if after.get(feature, 0) > before.get(feature, 0)
    )
    if any(raised):
        yield path.reason
    if lost := [name for name in path.before if name not in path.after]:
        yield f"nodes of Kafka {format_releases(lost)} do not start any more"
    if regained := [name for name in path.after if name not in path.before]:
        yield f"nodes of Kafka {format_releases(regained)} can start again"
