"""Readiness day by day: what stood between a cluster and each release at the end of each day.

It is the verdict that the command gives (`controller.readiness`), taken from the fold's state when
the first message of another day comes, and for the day that goes on whenever something changed that
a verdict depends on. Days are those of UTC, by Kafka's time of the messages.
"""

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any, Final, NamedTuple

import orjson

from featurewatch.controller.kraft import Release, releases
from featurewatch.controller.migration import in_progress
from featurewatch.controller.readiness import ReadinessReport, assess_readiness
from featurewatch.pipeline.fold.intervals import HistoryRow
from featurewatch.tables.image.cluster import Authority, ClusterImage

STANDING: Final = "standing"
"""The kind of what is said of a day."""

ROW: Final = "days"
"""The row of the state that holds `CurrentDay`."""

NAMED: Final = 20
"""How many of the nodes that stand in the way are named in a row."""

_DAY_MS: Final = 86_400_000
_BEGINNING: Final = date(1970, 1, 1)


class CurrentDay(NamedTuple):
    """The day of the newest message, as days since the Unix epoch (-1: none came yet).

    ``dirty`` says that something changed on it of which no row tells yet.
    """

    day: int = -1
    dirty: bool = False


NO_DAYS: Final = CurrentDay()


def days_of_row(value: bytes | None) -> CurrentDay:
    """What a row holds; of none, that no message came yet."""
    return CurrentDay(*orjson.loads(value)) if value else NO_DAYS


def row_of_days(days: CurrentDay) -> bytes:
    """The row that holds this."""
    return orjson.dumps([*days])


def on_message(
    days: CurrentDay, image: ClusterImage, time_ms: int
) -> tuple[CurrentDay, list[HistoryRow]]:
    """Takes in that a message comes at a time, before what it says: maybe a day is over.

    Clocks go back, days do not. A day begins with something to say. Of a day that is over nothing
    is said again that was said before it was.
    """
    today = time_ms // _DAY_MS
    if today <= days.day:
        return days, []
    return CurrentDay(today, dirty=True), [*readiness_rows(image, days.day)] if days.dirty else []


def mark_changed(days: CurrentDay, before: ClusterImage, after: ClusterImage) -> CurrentDay:
    """The days after a step: did it change anything that verdicts follow from?"""
    if days.dirty or before is after or _parts(before) == _parts(after):
        return days
    return days._replace(dirty=True)


def flush_today(days: CurrentDay, image: ClusterImage) -> tuple[CurrentDay, list[HistoryRow]]:
    """What is to be said of the day that goes on: once for many events."""
    if not days.dirty:
        return days, []
    return days._replace(dirty=False), [*readiness_rows(image, days.day)]


def _parts(image: ClusterImage) -> tuple[Any, ...]:
    """What verdicts follow from. Large parts that did not change are the same objects."""
    status = image.sources.get(str(image.authority))
    return (
        *(image.authority, image.ready, image.gap, image.migration, image.quorum),
        in_progress(image),
        status and (status.state, status.detail),
        *(id(image.features.levels), id(image.nodes), id(image.answers), id(image.znodes)),
        id(image.unreadable),
    )


def readiness_rows(image: ClusterImage, day: int) -> Iterator[HistoryRow]:
    """How a cluster stands to each release; to older ones too, which tells the way back.

    None before the first day, and none while nobody has told who the nodes are.

    The time of day plays no part, so that a row does not depend on how messages came together.
    """
    if day < 0 or image.authority is Authority.NONE:
        return
    name = (_BEGINNING + timedelta(days=day)).isoformat()
    for release in releases().values():
        id_ = f"{image.cluster}/readiness/{name}/{release.name}"
        yield HistoryRow(STANDING, id_, _fields(name, release, assess_readiness(image, release)))


def _fields(day: str, release: Release, found: ReadinessReport) -> dict[str, Any]:
    back = found.way_back
    return {
        "day": day,
        "target": release.name,
        "verdict": found.verdict,
        # In ZooKeeper mode there are no levels that could be there.
        "finalized": back is not None and not found.changes,
        "state": found.state,
        "blockers": len(found.blockers),
        "named": [f"{one.role} {one.node_id}" for one in found.blockers[:NAMED]],
        "reasons": found.reasons,
        "lossless": None if back is None else back.lossless,
        "back_to": [] if back is None else back.to,
    }
