"""Resolves a moment to a cut through a cluster's history.

`HistoryCut` decides what had happened by then: by log offsets if both the moment and a cause have
one, else by times.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from featurewatch.pipeline.history.moments import (
    AtEpoch,
    AtOffset,
    AtRevision,
    AtTime,
    Moment,
    UnknownMomentError,
    format_time,
)
from featurewatch.pipeline.lake.reader import (
    ALERTS,
    CAPABILITY_INTERVALS,
    EPOCHS,
    SOURCE_STATES,
    LakeReader,
    Row,
    Sql,
    sql,
)

_SKEW: Final = timedelta(hours=1)
"""How far the clocks of two controllers may differ, if offsets decide."""
OFFSET: Final = Sql(
    "coalesce(CAST(regexp_match(cause, '/kraft/[0-9]+-([0-9]+)$')[1] AS BIGINT),"
    " CAST(regexp_match(cause, '/kraft/snapshot-([0-9]+)-')[1] AS BIGINT) - 1)"
)
"""SQL for the log offset of a cause, as `log_offset` computes it."""
_CAUSES: Final = """
    SELECT at, CAST(NULL AS VARCHAR) AS cause, CAST(provenance['offset'] AS BIGINT) AS place
        FROM epochs WHERE cluster = $cluster
    UNION ALL SELECT since, since_cause, CAST(NULL AS BIGINT)
        FROM capability_intervals WHERE cluster = $cluster
    UNION ALL SELECT until, until_cause, CAST(NULL AS BIGINT)
        FROM capability_intervals WHERE cluster = $cluster AND until IS NOT NULL
    UNION ALL SELECT at, cause, CAST(NULL AS BIGINT) FROM alerts WHERE cluster = $cluster
"""
"""SQL for all causes of a cluster: time, cause, and log offset (null: take it from the cause)."""
_COMMIT: Final = re.compile(r"/kraft/(?:\d+-(\d+)$|snapshot-(\d+)-)")


def log_offset(cause: str | None) -> int | None:
    """Returns the last offset of the commit or snapshot in an event's id (None: it has none)."""
    match = _COMMIT.search(cause or "")
    if match is None:
        return None
    return int(match[1]) if match[1] else int(match[2]) - 1


@dataclass(frozen=True, slots=True)
class HistoryCut:
    """The end of the history that counts: a time, and a log offset if it is known."""

    time: datetime
    offset: int | None = None

    def has(self, at: datetime | None, cause: str | None) -> bool:
        """Whether something had happened by then; ``at`` None means it never did."""
        if at is None:
            return False
        offset = log_offset(cause) if self.offset is not None else None
        if offset is not None and self.offset is not None:
            return offset <= self.offset
        return at <= self.time

    def open(self, row: Row) -> bool:
        """Whether the interval in ``row`` had begun and not ended."""
        has_begun = self.has(row["since"], row["since_cause"])
        return has_begun and not self.has(row["until"], row["until_cause"])

    def interval_filter(self) -> Sql:
        """Returns a SQL condition that narrows intervals down to those that may be open."""
        skew = timedelta(0) if self.offset is None else _SKEW
        return sql(
            "since <= $latest AND (until IS NULL OR until > $earliest)",
            latest=self.time + skew,
            earliest=self.time - skew,
        )


def resolve_moment(
    lake: LakeReader, cluster: str, moment: Moment, now: datetime
) -> tuple[HistoryCut, Row | None]:
    """Resolves a moment to a cut and the snapshot of its revision (None: no revision had begun).

    ``now`` is aware.

    Raises:
        UnknownMomentError: The history of the cluster does not reach that moment.
        LakeError: The lake cannot be read.
    """
    match moment:
        case AtTime(time):
            return _at_time(lake, cluster, time, now)
        case AtOffset(offset):
            return _at_offset(lake, cluster, offset)
        case AtEpoch(epoch):
            return _at_epoch(lake, cluster, epoch)
        case AtRevision(revision):
            row = _revision(lake, cluster, sql("revision = $revision", revision=revision))
            if row is None:
                raise UnknownMomentError(f"{_history_of(cluster)} has no revision {revision}")
            return _cut(row), row


def _revision(lake: LakeReader, cluster: str, where: Sql) -> Row | None:
    """The newest snapshot that satisfies a condition."""
    rows = lake.query(
        "SELECT revision, epoch, at, leader_id, leader_epoch, finalized, provenance, digest"
        " FROM epochs WHERE cluster = $cluster AND $where ORDER BY revision DESC LIMIT 1",
        EPOCHS,
        parts={"where": where},
        cluster=cluster,
    )
    return rows[0] if rows else None


