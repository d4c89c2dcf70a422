"""Daily readiness: what blocked each release on a cluster at the end of each day.

The verdict is that of `monitor.readiness`, as the command gives it. It is computed from the
fold's state when the first message of a later day arrives, and for the current day whenever
something that a verdict depends on has changed. Days are UTC, by Kafka's time of the messages.
"""

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any, Final, NamedTuple

import orjson

from featurewatch.controller.kraft import releases
from featurewatch.monitor.migration import in_progress
from featurewatch.monitor.readiness import assess_releases
from featurewatch.monitor.readiness.target_row import target_row
from featurewatch.pipeline.fold.intervals import HistoryRow
from featurewatch.tables.image.cluster import Authority, ClusterImage

READINESS: Final = "readiness"
"""The kind of the rows that this module emits."""

ROW: Final = "days"
"""The name of the state row that holds `CurrentDay`."""

_DAY_MS: Final = 86_400_000
_BEGINNING: Final = date(1970, 1, 1)


class CurrentDay(NamedTuple):
    """The day of the newest message, in days since the Unix epoch (-1: no message yet).

    ``dirty``: something changed on that day that no emitted row has yet.
    """

    day: int = -1
    dirty: bool = False


NO_DAYS: Final = CurrentDay()


def days_of_row(value: bytes | None) -> CurrentDay:
    """Decodes a state row; None gives the state before the first message."""
    return CurrentDay(*orjson.loads(value)) if value else NO_DAYS


def row_of_days(days: CurrentDay) -> bytes:
    """Encodes the state row."""
    return orjson.dumps([*days])


def on_message(
    days: CurrentDay, image: ClusterImage, time_ms: int
) -> tuple[CurrentDay, list[HistoryRow]]:
    """Advances the day to that of a message, before the message is applied; ``time_ms`` is Kafka's.

    Returns the new day, and the final rows of the previous one if it was dirty. A message of an
    earlier day does not move the day back. A new day starts dirty.
    """
    today = time_ms // _DAY_MS
    if today <= days.day:
        return days, []
    return CurrentDay(today, dirty=True), [*readiness_rows(image, days.day)] if days.dirty else []


def mark_changed(days: CurrentDay, before: ClusterImage, after: ClusterImage) -> CurrentDay:
    """Marks the day dirty if a step changed anything that verdicts depend on."""
    if days.dirty or before is after or _parts(before) == _parts(after):
        return days
    return days._replace(dirty=True)


def flush_today(days: CurrentDay, image: ClusterImage) -> tuple[CurrentDay, list[HistoryRow]]:
    """Returns the rows of the current day if it is dirty; called once after a batch of messages."""
    if not days.dirty:
        return days, []
    return days._replace(dirty=False), [*readiness_rows(image, days.day)]


def _parts(image: ClusterImage) -> tuple[Any, ...]:
    """The inputs of a verdict. Large parts are compared by identity: unchanged ones are the same
    objects."""
    status = image.sources.statuses.get(str(image.authority))
    return (
        *(image.authority, image.ready, image.log.gap, image.log.migration, image.log.quorum),
        in_progress(image),
        status and (status.state, status.detail),
        *(id(image.features.levels), id(image.nodes), id(image.answers.nodes)),
        *(id(image.zookeeper.nodes), id(image.sources.unreadable)),
    )


def readiness_rows(image: ClusterImage, day: int) -> Iterator[HistoryRow]:
    """Yields a row with the verdict for each release; older releases show the downgrade path.

    ``day`` counts from the Unix epoch. Yields nothing before the first day, and nothing while no
    source has reported the nodes. The time of day plays no part, so a row does not depend on how
    messages were batched.
    """
    if day < 0 or image.authority is Authority.NONE:
        return
    day_name = (_BEGINNING + timedelta(days=day)).isoformat()
    for release, report in assess_releases(image, releases().values()):
        id_ = f"{image.cluster}/readiness/{day_name}/{release.name}"
        row = target_row(release, report)
        yield HistoryRow(READINESS, id_, {"day": day_name, **row})
