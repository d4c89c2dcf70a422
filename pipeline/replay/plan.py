"""From what was found to one course of each cluster's log: stretches, snapshots, and what lacks.

Several nodes have copies of one log. What is committed is the same in all of them; the copy with
the newest epoch and the furthest end says what the log is, and the others fill in what it lacks. A
snapshot takes the place of what no copy has any more.
"""

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Final

from featurewatch.pipeline.replay.batch_reader import BatchReader
from featurewatch.pipeline.replay.discovery import SEGMENT, LogFile, discover
from featurewatch.pipeline.replay.log_format import READ_BYTES, FileRange, LogFormat, next_batch
from featurewatch.streams.kraft.dump_log import DumpLogSnapshotReader
from featurewatch.streams.kraft.errors import CorruptSnapshotError
from featurewatch.streams.kraft.records.batch import RecordBatch
from featurewatch.streams.kraft.records.selection import DEFAULT_RECORD_TYPES
from featurewatch.streams.kraft.snapshot import SnapshotOutput, read_snapshot, snapshot_name
from featurewatch.streams.types import ClusterId, OffsetAndEpoch

_LAST_BYTES: Final = 1 << 20
_CLOCKS_DIFFER_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class LogRange:
    """A stretch of the log that was looked at: the offsets, epochs and times of its two ends."""

    stretch: FileRange
    first: int
    end: int
    first_epoch: int
    last_epoch: int
    first_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class LogSlice:
    """A part as far as it is taken: from offset ``floor``, below ``ceiling`` (-1: to its end).

    ``others`` are parts of other copies that have some of these offsets too, the best first.
    ``followed`` says that the next run goes on where it ends.
    """

    part: LogRange
    floor: int
    ceiling: int
    others: tuple[LogRange, ...] = ()
    followed: bool = False

    @property
    def end(self) -> int:
        """The offset after the last one that is taken."""
        return self.part.end if self.ceiling < 0 else self.ceiling


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """A snapshot that is taken."""

    place: OffsetAndEpoch
    stretch: FileRange

    def read(
        self, cluster: ClusterId, wanted: Collection[str] = DEFAULT_RECORD_TYPES
    ) -> Iterator[SnapshotOutput]:
        """What stands in it, in chunks. Raises `CorruptSnapshotError` and `OSError`."""
        with open(self.stretch.path, "rb") as file:
            if self.stretch.form is LogFormat.BYTES:
                yield from read_snapshot(file, cluster, snapshot_name(self.place), 0, wanted)
                return
            reader = DumpLogSnapshotReader(cluster, self.place, wanted)
            file.seek(self.stretch.start)
            left = self.stretch.end - self.stretch.start
            while data := file.read(min(READ_BYTES, left)):
                left -= len(data)
                yield from reader.feed(data, 0)
            yield from reader.end_of_text(0)
            yield reader.finish(0)


Step = LogSlice | SnapshotFile


@dataclass(slots=True)
class ClusterPlan:
    """What is taken of one cluster, in the order of its log; ``notes`` are lines about it."""

    cluster: str
    steps: list[Step] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """What is to be taken, and lines about what cannot be, and about what else is worth knowing."""

    courses: list[ClusterPlan]
    problems: list[str]
    notes: list[str]


def prepare(paths: Iterable[Path], cluster: str, scratch: Path) -> ReplayPlan:
    """Looks at what lies under paths; bundles are unpacked below ``scratch``. No Spark is needed.

    ``cluster`` is the id of the logs of which nobody says it.

    Raises:
        AskedError: A path is not there, or nobody says of which cluster a log is.
    """
    finds = discover(paths, cluster, scratch)
    courses = plan(finds.found, finds.problems)
    if not courses and not finds.problems:
        finds.problems.append("there is no log and no snapshot in what was given")
    notes = [line for course in courses for line in course.notes]
    return ReplayPlan(courses, finds.problems, finds.notes + notes)


def plan(found: Iterable[LogFile], problems: list[str]) -> list[ClusterPlan]:
    """The course of each cluster; lines about what cannot be taken go to ``problems``."""
    by_cluster = sorted(found, key=lambda one: one.cluster)
    courses = []
    for cluster, members in groupby(by_cluster, key=lambda one: one.cluster):
        course = _course(cluster, [*members], problems)
        if course.steps:
            courses.append(course)
    return courses


