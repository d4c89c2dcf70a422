"""Divides each log into splits that are read in parallel.

A split is read as if no transaction were open at its start. If one is, which the previous split
reveals, both are read again as one: transactions across splits are rare, and each is yielded
complete.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from featurewatch.pipeline.replay.log_format import LogFormat
from featurewatch.pipeline.replay.log_ranges import cut
from featurewatch.pipeline.replay.plan import ClusterPlan, LogSlice, SnapshotFile
from featurewatch.pipeline.replay.split_reader import ReplaySplit, SplitRange, SplitStats

SPLIT_BYTES: Final = 16 << 20
MAX_SPLITS: Final = 512
"""With more data the splits grow instead: the overhead of a split is small, but not zero."""


@dataclass(slots=True)
class ClusterSplits:
    """The steps of a cluster's plan, with its log slices divided into splits."""

    cluster: str
    steps: list[SnapshotFile | ReplaySplit] = field(default_factory=list)

    @property
    def splits(self) -> list[ReplaySplit]:
        """The splits in order."""
        return [step for step in self.steps if isinstance(step, ReplaySplit)]


def splits_of(cluster_plans: Iterable[ClusterPlan], split_bytes: int = 0) -> list[ClusterSplits]:
    """Divides the plans into splits of about ``split_bytes`` (0: a suitable size), numbered from 0.

    The splits depend on the files alone, not on the machine.
    """
    plans = [*cluster_plans]
    file_ranges = [
        step.log_range.file_range
        for cluster_plan in plans
        for step in cluster_plan.steps
        if isinstance(step, LogSlice)
    ]
    total = sum(file_range.end - file_range.start for file_range in file_ranges)
    size = max(split_bytes or SPLIT_BYTES, total // MAX_SPLITS)
    clusters, next_number = [], 0
    for cluster_plan in plans:
        cluster_splits = ClusterSplits(cluster_plan.cluster)
        for step in cluster_plan.steps:
            if isinstance(step, SnapshotFile):
                cluster_splits.steps.append(step)
                continue
            for split in _splits(cluster_plan.cluster, step, size, next_number):
                cluster_splits.steps.append(split)
                next_number = split.number + 1
        clusters.append(cluster_splits)
    return clusters


def _splits(cluster: str, slice_: LogSlice, size: int, next_number: int) -> Iterator[ReplaySplit]:
    pieces = cut(slice_.log_range.file_range, size)
    firsts = [slice_.log_range.first, *(first for _, first in pieces[1:])]
    for (file_range, _), first, after in zip(pieces, firsts, [*firsts[1:], None], strict=True):
        if after is not None and after <= slice_.floor:
            continue
        if 0 <= slice_.ceiling <= first:
            return
        others = tuple(
            log_range
            for log_range in slice_.others
            if log_range.file_range.format is file_range.format
            and log_range.first < (slice_.end if after is None else after)
            and log_range.end > first
        )
        continues_at = slice_.end if after is None and slice_.is_followed else -1
        split_range = SplitRange(file_range, first, slice_.ceiling, others, continues_at)
        yield ReplaySplit(next_number, cluster, (split_range,), max(slice_.floor, first))
        next_number += 1


Read = Callable[[Sequence[ReplaySplit], frozenset[int]], Iterable[SplitStats]]
"""Reads splits. Earlier results under the given numbers, or under those of the splits, are
discarded."""


def read_until_closed(clusters: Sequence[ClusterSplits], read: Read) -> dict[int, SplitStats]:
    """Reads all splits until each begins outside of a transaction; returns their statistics by
    number.

    Splits in ``clusters`` are joined where necessary.
    """
    all_stats: dict[int, SplitStats] = {}
    splits = [split for cluster_splits in clusters for split in cluster_splits.splits]
    removed: list[int] = []
    reach = 1
    while splits:
        all_stats |= {stats.split: stats for stats in read(splits, frozenset(removed))}
        splits, removed = _join_open(clusters, all_stats, reach)
        reach *= 2
    return all_stats


def _join_open(
    clusters: Iterable[ClusterSplits], all_stats: dict[int, SplitStats], reach: int
) -> tuple[list[ReplaySplit], list[int]]:
    """Joins splits that end in an open transaction with up to ``reach`` following ones.

    Returns the splits to read again, and the numbers of those that were absorbed.
    """
    again: list[ReplaySplit] = []
    removed: list[int] = []
    for cluster_splits in clusters:
        steps: list[SnapshotFile | ReplaySplit] = []
        index = 0
        while index < len(cluster_splits.steps):
            step = cluster_splits.steps[index]
            index += 1
            if isinstance(step, ReplaySplit) and all_stats[step.number].open_offset >= 0:
                following = _after(
                    cluster_splits.steps[index:], step.format, all_stats[step.number], all_stats
                )
                others = [*islice(following, reach)]
                for other in others:
                    step = step.joined(other)
                    removed.append(other.number)
                index += len(others)
                if others:
                    again.append(step)
            steps.append(step)
        cluster_splits.steps = steps
    return again, removed


def _after(
    steps: Iterable[SnapshotFile | ReplaySplit],
    log_format: LogFormat,
    stats: SplitStats,
    all_stats: dict[int, SplitStats],
) -> Iterator[ReplaySplit]:
    """The splits that continue at the end of one, without a gap, and in the same format."""
    end = stats.end
    for step in steps:
        if (
            not isinstance(step, ReplaySplit)
            or all_stats[step.number].first != end
            or step.format is not log_format
        ):
            return
        end = all_stats[step.number].end
        yield step
