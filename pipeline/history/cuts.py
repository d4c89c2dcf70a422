"""Where a moment is in a cluster's history.

`HistoryCut` says what had happened by then: where the moment and a cause both have a place in the
metadata log the places decide, and times otherwise.
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
"""How far the clocks of two controllers may be apart, where offsets decide."""
OFFSET: Final = Sql(
    "coalesce(CAST(regexp_match(cause, '/kraft/[0-9]+-([0-9]+)$')[1] AS BIGINT),"
    " CAST(regexp_match(cause, '/kraft/snapshot-([0-9]+)-')[1] AS BIGINT) - 1)"
)
"""The place of a cause, as `log_offset` tells it."""
_CAUSES: Final = """
    SELECT at, CAST(NULL AS VARCHAR) AS cause, CAST(provenance['offset'] AS BIGINT) AS place
        FROM epochs WHERE cluster = $cluster
    UNION ALL SELECT since, since_cause, CAST(NULL AS BIGINT)
        FROM capability_intervals WHERE cluster = $cluster
    UNION ALL SELECT until, until_cause, CAST(NULL AS BIGINT)
        FROM capability_intervals WHERE cluster = $cluster AND until IS NOT NULL
    UNION ALL SELECT at, cause, CAST(NULL AS BIGINT) FROM alerts WHERE cluster = $cluster
"""
"""When something happened, by which cause, and where in the log (null: as the cause says)."""
_COMMIT: Final = re.compile(r"/kraft/(?:\d+-(\d+)$|snapshot-(\d+)-)")


def log_offset(cause: str | None) -> int | None:
    """The last offset of the commit or snapshot that an event's id names; None: it names none."""
    found = _COMMIT.search(cause or "")
    if found is None:
        return None
    return int(found[1]) if found[1] else int(found[2]) - 1


@dataclass(frozen=True, slots=True)
class HistoryCut:
    """Up to where the history counts: a time, and a place in the log where that is known."""

    time: datetime
    offset: int | None = None

    def has(self, at: datetime | None, cause: str | None) -> bool:
        """Whether something happened by then; nothing did at no time."""
        if at is None:
            return False
        place = log_offset(cause) if self.offset is not None else None
        if place is not None and self.offset is not None:
            return place <= self.offset
        return at <= self.time

    def open(self, row: Row) -> bool:
        """Whether an interval had begun and not ended."""
        began = self.has(row["since"], row["since_cause"])
        return began and not self.has(row["until"], row["until_cause"])

    def interval_filter(self) -> Sql:
        """What narrows intervals down to those that may be open."""
        skew = timedelta(0) if self.offset is None else _SKEW
        return sql(
            "since <= $latest AND (until IS NULL OR until > $earliest)",
            latest=self.time + skew,
            earliest=self.time - skew,
        )


def resolve_moment(
    lake: LakeReader, cluster: str, at: Moment, now: datetime
) -> tuple[HistoryCut, Row | None]:
    """Where a moment is, and the snapshot of the revision that it falls into (None: of none)."""
    match at:
        case AtTime(time):
            return _at_time(lake, cluster, time, now)
        case AtOffset(offset):
            return _at_offset(lake, cluster, offset)
        case AtEpoch(epoch):
            return _at_epoch(lake, cluster, epoch)
        case AtRevision(revision):
            row = _revision(lake, cluster, sql("revision = $revision", revision=revision))
            if row is None:
                raise UnknownMomentError(f"{_story(cluster)} has no revision {revision}")
            return _cut(row), row


def _revision(lake: LakeReader, cluster: str, where: Sql) -> Row | None:
    """The newest snapshot for which something holds."""
    found = lake.query(
        "SELECT revision, epoch, at, leader_id, leader_epoch, finalized, provenance, digest"
        " FROM epochs WHERE cluster = $cluster AND $where ORDER BY revision DESC LIMIT 1",
        EPOCHS,
        parts={"where": where},
        cluster=cluster,
    )
    return found[0] if found else None


def _cut(row: Row) -> HistoryCut:
    return HistoryCut(row["at"], (row["provenance"] or {}).get("offset"))


def _at_time(
    lake: LakeReader, cluster: str, time: datetime, now: datetime
) -> tuple[HistoryCut, Row | None]:
    if time > now:
        raise UnknownMomentError(f"{format_time(time)} lies ahead: it is {format_time(now)}")
    begins = lake.query(
        "SELECT min(at) AS at FROM ($causes)",
        *(EPOCHS, CAPABILITY_INTERVALS, ALERTS),
        parts={"causes": sql(_CAUSES, cluster=cluster)},
    )[0]["at"]
    if begins is None or time < begins:
        since = "is empty" if begins is None else f"begins at {format_time(begins)}"
        raise UnknownMomentError(f"{_story(cluster)} {since}: {format_time(time)} is not in it")
    return HistoryCut(time), _revision(lake, cluster, sql("at <= $time", time=time))


def _at_offset(lake: LakeReader, cluster: str, offset: int) -> tuple[HistoryCut, Row | None]:
    found = lake.query(
        "SELECT min(place) AS first, max(place) AS last, max(at) FILTER (WHERE place <= $offset)"
        " AS at FROM (SELECT at, coalesce(place, $placed) AS place FROM ($causes))",
        *(EPOCHS, CAPABILITY_INTERVALS, ALERTS),
        parts={"causes": sql(_CAUSES, cluster=cluster), "placed": OFFSET},
        offset=offset,
    )[0]
    first, last, time = found["first"], found["last"], found["at"]
    if first is None:
        raise UnknownMomentError(f"{_story(cluster)} has no metadata log, and so no offsets")
    if time is None:
        raise UnknownMomentError(f"{_story(cluster)} begins at offset {first}")
    if offset > last and offset > (read := max(last, _read_to(lake, cluster))):
        raise UnknownMomentError(f"{_story(cluster)} ends at offset {read}")
    row = _revision(lake, cluster, sql("provenance['offset'] <= $offset", offset=offset))
    return HistoryCut(time, offset), row


def _at_epoch(lake: LakeReader, cluster: str, epoch: int) -> tuple[HistoryCut, Row | None]:
    same = _revision(lake, cluster, sql("epoch = $epoch", epoch=epoch))
    row = same or _revision(lake, cluster, sql("epoch <= $epoch", epoch=epoch))
    if row is None:
        raise UnknownMomentError(f"{_story(cluster)} begins after epoch {epoch}")
    if same is None and _cut(row).offset is not None:
        return _at_offset(lake, cluster, epoch)  # a log's epoch is its offset
    newest = _revision(lake, cluster, Sql("TRUE"))
    if same is None and newest is not None and newest["revision"] == row["revision"]:
        raise UnknownMomentError(f"{_story(cluster)} ends at epoch {row['epoch']}")
    return _cut(row), row


def _read_to(lake: LakeReader, cluster: str) -> int:
    """How far the log was read by the newest word of its source; -1: nobody says."""
    newest = lake.newest(SOURCE_STATES, "seen_at") if lake.has(SOURCE_STATES) else None
    if newest is None:
        return -1
    found = lake.query(
        "SELECT max(log_offset) AS last FROM source_states"
        " WHERE cluster = $cluster AND seen_at >= $since",
        SOURCE_STATES,
        cluster=cluster,
        since=newest - _SKEW,
    )
    return -1 if found[0]["last"] is None else int(found[0]["last"])


def _story(cluster: str) -> str:
    return f"the history of cluster {cluster}"