def _cut(row: Row) -> HistoryCut:
    return HistoryCut(row["at"], (row["provenance"] or {}).get("offset"))


def _at_time(
    lake: LakeReader, cluster: str, time: datetime, now: datetime
) -> tuple[HistoryCut, Row | None]:
    if time > now:
        raise UnknownMomentError(f"{format_time(time)} is in the future: it is {format_time(now)}")
    begin = lake.query(
        "SELECT min(at) AS at FROM ($causes)",
        *(EPOCHS, CAPABILITY_INTERVALS, ALERTS),
        parts={"causes": sql(_CAUSES, cluster=cluster)},
    )[0]["at"]
    if begin is None or time < begin:
        description = "is empty" if begin is None else f"begins at {format_time(begin)}"
        raise UnknownMomentError(
            f"{_history_of(cluster)} {description}: {format_time(time)} is not in it"
        )
    return HistoryCut(time), _revision(lake, cluster, sql("at <= $time", time=time))


def _at_offset(lake: LakeReader, cluster: str, offset: int) -> tuple[HistoryCut, Row | None]:
    bounds = lake.query(
        "SELECT min(place) AS first, max(place) AS last, max(at) FILTER (WHERE place <= $offset)"
        " AS at, min(at) FILTER (WHERE place > $offset) AS next_at, count(*) FILTER"
        " (WHERE place = $offset) AS here"
        " FROM (SELECT at, coalesce(place, $placed) AS place FROM ($causes))",
        *(EPOCHS, CAPABILITY_INTERVALS, ALERTS),
        parts={"causes": sql(_CAUSES, cluster=cluster), "placed": OFFSET},
        offset=offset,
    )[0]
    first, last, time = bounds["first"], bounds["last"], bounds["at"]
    if first is None:
        raise UnknownMomentError(f"{_history_of(cluster)} has no metadata log, and so no offsets")
    if time is None:
        raise UnknownMomentError(f"{_history_of(cluster)} begins at offset {first}")
    if offset > last and offset > (ends_at := max(last, _read_to(lake, cluster))):
        raise UnknownMomentError(f"{_history_of(cluster)} ends at offset {ends_at}")
    row = _revision(lake, cluster, sql("provenance['offset'] <= $offset", offset=offset))
    if not bounds["here"]:
        time = _reached_at(lake, cluster, offset, (time, bounds["next_at"]))
    return HistoryCut(time, offset), row


def _reached_at(
    lake: LakeReader, cluster: str, offset: int, between: tuple[datetime, datetime | None]
) -> datetime:
    """When a record that caused nothing had been read, by the first heartbeat that reports it.

    ``between`` are the times of the causes before and after it (None: no cause after it). The
    first of them is the result where no heartbeat is known.
    """
    before, after = between
    if not lake.has(SOURCE_STATES):
        return before
    rows = lake.query(
        "SELECT min(seen_at) AS at FROM source_states"
        " WHERE cluster = $cluster AND log_offset >= $offset AND seen_at >= $before",
        SOURCE_STATES,
        cluster=cluster,
        offset=offset,
        before=before,
    )
    reached: datetime | None = rows[0]["at"]
    if reached is None:
        return before
    return reached if after is None else max(before, min(reached, after))


def _at_epoch(lake: LakeReader, cluster: str, epoch: int) -> tuple[HistoryCut, Row | None]:
    exact = _revision(lake, cluster, sql("epoch = $epoch", epoch=epoch))
    row = exact or _revision(lake, cluster, sql("epoch <= $epoch", epoch=epoch))
    if row is None:
        raise UnknownMomentError(f"{_history_of(cluster)} begins after epoch {epoch}")
    if exact is None and _cut(row).offset is not None:
        return _at_offset(lake, cluster, epoch)  # the epoch of a log is an offset
    newest = _revision(lake, cluster, Sql("TRUE"))
    if exact is None and newest is not None and newest["revision"] == row["revision"]:
        raise UnknownMomentError(f"{_history_of(cluster)} ends at epoch {row['epoch']}")
    return _cut(row), row


def _read_to(lake: LakeReader, cluster: str) -> int:
    """The last offset that the newest heartbeats report as read (-1: no heartbeat)."""
    newest = lake.newest(SOURCE_STATES, "seen_at") if lake.has(SOURCE_STATES) else None
    if newest is None:
        return -1
    rows = lake.query(
        "SELECT max(log_offset) AS last FROM source_states"
        " WHERE cluster = $cluster AND seen_at >= $since",
        SOURCE_STATES,
        cluster=cluster,
        since=newest - _SKEW,
    )
    return -1 if rows[0]["last"] is None else int(rows[0]["last"])


def _history_of(cluster: str) -> str:
    return f"the history of cluster {cluster}"
