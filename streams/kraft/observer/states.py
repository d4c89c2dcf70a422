"""What the observer of the metadata log can be about, hear and give out."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from featurewatch.streams.kraft.records.batch import RecordBatch
from featurewatch.streams.types import OffsetAndEpoch


class ObserverState(StrEnum):
    """What the observer is about."""

    SEEKING = "seeking"
    FETCHING = "fetching"
    SNAPSHOT = "snapshot"


class ResponseKind(StrEnum):
    """What an answer amounts to."""

    RECORDS = "records"
    DIVERGED = "diverged"
    SNAPSHOT_NAMED = "snapshot named"
    SNAPSHOT_PART = "snapshot part"
    SNAPSHOT_WHOLE = "snapshot whole"
    SNAPSHOT_GONE = "snapshot gone"
    NEW_LEADER = "new leader"
    NOT_LEADER = "not leader"
    BEHIND = "behind"
    REFUSED = "refused"
    LOST = "lost"


_TO_SEEKING = (
    ResponseKind.NEW_LEADER,
    ResponseKind.NOT_LEADER,
    ResponseKind.BEHIND,
    ResponseKind.REFUSED,
    ResponseKind.LOST,
)

TRANSITIONS: Final[Mapping[tuple[ObserverState, ResponseKind], ObserverState]] = MappingProxyType(
    {(phase, heard): ObserverState.SEEKING for phase in ObserverState for heard in _TO_SEEKING}
    | {
        (phase, heard): after
        for phase in (ObserverState.SEEKING, ObserverState.FETCHING)
        for heard, after in (
            (ResponseKind.RECORDS, ObserverState.FETCHING),
            (ResponseKind.DIVERGED, ObserverState.FETCHING),
            (ResponseKind.SNAPSHOT_NAMED, ObserverState.SNAPSHOT),
        )
    }
    | {
        (ObserverState.SNAPSHOT, ResponseKind.SNAPSHOT_PART): ObserverState.SNAPSHOT,
        (ObserverState.SNAPSHOT, ResponseKind.SNAPSHOT_WHOLE): ObserverState.FETCHING,
        (ObserverState.SNAPSHOT, ResponseKind.SNAPSHOT_GONE): ObserverState.FETCHING,
    }
)
"""The phase after an answer. What is not here cannot be: no such answer follows such a question."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Ask nothing before this many milliseconds have passed."""

    ms: int


@dataclass(frozen=True, slots=True)
class CommittedBatches:
    """Whole batches below the high watermark, in order and without a hole before them."""

    batches: tuple[RecordBatch, ...]


@dataclass(frozen=True, slots=True)
class SnapshotBytes:
    """Bytes of a snapshot; ``position`` 0 begins it anew, and ``last`` completes it."""

    snapshot: OffsetAndEpoch
    position: int
    data: bytes
    last: bool


@dataclass(frozen=True, slots=True)
class MissingOffsets:
    """Offsets, inclusive, that cannot be had one by one (``reset``: that were taken back)."""

    first: int
    last: int
    reason: str
    reset: bool


ObserverOutput = CommittedBatches | SnapshotBytes | MissingOffsets


@dataclass(frozen=True, slots=True)
class ObserverTiming:
    """How long to wait and how much to take; all times in milliseconds."""

    max_wait_ms: int = 500
    max_bytes: int = 1 << 20
    most_bytes: int = 64 << 20
    """A batch that does not fit into ``max_bytes`` is asked for with more, up to this."""

    tail_bytes: int = 16 << 20
    """More than this above the high watermark is not held."""

    watermark_polls_ms: tuple[int, ...] = (0, 1, 2, 4, 8, 16, 32, 64, 100)
    """Waits between looks at the high watermark while records above it are held (before 4.1)."""

    backoff_ms: int = 50
    backoff_cap_ms: int = 1000
    rebuilt_after_ms: int = 10_000
    """Every controller at an older epoch for so long: the cluster was built anew."""


DEFAULT_PACE: Final = ObserverTiming()