def _course(cluster: str, found: list[LogFile], problems: list[str]) -> ClusterPlan:
    copies: list[list[LogRange]] = []
    spoiled: set[str] = set()
    logs = sorted((one for one in found if one.snapshot is None), key=lambda one: one.copy)
    for copy, members in groupby(logs, key=lambda one: one.copy):
        looked = (inspect_range(one.stretch, problems) for one in members)
        parts = sorted((part for part in looked if part is not None), key=lambda part: part.first)
        if fault := _mixed(parts):
            spoiled.add(copy)
            problems.append(f"{copy}: {fault}; nothing of it is taken")
        elif parts:
            copies.append(parts)
    copies.sort(key=lambda parts: (parts[-1].last_epoch, parts[-1].end), reverse=True)
    known = [
        SnapshotFile(one.snapshot, one.stretch)
        for one in sorted(found, key=lambda one: one.stretch.place)
        if one.snapshot is not None and one.copy not in spoiled
    ]
    course = ClusterPlan(cluster)
    course.steps = list(_bridged(_cover(copies), _Snapshots(cluster, known, course.notes)))
    return course


class _Snapshots:
    """The snapshots of a cluster. Those that are asked for are read, to see whether they are whole.

    Lines about copies in whose place another is taken go to ``notes``.
    """

    def __init__(self, cluster: str, known: Iterable[SnapshotFile], notes: list[str]) -> None:
        self._cluster = ClusterId(cluster)
        self._notes = notes
        self._copies: dict[OffsetAndEpoch, list[SnapshotFile]] = {}
        for one in sorted(known, key=lambda one: one.place):
            self._copies.setdefault(one.place, []).append(one)

    def within(self, after: int, last: int | None = None) -> Iterator[tuple[SnapshotFile, bool]]:
        """A copy of each snapshot that ends behind ``after``, at ``last`` or before; whether whole.

        It is the first copy where none is.
        """
        for place, copies in self._copies.items():
            if after < place.offset and (last is None or place.offset <= last):
                yield self._best(copies)

    def _best(self, copies: list[SnapshotFile]) -> tuple[SnapshotFile, bool]:
        faults: list[str] = []
        for one in copies:
            try:
                for _ in one.read(self._cluster, wanted=()):
                    pass
            except (CorruptSnapshotError, OSError) as error:
                faults.append(f"{one.stretch.place}: {error}")
                continue
            self._notes += [f"{fault}; {one.stretch.place} is taken" for fault in faults]
            return one, True
        return copies[0], False


def _mixed(parts: list[LogRange]) -> str:
    """Why the parts of one copy cannot be of one log (empty: they can)."""
    for a, b in pairwise(parts):
        names = f"{os.path.basename(a.stretch.path)} and {os.path.basename(b.stretch.path)}"
        if b.first < a.end:
            why = f"offsets {b.first} to {min(a.end, b.end) - 1} are in both"
        elif b.first_epoch < a.last_epoch:
            why = f"the epoch goes back from {a.last_epoch} to {b.first_epoch}"
        elif 0 <= b.first_ms < a.last_ms - _CLOCKS_DIFFER_MS:
            why = "the time goes back by more than an hour"
        else:
            continue
        return (
            f"{names} are not of one log ({why}): put each cluster's files into a directory of "
            "its own"
        )
    return ""


def _cover(copies: list[list[LogRange]]) -> list[LogSlice]:
    """The parts that together have the most of the log, the best copy's where there is a choice."""
    if not copies:
        return []
    end = copies[0][-1].end
    ranked = [part for parts in copies for part in parts]
    runs: list[LogSlice] = []
    at = min(part.first for part in ranked)
    while at < end:
        number = next((n for n, one in enumerate(ranked) if one.first <= at < one.end), None)
        if number is None:
            later = [one.first for one in ranked if one.first > at]
            if not later:
                break
            at = min(later)
            continue
        part = ranked[number]
        # Where a better copy begins it goes on: the end of another may never have been committed.
        better = (one.first for one in ranked[:number] if one.first > at)
        stop = min(part.end, end, *better)
        others = (one for one in ranked if one is not part and one.first < stop and one.end > at)
        runs.append(LogSlice(part, at, stop if stop < part.end else -1, tuple(others)))
        at = stop
    nexts = [*runs[1:], None]
    return [
        replace(run, followed=later is not None and later.floor == run.end)
        for run, later in zip(runs, nexts, strict=True)
    ]


