"""Which task reads what: a log in units that are read side by side.

A unit is read as if no transaction were open where it begins. Where one is, which the unit before
tells, both are read again as one: transactions across cuts are rare, and each comes out whole.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from featurewatch.pipeline.replay.log_format import LogFormat
from featurewatch.pipeline.replay.plan import ClusterPlan, LogSlice, SnapshotFile, cut
from featurewatch.pipeline.replay.split_reader import ReplaySplit, SplitRange, SplitStats

UNIT_BYTES: Final = 16 << 20
MOST_UNITS: Final = 512
"""Beyond so many they grow: what a unit costs beside its bytes is little, but not nothing."""


@dataclass(slots=True)
class ClusterSplits:
    """A cluster's course with its units."""

    cluster: str
    steps: list[SnapshotFile | ReplaySplit] = field(default_factory=list)

    @property
    def units(self) -> list[ReplaySplit]:
        """The units in order."""
        return [step for step in self.steps if isinstance(step, ReplaySplit)]


def splits_of(courses: Iterable[ClusterPlan], unit_bytes: int = 0) -> list[ClusterSplits]:
    """The courses in units of about ``unit_bytes`` (0: as is good), numbered from 0.

    They follow from the files alone, and not from the machine.
    """
    given = [*courses]
    stretches = [
        step.part.stretch for course in given for step in course.steps if isinstance(step, LogSlice)
    ]
    total = sum(stretch.end - stretch.start for stretch in stretches)
    size = max(unit_bytes or UNIT_BYTES, total // MOST_UNITS)
    tracks, number = [], 0
    for course in given:
        track = ClusterSplits(course.cluster)
        for step in course.steps:
            if isinstance(step, SnapshotFile):
                track.steps.append(step)
                continue
            for unit in _units(course.cluster, step, size, number):
                track.steps.append(unit)
                number = unit.number + 1
        tracks.append(track)
    return tracks


def _units(cluster: str, run: LogSlice, size: int, number: int) -> Iterator[ReplaySplit]:
    pieces = cut(run.part.stretch, size)
    firsts = [run.part.first, *(first for _, first in pieces[1:])]
    for (piece, _), first, after in zip(pieces, firsts, [*firsts[1:], None], strict=True):
        if after is not None and after <= run.floor:
            continue
        if 0 <= run.ceiling <= first:
            return
        others = tuple(
            part
            for part in run.others
            if part.stretch.form is piece.form
            and part.first < (run.end if after is None else after)
            and part.end > first
        )
        goes_on = run.end if after is None and run.followed else -1
        span = SplitRange(piece, first, run.ceiling, others, goes_on)
        yield ReplaySplit(number, cluster, (span,), max(run.floor, first))
        number += 1


Read = Callable[[Sequence[ReplaySplit], frozenset[int]], Iterable[SplitStats]]
"""Reads units. What was read before under the given numbers, or their own, counts no more."""


def read_until_closed(tracks: Sequence[ClusterSplits], read: Read) -> dict[int, SplitStats]:
    """Reads all units until each begins outside of a transaction; their tallies by number.

    Joins units in ``tracks`` where that must be.
    """
    tallies: dict[int, SplitStats] = {}
    units = [unit for track in tracks for unit in track.units]
    gone: list[int] = []
    reach = 1
    while units:
        tallies |= {tally.unit: tally for tally in read(units, frozenset(gone))}
        units, gone = _join_open(tracks, tallies, reach)
        reach *= 2
    return tallies


def _join_open(
    tracks: Iterable[ClusterSplits], tallies: dict[int, SplitStats], reach: int
) -> tuple[list[ReplaySplit], list[int]]:
    """Joins units that end in an open transaction with up to ``reach`` that follow.

    Returns what is to be read again, and the numbers that are gone.
    """
    again: list[ReplaySplit] = []
    gone: list[int] = []
    for track in tracks:
        steps: list[SnapshotFile | ReplaySplit] = []
        at = 0
        while at < len(track.steps):
            step = track.steps[at]
            at += 1
            if isinstance(step, ReplaySplit) and tallies[step.number].open_from >= 0:
                after = _after(track.steps[at:], step.form, tallies[step.number], tallies)
                others = [*islice(after, reach)]
                for other in others:
                    step = step.joined(other)
                    gone.append(other.number)
                at += len(others)
                if others:
                    again.append(step)
            steps.append(step)
        track.steps = steps
    return again, gone


def _after(
    steps: Iterable[SnapshotFile | ReplaySplit],
    form: LogFormat,
    tally: SplitStats,
    tallies: dict[int, SplitStats],
) -> Iterator[ReplaySplit]:
    """The units that go on where one ended, without a hole, and in the same form."""
    end = tally.end
    for step in steps:
        if (
            not isinstance(step, ReplaySplit)
            or tallies[step.number].first != end
            or step.form is not form
        ):
            return
        end = tallies[step.number].end
        yield step
