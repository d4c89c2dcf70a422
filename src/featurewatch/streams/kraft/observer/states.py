"""The observer's states and transitions as a table, its outputs, and its timing."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from featurewatch.streams.kraft.records.batch import RecordBatch
from featurewatch.streams.source_status import StallReason
from featurewatch.streams.types import LeaderAndEpoch, OffsetAndEpoch


class LogProgress(NamedTuple):
    """How far a log has been read.

    ``next_position`` follows the last record that was released, ``fetch_position`` the last one
    that was read, committed or not. ``high_watermark`` is the end of the committed log, if it is
    known (else -1), and ``caught_up`` whether everything below it was released. ``stall_reason`` is
    why nothing can be read now.
    """

    next_position: OffsetAndEpoch
    fetch_position: OffsetAndEpoch
    high_watermark: int
    leader: LeaderAndEpoch
    caught_up: bool
    stall_reason: StallReason | None


class ObserverState(StrEnum):
    """Which request comes next, and to whom."""

    SEEKING = "seeking"
    """Fetch, to each known controller in turn, until the leader responds."""

    FETCHING = "fetching"
    """Fetch, to the leader."""

    SNAPSHOT = "snapshot"
    """FetchSnapshot, to the leader."""


class ResponseKind(StrEnum):
    """The outcome of a response for the state."""

    RECORDS = "records"
    DIVERGED = "diverged"
    SNAPSHOT_NAMED = "snapshot named"
    SNAPSHOT_PART = "snapshot part"
    SNAPSHOT_WHOLE = "snapshot whole"
    SNAPSHOT_NOT_FOUND = "snapshot not found"
    NEW_LEADER = "new leader"
    NOT_LEADER = "not leader"
    BEHIND = "behind"
    REFUSED = "refused"
    LOST = "lost"


TRANSITIONS: Final[Mapping[tuple[ObserverState, ResponseKind], ObserverState]] = MappingProxyType(
    {
        (ObserverState.SEEKING, ResponseKind.RECORDS): ObserverState.FETCHING,
        (ObserverState.SEEKING, ResponseKind.DIVERGED): ObserverState.FETCHING,
        (ObserverState.SEEKING, ResponseKind.SNAPSHOT_NAMED): ObserverState.SNAPSHOT,
        (ObserverState.SEEKING, ResponseKind.NEW_LEADER): ObserverState.SEEKING,
        (ObserverState.SEEKING, ResponseKind.NOT_LEADER): ObserverState.SEEKING,
        (ObserverState.SEEKING, ResponseKind.BEHIND): ObserverState.SEEKING,
        (ObserverState.SEEKING, ResponseKind.REFUSED): ObserverState.SEEKING,
        (ObserverState.SEEKING, ResponseKind.LOST): ObserverState.SEEKING,
        (ObserverState.FETCHING, ResponseKind.RECORDS): ObserverState.FETCHING,
        (ObserverState.FETCHING, ResponseKind.DIVERGED): ObserverState.FETCHING,
        (ObserverState.FETCHING, ResponseKind.SNAPSHOT_NAMED): ObserverState.SNAPSHOT,
        (ObserverState.FETCHING, ResponseKind.NEW_LEADER): ObserverState.SEEKING,
        (ObserverState.FETCHING, ResponseKind.NOT_LEADER): ObserverState.SEEKING,
        (ObserverState.FETCHING, ResponseKind.BEHIND): ObserverState.SEEKING,
        (ObserverState.FETCHING, ResponseKind.REFUSED): ObserverState.SEEKING,
        (ObserverState.FETCHING, ResponseKind.LOST): ObserverState.SEEKING,
        (ObserverState.SNAPSHOT, ResponseKind.SNAPSHOT_PART): ObserverState.SNAPSHOT,
        (ObserverState.SNAPSHOT, ResponseKind.SNAPSHOT_WHOLE): ObserverState.FETCHING,
        (ObserverState.SNAPSHOT, ResponseKind.SNAPSHOT_NOT_FOUND): ObserverState.FETCHING,
        (ObserverState.SNAPSHOT, ResponseKind.NEW_LEADER): ObserverState.SEEKING,
        (ObserverState.SNAPSHOT, ResponseKind.NOT_LEADER): ObserverState.SEEKING,
        (ObserverState.SNAPSHOT, ResponseKind.BEHIND): ObserverState.SEEKING,
        (ObserverState.SNAPSHOT, ResponseKind.REFUSED): ObserverState.SEEKING,
        (ObserverState.SNAPSHOT, ResponseKind.LOST): ObserverState.SEEKING,
    }
)
"""The state after each response. Pairs not listed are unreachable: that request never gets that
response. `scripts/draw_states.py` draws the diagram in ``observer.md`` from this table."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Send no request before this many milliseconds have passed."""

    ms: int


@dataclass(frozen=True, slots=True)
class CommittedBatches:
    """Whole batches below the high watermark, in order and without a gap before them."""

    batches: tuple[RecordBatch, ...]


@dataclass(frozen=True, slots=True)
class SnapshotBytes:
    """Bytes of a snapshot from ``position`` on; 0 starts it (again), and ``last`` completes it.

    ``size_bytes`` is what the sender announces for all of it.
    """

    snapshot: OffsetAndEpoch
    position: int
    data: bytes
    last: bool
    size_bytes: int


@dataclass(frozen=True, slots=True)
class MissingOffsets:
    """Offsets, inclusive, whose records cannot be read (``reset``: they were truncated)."""

    first: int
    last: int
    reason: str
    reset: bool


ObserverOutput = CommittedBatches | SnapshotBytes | MissingOffsets


@dataclass(frozen=True, slots=True)
class ObserverTiming:
    """Waits in milliseconds, and limits in bytes."""

    max_wait_ms: int = 500
    max_bytes: int = 1 << 20
    max_batch_bytes: int = 20 << 20
    """A batch that does not fit into ``max_bytes`` is fetched with a higher limit, up to this."""

    tail_bytes: int = 16 << 20
    """At most about this much above the high watermark is held."""

    watermark_polls_ms: tuple[int, ...] = (0, 1, 2, 4, 8, 16, 32, 64, 100)
    """Waits between polls of the high watermark while records above it are held (before 4.1)."""

    backoff_ms: int = 50
    backoff_cap_ms: int = 1000
    rebuilt_after_ms: int = 10_000
    """Every controller at an older epoch for this long: the cluster was recreated."""


DEFAULT_TIMING: Final = ObserverTiming()