def _bridged(runs: list[LogSlice], snapshots: _Snapshots) -> Iterator[Step]:
    """The runs, with snapshots where there is nothing before them.

    A snapshot that cannot be read is given too, and nothing is left out for it.
    """
    at = 0
    for index, run in enumerate(runs):
        if run.floor > at:
            for known, whole in snapshots.within(at, run.floor):
                yield known
                at = known.place.offset if whole else at
        if run.floor > at:
            for known, whole in snapshots.within(run.floor, _reach(runs[index:])):
                yield known
                if whole:
                    # What stands before it in the log has no ground to stand on.
                    at = known.place.offset
                    break
        floor = max(run.floor, at)
        if floor < run.end:
            yield replace(run, floor=floor)
        at = max(at, run.end)
    yield from (known for known, _ in snapshots.within(at))


def _reach(runs: list[LogSlice]) -> int:
    """The offset up to which the first run and those after it follow each other without a hole."""
    end = runs[0].end
    for run in runs[1:]:
        if run.floor > end:
            break
        end = run.end
    return end


def inspect_range(stretch: FileRange, problems: list[str]) -> LogRange | None:
    """Where a stretch begins and ends; None, with a line in ``problems``, if it has no batch."""
    if stretch.start == stretch.end:
        return None
    try:
        fd = os.open(stretch.path, os.O_RDONLY)
    except OSError as error:
        problems.append(f"{stretch.place} cannot be read: {error.strerror}")
        return None
    try:
        begin = next_batch(fd, stretch.form, stretch.start, stretch.end)
        if begin is None:
            problems.append(f"{stretch.place} holds no record batch that can be read")
            return None
        first = begin[1]
        last = _last_batch(fd, stretch, first)
    finally:
        os.close(fd)
    end = max(last.last_offset, first.last_offset) + 1
    ends = (first.leader_epoch, last.leader_epoch, first.append_ms, last.append_ms)
    base = first.base_offset
    name = os.path.basename(stretch.path)
    if begin[0] > stretch.start and SEGMENT.fullmatch(name) and int(name[:20]) < base:
        base = int(name[:20])  # its first batches are damaged, and their offsets are missing
    return LogRange(stretch, base, end, *ends)


def _last_batch(fd: int, stretch: FileRange, first: RecordBatch) -> RecordBatch:
    """The last batch whose checksum is right."""
    window = _LAST_BYTES
    while True:
        start = max(stretch.start, stretch.end - window)
        found = next_batch(fd, stretch.form, start, stretch.end)
        if found is not None:
            tail = FileRange(stretch.form, stretch.path, found[0], stretch.end, stretch.place)
            whole = (b for b in BatchReader(fd, tail) if isinstance(b, RecordBatch) and not b.error)
            *_, last = (first, *whole)
            return last
        if start == stretch.start:
            return first
        window *= 8


def cut(stretch: FileRange, size: int) -> list[tuple[FileRange, int]]:
    """A stretch in pieces of about ``size`` bytes, each with the offset that it begins with (-1:
    that of the first is not looked at).

    The pieces begin with batches, and follow from the content alone.
    """
    if stretch.end - stretch.start <= size:
        return [(stretch, -1)]
    fd = os.open(stretch.path, os.O_RDONLY)
    try:
        begins = [(stretch.start, -1)]
        at = stretch.start + size
        while at < stretch.end:
            found = next_batch(fd, stretch.form, at, stretch.end)
            if found is None:
                break
            begins.append((found[0], found[1].base_offset))
            at = max(found[0] + 1, at + size)
    finally:
        os.close(fd)
    ends = [at for at, _ in begins[1:]] + [stretch.end]
    return [
        (FileRange(stretch.form, stretch.path, at, end, stretch.place), first)
        for (at, first), end in zip(begins, ends, strict=True)
    ]
