"""Parses the moments of a cluster's history that users give."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from featurewatch.pipeline.errors import PipelineError


class MomentError(ValueError):
    """The argument names no moment; the text lists what does."""


class UnknownMomentError(PipelineError):
    """The history does not cover the moment."""


@dataclass(frozen=True, slots=True)
class AtTime:
    """An aware time."""

    time: datetime

    def __str__(self) -> str:
        return format_time(self.time)


@dataclass(frozen=True, slots=True)
class AtOffset:
    """The state after the commit of a record of the metadata log."""

    offset: int

    def __str__(self) -> str:
        return f"offset {self.offset}"


@dataclass(frozen=True, slots=True)
class AtEpoch:
    """The state while the cluster reported this epoch: a log offset, or the znode's version."""

    epoch: int

    def __str__(self) -> str:
        return f"epoch {self.epoch}"


@dataclass(frozen=True, slots=True)
class AtRevision:
    """The state when a feature revision of featurewatch began."""

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
    """Formats a time in UTC, with milliseconds unless they are zero."""
    utc = at.astimezone(UTC)
    fraction = f".{utc.microsecond // 1000:03d}" if utc.microsecond >= 1000 else ""
    return f"{utc:%Y-%m-%d %H:%M:%S}{fraction}"


def parse_time(text: str, now: datetime) -> datetime:
    """Parses a time and returns it in UTC.

    Accepts ISO 8601, in UTC if no zone is given; a date means its first moment. ``2 days ago``,
    ``3h``, ``yesterday`` (a day ago) and ``now`` are relative to ``now``, which is aware.

    Raises:
        MomentError: The text is not a time.
    """
    normalized = text.strip().lower()
    if normalized == "now":
        return now
    if normalized == "yesterday":
        return now - timedelta(days=1)
    try:
        if match := _AGO.fullmatch(normalized):
            return now - timedelta(seconds=int(match[1]) * _UNITS[match[2][0]])
        at = datetime.fromisoformat(text.strip())
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise MomentError(f"{text!r} is not a moment: give {WAYS}") from None
    return at


def parse_moment(text: str, now: datetime) -> Moment:
    """Parses a moment: a time, ``offset:N``, ``epoch:N`` or ``revision:N``.

    Raises:
        MomentError: The text is none of these.
    """
    if match := _NUMBERED.fullmatch(text.strip().lower()):
        return _NAMED[match[1]](int(match[2]))
    try:
        return AtTime(parse_time(text, now))
    except MomentError as error:
        raise MomentError(f"{error}, or offset:N, epoch:N, revision:N") from None
