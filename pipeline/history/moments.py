"""Moments of a cluster's history, as people name them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from featurewatch.pipeline.errors import PipelineError


class MomentError(ValueError):
    """What was given names no moment of a cluster; the text says what does."""


class UnknownMomentError(PipelineError):
    """The history does not say what was then."""


@dataclass(frozen=True, slots=True)
class AtTime:
    """A time; aware."""

    time: datetime

    def __str__(self) -> str:
        return format_time(self.time)


@dataclass(frozen=True, slots=True)
class AtOffset:
    """Just after a record of the metadata log was committed."""

    offset: int

    def __str__(self) -> str:
        return f"offset {self.offset}"


@dataclass(frozen=True, slots=True)
class AtEpoch:
    """While the cluster said this epoch of its levels: an offset, or a version of the znode."""

    epoch: int

    def __str__(self) -> str:
        return f"epoch {self.epoch}"


@dataclass(frozen=True, slots=True)
class AtRevision:
    """When featurewatch's revision began."""

    revision: int

    def __str__(self) -> str:
        return f"revision {self.revision}"


Moment = AtTime | AtOffset | AtEpoch | AtRevision

_NAMED: Final[Mapping[str, Callable[[int], Moment]]] = {
    "offset": AtOffset,
    "epoch": AtEpoch,
    "revision": AtRevision,
}
_NUMBERED: Final = re.compile(r"(offset|epoch|revision):(\d{1,18})")
_AGO: Final = re.compile(
    r"(\d{1,6})\s*(s|seconds?|m|min|minutes?|h|hours?|d|days?|w|weeks?)(?:\s+ago)?"
)
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
WAYS: Final = (
    "a time (2026-11-20, 2026-11-20T14:30, 2026-11-20T14:30:05+01:00; UTC without a zone), "
    "'2 days ago', 'yesterday' or 'now'"
)


def format_time(at: datetime) -> str:
    """A time in UTC, to the millisecond where it has any."""
    utc = at.astimezone(UTC)
    fraction = f".{utc.microsecond // 1000:03d}" if utc.microsecond >= 1000 else ""
    return f"{utc:%Y-%m-%d %H:%M:%S}{fraction}"


def parse_time(given: str, now: datetime) -> datetime:
    """The time that somebody wrote, in UTC.

    ISO 8601 with a zone, or UTC without one; a date is its first moment; ``2 days ago``, ``3h``,
    ``yesterday`` (this time a day ago) and ``now`` count from ``now``, which is aware.

    Raises:
        MomentError: It is no time.
    """
    words = given.strip().lower()
    if words == "now":
        return now
    if words == "yesterday":
        return now - timedelta(days=1)
    try:
        if found := _AGO.fullmatch(words):
            return now - timedelta(seconds=int(found[1]) * _UNITS[found[2][0]])
        at = datetime.fromisoformat(given.strip())
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise MomentError(f"{given!r} is no moment: give {WAYS}") from None
    return at


def parse_moment(given: str, now: datetime) -> Moment:
    """A moment as one argument: a time, ``offset:N``, ``epoch:N`` or ``revision:N``.

    Raises:
        MomentError: It is none of these.
    """
    if found := _NUMBERED.fullmatch(given.strip().lower()):
        return _NAMED[found[1]](int(found[2]))
    try:
        return AtTime(parse_time(given, now))
    except MomentError as error:
        raise MomentError(f"{error}, or offset:N, epoch:N, revision:N") from None
