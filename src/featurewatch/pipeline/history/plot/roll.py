"""Reads the picture of a cluster's rolls from the lake.

Capabilities come from gold, and what was fenced from the registrations and fencings of silver, by
broker. A lake without those says of brokers in KRaft mode that they are registered, not that they
run.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from featurewatch.monitor.roll_picture.assembly import roll_picture
from featurewatch.monitor.roll_picture.model import (
    AlertMark,
    Condition,
    LevelChange,
    NodeState,
    Period,
    RollPicture,
    Span,
    software_of,
)
from featurewatch.pipeline.history.moments import UnknownMomentError, format_time
from featurewatch.pipeline.history.plot.picture import lake_end
from featurewatch.pipeline.lake.reader import (
    ALERTS,
    CAPABILITY_INTERVALS,
    EPOCHS,
    FEATURE_CHANGES,
    FENCING,
    LOG_GAPS,
    REGISTRATIONS,
    SOURCE_STATES,
    LakeReader,
    Row,
)
from featurewatch.streams.types import FeatureLevel, FeatureName, NodeId, NodeKey, Role
from featurewatch.tables.image.nodes import intern_capabilities

MAX_GAPS: Final = 100
MAX_ALERTS: Final = 2_000
"""The newest are drawn."""

_MS: Final = timedelta(milliseconds=1)
_EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_ZOOKEEPER: Final = "/zookeeper/"
"""In the id of a cause: a broker that is registered in ZooKeeper has a session."""

Fencings = Mapping[int, Sequence[tuple[int, bool]]]
"""The times at which each broker was fenced or unfenced, in order."""


def roll_of(
    lake: LakeReader, cluster: str, since: datetime | None, until: datetime | None, now: datetime
) -> RollPicture:
    """The picture of a cluster between two times (None: as far as the lake goes).

    Raises:
        UnknownMomentError: The lake holds nothing in that range.
        LakeError: The lake cannot be read.
    """
    end = min(until or now, lake_end(lake, now))
    intervals = lake.query(
        "SELECT role, node_id, ranges, complete, since, until, since_cause"
        " FROM capability_intervals WHERE cluster = $cluster AND since < $end"
        " ORDER BY role, node_id, since",
        CAPABILITY_INTERVALS,
        cluster=cluster,
        end=end,
    )
    epochs = lake.query(
        "SELECT at, finalized FROM epochs WHERE cluster = $cluster AND at < $end ORDER BY revision",
        EPOCHS,
        cluster=cluster,
        end=end,
    )
    earliest = min(
        [*(row["at"] for row in epochs[:1]), *(row["since"] for row in intervals)], default=end
    )
    begin = max(since, earliest) if since else earliest
    if begin >= end:
        raise UnknownMomentError(
            f"the history of cluster {cluster} has nothing between "
            f"{format_time(since or earliest)} and {format_time(end)}"
        )
    period = Period(to_ms(begin), to_ms(end))
    spans = spans_of(intervals, _fencings(lake, cluster, end), period.end_ms)
    registered = any(
        span.state.condition is Condition.REGISTERED for found in spans.values() for span in found
    )
    finalized = (epochs[-1]["finalized"] or {}) if epochs else {}
    return roll_picture(
        cluster,
        period,
        known_periods(period, _gaps(lake, cluster, begin, end)),
        spans,
        levels={FeatureName(name): FeatureLevel(level) for name, level in finalized.items()},
        changes=_changes(lake, cluster, end),
        alerts=_alerts(lake, cluster, begin, end),
        running={
            found[-1].state.software
            for found in spans.values()
            if found[-1].end_ms >= period.end_ms
        },
        notes=["Whether brokers were fenced is not known where they are drawn as registered."]
        if registered
        else [],
    )


def to_ms(at: datetime) -> int:
    """Milliseconds since the Unix epoch of an aware time."""
    return (at - _EPOCH) // _MS


def time_of(ms: int) -> datetime:
    """The time at these milliseconds since the Unix epoch."""
    return _EPOCH + ms * _MS


def spans_of(
    intervals: Iterable[Row], fencings: Fencings, end_ms: int
) -> dict[NodeKey, list[Span]]:
    """The spans of each node from its intervals of capabilities, in order; an open one lasts until
    ``end_ms``."""
    found: dict[NodeKey, list[Span]] = defaultdict(list)
    for row in intervals:
        key = NodeKey(Role(row["role"]), NodeId(row["node_id"]))
        bounds = {
            FeatureName(name): (low, high) for name, (low, high) in (row["ranges"] or {}).items()
        }
        software = software_of(intern_capabilities(bounds, complete=bool(row["complete"])))
        begin = to_ms(row["since"])
        end = end_ms if row["until"] is None else min(to_ms(row["until"]), end_ms)
        is_running = key.role is Role.CONTROLLER or _ZOOKEEPER in (row["since_cause"] or "")
        changes = () if is_running else fencings.get(key.node_id, ())
        first = Condition.RUNNING if is_running else Condition.REGISTERED
        for start, stop, condition in _conditions(begin, end, first, changes):
            found[key].append(Span(start, stop, NodeState(condition, software)))
    return found


def _conditions(
    begin: int, end: int, first: Condition, changes: Sequence[tuple[int, bool]]
) -> Iterator[tuple[int, int, Condition]]:
    """The parts of an interval by whether the broker was fenced, from its fencings."""
    condition, edges = first, []
    for at_ms, fenced in changes:
        if at_ms >= end:
            break
        condition = Condition.FENCED if fenced else Condition.RUNNING
        if at_ms > begin:
            edges.append((at_ms, condition))
        else:
            first = condition
    for (start, state), (stop, _) in pairwise([(begin, first), *edges, (end, condition)]):
        yield start, stop, state


def known_periods(period: Period, gaps: Iterable[Period]) -> list[Period]:
    """A period without the gaps in it, which are in the order of their ends."""
    known, at_ms = [], period.begin_ms
    for gap in gaps:
        if gap.begin_ms > at_ms:
            known.append(Period(at_ms, min(gap.begin_ms, period.end_ms)))
        at_ms = max(at_ms, gap.end_ms)
    if at_ms <= period.end_ms:
        known.append(Period(at_ms, period.end_ms))
    return known


def _fencings(lake: LakeReader, cluster: str, end: datetime) -> Fencings:
    found: dict[int, list[tuple[int, bool]]] = defaultdict(list)
    rows: list[Row] = []
    if lake.has(REGISTRATIONS):
        rows += lake.query(
            "SELECT at, log_offset, node_id, fenced FROM registrations WHERE cluster = $cluster"
            " AND role = 'broker' AND registered AND fenced IS NOT NULL AND at < $end",
            REGISTRATIONS,
            cluster=cluster,
            end=end,
        )
    if lake.has(FENCING):
        rows += lake.query(
            "SELECT at, log_offset, node_id, fenced FROM fencing WHERE cluster = $cluster"
            " AND fenced IS NOT NULL AND at < $end",
            FENCING,
            cluster=cluster,
            end=end,
        )
    for row in sorted(rows, key=lambda row: (row["at"], row["log_offset"] or 0)):
        changes = found[row["node_id"]]
        if not changes or changes[-1][1] != row["fenced"]:
            changes.append((to_ms(row["at"]), row["fenced"]))
    return found


def _gaps(lake: LakeReader, cluster: str, begin: datetime, end: datetime) -> list[Period]:
    """The stretches of time of which the log's records are missing: from the last heartbeat before
    the gap until it was noticed."""
    if not (lake.has(LOG_GAPS) and lake.has(SOURCE_STATES)):
        return []
    rows = lake.query(
        "SELECT from_offset, seen_at FROM log_gaps WHERE cluster = $cluster"
        " AND seen_at > $begin AND seen_at < $end ORDER BY seen_at DESC LIMIT $most",
        LOG_GAPS,
        cluster=cluster,
        begin=begin,
        end=end,
        most=MAX_GAPS,
    )
    gaps = []
    for row in reversed(rows):
        before = lake.query(
            "SELECT max(seen_at) AS at FROM source_states WHERE cluster = $cluster"
            " AND log_offset < $offset AND seen_at < $seen",
            SOURCE_STATES,
            cluster=cluster,
            offset=row["from_offset"],
            seen=row["seen_at"],
        )[0]["at"]
        gaps.append(Period(to_ms(before or begin), to_ms(row["seen_at"])))
    return gaps


def _changes(lake: LakeReader, cluster: str, end: datetime) -> list[LevelChange]:
    rows = lake.query(
        "SELECT revision, feature, before, after, kind, from_snapshot, appended_at, seen_at"
        " FROM feature_changes WHERE cluster = $cluster ORDER BY revision",
        FEATURE_CHANGES,
        cluster=cluster,
    )
    return [
        LevelChange(
            to_ms(at),
            row["revision"],
            row["feature"],
            None if row["kind"] == "finalized" else row["before"],
            None if row["kind"] == "removed" else row["after"],
            not row["from_snapshot"],
        )
        for row in rows
        if (at := row["appended_at"] or row["seen_at"]) is not None and at <= end
    ]


def _alerts(lake: LakeReader, cluster: str, begin: datetime, end: datetime) -> list[AlertMark]:
    rows = lake.query(
        "SELECT alert_id, rule, severity, state, subject, summary, since, at FROM alerts"
        " WHERE cluster = $cluster AND since < $end ORDER BY at",
        ALERTS,
        cluster=cluster,
        end=end,
    )
    marks: dict[tuple[str, datetime], AlertMark] = {}
    for row in rows:
        subject = row["subject"] or {}
        role, node = subject.get("role") or "", subject.get("node") or ""
        is_node = role in list(Role) and node.isdecimal()
        is_over = row["state"] == "resolved" and row["at"] <= end
        marks[row["alert_id"], row["since"]] = AlertMark(
            row["alert_id"],
            to_ms(row["since"]),
            max(to_ms(row["at"]), to_ms(row["since"])) if is_over else None,
            row["severity"],
            row["rule"],
            row["summary"],
            NodeKey(Role(role), NodeId(int(node))) if is_node else None,
        )
    shown = [mark for mark in marks.values() if mark.end_ms is None or mark.end_ms >= to_ms(begin)]
    return shown[-MAX_ALERTS:]
