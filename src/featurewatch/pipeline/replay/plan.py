"""Plans the replay of each cluster's log: which file ranges and snapshots to read, in which order.

Several nodes have copies of one log, whose committed parts are equal. The copy with the newest
epoch and the highest end defines the log, and the others fill its gaps. A snapshot replaces the
beginning that no copy has any more.
"""

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Final

from featurewatch.pipeline.replay.bundle_limits import DEFAULT_BUNDLE_LIMITS, BundleLimits
from featurewatch.pipeline.replay.discovery import LogFile, discover
from featurewatch.pipeline.replay.log_format import READ_BYTES, FileRange, LogFormat
from featurewatch.pipeline.replay.log_ranges import LogRange, inspect_range
from featurewatch.streams.kraft.dump_log import DumpLogSnapshotReader
from featurewatch.streams.kraft.errors import CorruptSnapshotError
from featurewatch.streams.kraft.records.selection import DEFAULT_RECORD_TYPES
from featurewatch.streams.kraft.snapshot import SnapshotOutput, read_snapshot, snapshot_name
from featurewatch.streams.types import ClusterId, OffsetAndEpoch

_CLOCKS_DIFFER_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class LogSlice:
    """A log range from offset ``floor`` up to but excluding ``ceiling`` (-1: to its end).

    ``others`` are log ranges of other copies with some of these offsets, the best first.
    ``is_followed``: the next slice continues at its end.
    """

    log_range: LogRange
    floor: int
    ceiling: int
    others: tuple[LogRange, ...] = ()
    is_followed: bool = False

    @property
    def end(self) -> int:
        """The offset after the last one of the slice."""
        return self.log_range.end if self.ceiling < 0 else self.ceiling


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """A snapshot to be read."""

    position: OffsetAndEpoch
    file_range: FileRange

    def read(
        self, cluster: ClusterId, wanted: Collection[str] = DEFAULT_RECORD_TYPES
    ) -> Iterator[SnapshotOutput]:
        """Yields its chunks.

        Raises:
            CorruptSnapshotError: The snapshot is incomplete or corrupt.
            OSError: The file cannot be read.
        """
        with open(self.file_range.path, "rb") as file:
            if self.file_range.format is LogFormat.BYTES:
                yield from read_snapshot(file, cluster, snapshot_name(self.position), 0, wanted)
                return
            reader = DumpLogSnapshotReader(cluster, self.position, wanted)
            file.seek(self.file_range.start)
            left = self.file_range.end - self.file_range.start
            while data := file.read(min(READ_BYTES, left)):
                left -= len(data)
                yield from reader.feed(data, 0)
            yield from reader.end_of_text(0)
            yield reader.finish(0)


Step = LogSlice | SnapshotFile


@dataclass(slots=True)
class ClusterPlan:
    """The slices and snapshots of one cluster, in the order of its log; ``notes`` are lines about
    it."""

    cluster: str
    steps: list[Step] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """The plans of all clusters, and lines about problems and other facts."""

    cluster_plans: list[ClusterPlan]
    problems: list[str]
    notes: list[str]


def prepare(
    paths: Iterable[Path],
    cluster: str,
    scratch: Path,
    limits: BundleLimits = DEFAULT_BUNDLE_LIMITS,
) -> ReplayPlan:
    """Plans a replay of the logs below some paths; bundles are unpacked below ``scratch``.

    ``cluster`` is the id of logs without a meta.properties; ``limits`` hold for each bundle. Spark
    is not needed.

    Raises:
        ReplayUsageError: A path does not exist, or the cluster of a log is unknown.
    """
    logs = discover(paths, cluster, scratch, limits)
    cluster_plans = plan(logs.files, logs.problems)
    if not cluster_plans and not logs.problems:
        logs.problems.append("there is no log and no snapshot in what was given")
    notes = [line for cluster_plan in cluster_plans for line in cluster_plan.notes]
    return ReplayPlan(cluster_plans, logs.problems, logs.notes + notes)


def plan(files: Iterable[LogFile], problems: list[str]) -> list[ClusterPlan]:
    """Returns the plan of each cluster; lines about unusable files are added to ``problems``."""
    by_cluster = sorted(files, key=lambda file: file.cluster)
    cluster_plans = []
    for cluster, members in groupby(by_cluster, key=lambda file: file.cluster):
        cluster_plan = _plan_cluster(cluster, [*members], problems)
        if cluster_plan.steps:
            cluster_plans.append(cluster_plan)
    return cluster_plans


def _plan_cluster(cluster: str, files: list[LogFile], problems: list[str]) -> ClusterPlan:
    copies: list[list[LogRange]] = []
    skipped_copies: set[str] = set()
    logs = sorted((file for file in files if file.snapshot is None), key=lambda file: file.copy)
    for copy, members in groupby(logs, key=lambda file: file.copy):
        inspected = (inspect_range(file.file_range, problems) for file in members)
        log_ranges = sorted(
            (log_range for log_range in inspected if log_range is not None),
            key=lambda log_range: log_range.first,
        )
        if error := _mixed_logs(log_ranges):
            skipped_copies.add(copy)
            problems.append(f"{copy}: {error}; nothing of it is taken")
        elif log_ranges:
            copies.append(log_ranges)
    copies.sort(
        key=lambda log_ranges: (log_ranges[-1].last_epoch, log_ranges[-1].end), reverse=True
    )
    snapshots = [
        SnapshotFile(file.snapshot, file.file_range)
        for file in sorted(files, key=lambda file: file.file_range.label)
        if file.snapshot is not None and file.copy not in skipped_copies
    ]
    cluster_plan = ClusterPlan(cluster)
    cluster_plan.steps = list(
        _bridged(_cover(copies), _Snapshots(cluster, snapshots, cluster_plan.notes))
    )
    return cluster_plan


