"""The ticks of a time axis, in UTC."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

_STEPS: Final = tuple(
    timedelta(seconds=seconds)
    for seconds in (
        *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800),
        *(3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 1209600),
    )
)
_MONTHS: Final = (1, 2, 3, 6, 12, 24, 60, 120)
_MONTH: Final = timedelta(days=30.4)
_MONDAY: Final = datetime(1970, 1, 5, tzinfo=UTC)


def ticks(begin: datetime, end: datetime, most: int) -> list[tuple[datetime, str]]:
    """Returns at most ``most`` round times between two times, each with its label.

    A label has the precision of the step; the first tick of a new day or year names that too.
    """
    span = end - begin
    step = next((step for step in _STEPS if span / step <= most), None)
    if step is not None:
        times = list(_every(begin, end, step))
    else:
        months = next((count for count in _MONTHS if span / (_MONTH * count) <= most), 240)
        times = list(_months(begin, end, months))
    texts = [_text(time, before, step) for before, time in pairwise([None, *times])]
    return list(zip(times, texts, strict=True))


def _every(begin: datetime, end: datetime, step: timedelta) -> Iterator[datetime]:
    time = _MONDAY + -((_MONDAY - begin) // step) * step
    while time <= end:
        if time >= begin:
            yield time
        time += step


def _months(begin: datetime, end: datetime, months: int) -> Iterator[datetime]:
    month = begin.astimezone(UTC).year * 12 + begin.astimezone(UTC).month - 1
    month -= month % months
    while (time := datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC)) <= end:
        if time >= begin:
            yield time
        month += months


def _text(time: datetime | None, before: datetime | None, step: timedelta | None) -> str:
    assert time is not None  # noqa: S101 - only `before` may be None
    if step is None or step >= timedelta(days=1):
        new_year = before is None or before.year != time.year
        month = time.strftime("%b") if step is None else f"{time:%b} {time.day}"
        return f"{month} {time.year}" if new_year else month
    clock = f"{time:%H:%M:%S}" if step < timedelta(minutes=1) else f"{time:%H:%M}"
    new_day = before is None or before.date() != time.date()
    return f"{time:%b} {time.day} {clock}" if new_day else clock
