"""Rules about sources that cannot read, and about what they could not decode."""

from collections.abc import Iterable, Mapping
from typing import Final

from featurewatch.controller.software import LEARN
from featurewatch.monitor.rules.rule import (
    AFTER_AN_HOUR,
    BY_ACKNOWLEDGEMENT,
    EITHER_SEVERITY,
    Finding,
    Rule,
    RuleContext,
    Subject,
    SubjectKind,
    coarse_count,
    format_duration,
)
from featurewatch.streams.events import SourceState
from featurewatch.streams.outputs import Alert, Severity
from featurewatch.streams.topics import INPUTS
from featurewatch.tables.image.sources import (
    AHEAD,
    FAILED_STATES,
    FLAP_WINDOW_MS,
    FLAPS,
    Stalls,
    is_unreadable,
    lost_topic,
    rivaling,
)


def _stalled(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    """A warning at first: a node that restarts, and an election, take less than the limit.

    A source that stalls for less than ``hold_ms`` is no alert. One that does so again and again
    flaps, which is one alert until it has read without a break for a while.
    """
    sources = context.image.sources
    status = sources.statuses.get(str(subject.key))
    if status is None:
        return
    stalls, limits = sources.stalls.get(status.source, Stalls()), context.limits
    is_failed, failed_ms = status.state in FAILED_STATES, 0
    if is_failed:
        failed_ms = context.received_ms - sources.failing_since.get(
            status.source, context.received_ms
        )
    is_long = is_failed and failed_ms >= limits.source_ms
    if stalls.is_flapping and not is_long and status.state is not SourceState.SILENT:
        summary = (
            f"The source {status.source} flaps: it stalled {FLAPS} times within "
            f"{format_duration(FLAP_WINDOW_MS)}, the last of them with: {stalls.reason}. Changes "
            "arrive late. Look for nodes that restart, or a network that fails, again and again. "
            f"This ends when it has not stalled for {format_duration(FLAP_WINDOW_MS)}."
        )
        yield Finding(summary, Severity.WARNING, {"state": "flapping"})
    elif (
        is_long or status.state is SourceState.SILENT or (is_failed and failed_ms >= limits.hold_ms)
    ):
        summary = f"The source {status.source} is {status.state}: {status.detail}"
        if status.state is SourceState.SILENT:
            summary += " If it was removed from the configuration, run `featurewatch retire`."
        # The position is left out: it may still change, and each change would be another alert.
        severity = Severity.CRITICAL if is_long else Severity.WARNING
        yield Finding(summary, severity, {"state": str(status.state)})


def is_critical(firing: Mapping[Subject, tuple[Alert, ...]], source: str) -> bool:
    """Whether the alert about a source that reads nothing is critical."""
    alerts = firing.get(Subject(SubjectKind.SOURCE, source), ())
    return any(alert.severity is Severity.CRITICAL for alert in alerts)


SOURCE_RULES: Final = (
    Rule(
        "source-stalled",
        "a source cannot read its cluster, or has stopped reporting",
        SubjectKind.SOURCE,
        _stalled,
        severities=EITHER_SEVERITY,
        ends="when the source reads again; of one that flaps, 10 minutes after it last stalled",
    ),
)


def _unreadable(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    records = context.image.sources.unreadable.get(str(subject.key))
    if records is not None and is_unreadable(str(subject.key)):
        count = coarse_count(records.count)
        times = "once" if count == 1 else f"at least {count} times"
        evidence = {"count": count, "location": records.location, "reason": records.reason}
        if records.hides_state:
            summary = (
                f"No known release has the record {subject.key}, which was read {times}, first at "
                f"{records.location}: it may be about registrations, levels or voters. What is "
                "known of these may be incomplete, so neither ghosts nor blockers nor "
                "incompatible nodes are derived until the source has read the next snapshot; "
                f"{LEARN}. If you know that it changed none of these, run `featurewatch alerts "
                "acknowledge`."
            )
            yield Finding(summary, Severity.WARNING, {**evidence, "hides_state": True})
            return
        summary = (
            f"{subject.key} could not be read, {times}, first at {records.location}: "
            f"{records.reason}. The state shown of the cluster may be incomplete; the bytes are in "
            "the dead letters. This alert ends after "
            f"{format_duration(context.limits.quiet_ms)} without another one, or by `featurewatch "
            "alerts acknowledge`."
        )
        yield Finding(summary, Severity.WARNING, evidence)


def _lost(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    records = context.image.sources.unreadable.get(str(subject.key))
    topic = lost_topic(str(subject.key))
    if records is not None and topic in _INPUT_NAMES:
        summary = (
            f"Messages of this cluster on {topic} were lost before they were read: "
            f"{records.reason} (at {records.location}). Changes in between cannot be recovered. "
            "Its source was asked to publish the state again; until then the state of the cluster "
            "counts as unknown."
        )
        evidence = {
            "count": records.count,
            "topic": topic,
            "location": records.location,
            "reason": records.reason,
        }
        yield Finding(summary, Severity.CRITICAL, evidence)


def _ahead(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    records = context.image.sources.unreadable.get(AHEAD)
    if records is not None and subject.key == AHEAD:
        count = coarse_count(records.count)
        times = "once" if count == 1 else f"at least {count} times"
        summary = (
            f"An event of this cluster came from the future, {times}, first {records.location}: "
            f"{records.reason}. The time of the bus is used instead. Correct that clock, or the "
            "bus's."
        )
        evidence = {"count": count, "location": records.location, "reason": records.reason}
        yield Finding(summary, Severity.WARNING, evidence)


def _rivals(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    records = context.image.sources.unreadable.get(str(subject.key))
    source = "" if records is None else rivaling(str(subject.key), records)
    if records is not None and source:
        summary = (
            f"Two processes publish the source {source} of this cluster, from the addresses "
            f"{records.reason}. If these are not of one cluster, what is shown mixes two clusters: "
            "stop one of the processes, and set cluster_id in the configuration of each. If they "
            "are, give both processes the same addresses."
        )
        evidence = {"location": records.location, "addresses": records.reason}
        yield Finding(summary, Severity.WARNING, evidence)


def _outputs_lost(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    records = context.image.sources.unreadable.get(str(subject.key))
    topic = lost_topic(str(subject.key))
    if records is not None and topic and topic not in _INPUT_NAMES:
        summary = (
            f"Earlier messages on {topic} are lost: {records.reason}. They cannot be recovered "
            "from the topic: only consumers that read them have them, and the lake if it had "
            "ingested them. The current state, the firing alerts and the newest snapshot were "
            "published again."
        )
        evidence = {"count": records.count, "topic": topic, "reason": records.reason}
        yield Finding(summary, Severity.WARNING, evidence)


_INPUT_NAMES: Final = frozenset(topic.short_name for topic in INPUTS)

OUTPUTS_LOST: Final = "outputs-lost"
"""The rule about outputs that vanished, which fires in a worker alone, too."""

MESSAGES_LOST: Final = "messages-lost"
"""The rule that fires in a worker alone: the lake has other messages, and other losses."""

RECORD_RULES: Final = (
    Rule(
        MESSAGES_LOST,
        "messages were lost before they were read",
        SubjectKind.RECORD,
        _lost,
        severities=(Severity.CRITICAL,),
        ends="when the source has published its whole state again" + BY_ACKNOWLEDGEMENT,
    ),
    Rule(
        OUTPUTS_LOST,
        "the bus lost published messages",
        SubjectKind.RECORD,
        _outputs_lost,
        ends=AFTER_AN_HOUR + BY_ACKNOWLEDGEMENT,
    ),
    Rule(
        "unreadable",
        "a record, a snapshot or a message could not be read",
        SubjectKind.RECORD,
        _unreadable,
        ends=AFTER_AN_HOUR
        + "; for a record that no known release has, when the log was read again from a snapshot "
        "without it" + BY_ACKNOWLEDGEMENT,
    ),
    Rule(
        "clock-ahead",
        "an event's time is ahead of the bus's clock",
        SubjectKind.RECORD,
        _ahead,
        ends=AFTER_AN_HOUR + BY_ACKNOWLEDGEMENT,
    ),
    Rule(
        "source-rivals",
        "two processes publish one source from different addresses",
        SubjectKind.RECORD,
        _rivals,
        ends=AFTER_AN_HOUR + BY_ACKNOWLEDGEMENT,
    ),
)