class _Snapshots:
    """The snapshots of a cluster. `within` reads those that it yields, to check whether they are
    complete.

    Lines about copies that another one replaces go to ``notes``.
    """

    def __init__(self, cluster: str, snapshots: Iterable[SnapshotFile], notes: list[str]) -> None:
        self._cluster = ClusterId(cluster)
        self._notes = notes
        self._copies: dict[OffsetAndEpoch, list[SnapshotFile]] = {}
        for snapshot in sorted(snapshots, key=lambda snapshot: snapshot.position):
            self._copies.setdefault(snapshot.position, []).append(snapshot)

    def within(self, after: int, last: int | None = None) -> Iterator[tuple[SnapshotFile, bool]]:
        """Yields a copy of each snapshot that ends after ``after``, and at most at ``last``.

        The flag tells whether the copy is complete; the first copy is yielded if none is.
        """
        for position, copies in self._copies.items():
            if after < position.offset and (last is None or position.offset <= last):
                yield self._best(copies)

    def _best(self, copies: list[SnapshotFile]) -> tuple[SnapshotFile, bool]:
        errors: list[str] = []
        for snapshot in copies:
            try:
                for _ in snapshot.read(self._cluster, wanted=()):
                    pass
            except (CorruptSnapshotError, OSError) as error:
                errors.append(f"{snapshot.file_range.label}: {error}")
                continue
            self._notes += [f"{line}; {snapshot.file_range.label} is taken" for line in errors]
            return snapshot, True
        return copies[0], False


def _mixed_logs(log_ranges: list[LogRange]) -> str:
    """Why the ranges of one copy cannot belong to one log (empty: they can)."""
    for earlier, later in pairwise(log_ranges):
        names = " and ".join(os.path.basename(r.file_range.path) for r in (earlier, later))
        if later.first < earlier.end:
            reason = f"offsets {later.first} to {min(earlier.end, later.end) - 1} are in both"
        elif later.first_epoch < earlier.last_epoch:
            reason = f"the epoch goes back from {earlier.last_epoch} to {later.first_epoch}"
        elif 0 <= later.first_ms < earlier.last_ms - _CLOCKS_DIFFER_MS:
            reason = "the time goes back by more than an hour"
        else:
            continue
        return (
            f"{names} are not of one log ({reason}): put each cluster's files into a separate "
            "directory"
        )
    return ""


def _cover(copies: list[list[LogRange]]) -> list[LogSlice]:
    """The slices that together cover most of the log, from the best copy of each offset."""
    if not copies:
        return []
    end = copies[0][-1].end
    ranked = [log_range for log_ranges in copies for log_range in log_ranges]
    slices: list[LogSlice] = []
    offset = min(log_range.first for log_range in ranked)
    while offset < end:
        index = next(
            (n for n, other in enumerate(ranked) if other.first <= offset < other.end), None
        )
        if index is None:
            starts = [other.first for other in ranked if other.first > offset]
            if not starts:
                break
            offset = min(starts)
            continue
        log_range = ranked[index]
        # A better copy takes over where it begins: the end of another may never have been
        # committed.
        better = (other.first for other in ranked[:index] if other.first > offset)
        stop = min(log_range.end, end, *better)
        others = (
            other
            for other in ranked
            if other is not log_range and other.first < stop and other.end > offset
        )
        slices.append(
            LogSlice(log_range, offset, stop if stop < log_range.end else -1, tuple(others))
        )
        offset = stop
    next_slices = [*slices[1:], None]
    return [
        replace(slice_, is_followed=next_slice is not None and next_slice.floor == slice_.end)
        for slice_, next_slice in zip(slices, next_slices, strict=True)
    ]


def _bridged(slices: list[LogSlice], snapshots: _Snapshots) -> Iterator[Step]:
    """The slices, with snapshots where nothing comes before them.

    A snapshot that cannot be read is yielded too, and replaces nothing.
    """
    offset = 0
    for index, slice_ in enumerate(slices):
        if slice_.floor > offset:
            for snapshot, is_complete in snapshots.within(offset, slice_.floor):
                yield snapshot
                offset = snapshot.position.offset if is_complete else offset
        if slice_.floor > offset:
            for snapshot, is_complete in snapshots.within(slice_.floor, _reach(slices[index:])):
                yield snapshot
                if is_complete:
                    # The log before it cannot be applied without its own beginning.
                    offset = snapshot.position.offset
                    break
        floor = max(slice_.floor, offset)
        if floor < slice_.end:
            yield replace(slice_, floor=floor)
        offset = max(offset, slice_.end)
    yield from (snapshot for snapshot, _ in snapshots.within(offset))


def _reach(slices: list[LogSlice]) -> int:
    """The offset up to which the first slice and its successors are contiguous."""
    end = slices[0].end
    for slice_ in slices[1:]:
        if slice_.floor > end:
            break
        end = slice_.end
    return end
