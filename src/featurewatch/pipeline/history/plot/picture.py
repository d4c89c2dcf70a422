"""The content of a plot of a cluster's history, as data.

Nodes with the same history at the plot's resolution share a lane, so a thousand nodes that were
rolled together are a few lanes. A node that was excluded at times shares a lane only with nodes
that were excluded at the same times.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final

from featurewatch.pipeline.history.differences import upgrades
from featurewatch.pipeline.history.moments import UnknownMomentError, format_time
from featurewatch.pipeline.lake.reader import (
    CAPABILITY_INTERVALS,
    EPOCHS,
    INCOMPATIBILITIES,
    SOURCE_STATES,
    LakeReader,
    Row,
)
from featurewatch.streams.types import METADATA_VERSION

COLUMNS: Final = 400
"""Times closer together than this fraction of the width count as equal."""
MANY_LANES: Final = 100
MAX_RUNS: Final = 6
"""At most this many runs of ids are listed."""


@dataclass(frozen=True, slots=True)
class LevelSteps:
    """The level of a feature over time: each time with the level from then on (None: not
    finalized)."""

    feature: str
    steps: tuple[tuple[datetime, int | None], ...]


@dataclass(frozen=True, slots=True)
class SoftwareLabel:
    """The software of a node, as far as its ranges show: a release, or the ranges themselves.

    ``newest`` is the highest metadata.version (-1: none); software is ordered by it.
    """

    newest: int
    name: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A time range with constant capabilities of a node; ``reason`` explains an exclusion."""

    begin: datetime
    end: datetime
    software: SoftwareLabel
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Lane:
    """Nodes of one role with the same history; ``bad`` are their times of exclusion."""

    role: str
    nodes: tuple[int, ...]
    bars: tuple[Bar, ...]
    bad: tuple[Bar, ...]

    def title(self, most: int = MAX_RUNS) -> str:
        """Returns the role and the ids, with at most ``most`` runs of ids."""
        return f"{self.role}{'s' if len(self.nodes) > 1 else ''} {runs(self.nodes, most)}"


@dataclass(frozen=True, slots=True)
class RollBar:
    """A roll of the cluster to other software."""

    begin: datetime
    end: datetime
    title: str
    state: str


@dataclass(frozen=True, slots=True)
class Picture:
    """The history of a cluster from ``begin`` to ``end``."""

    cluster: str
    begin: datetime
    end: datetime
    levels: tuple[LevelSteps, ...]
    lanes: tuple[Lane, ...]
    rolls: tuple[RollBar, ...]

    @property
    def software(self) -> list[SoftwareLabel]:
        """All software that occurs, oldest first."""
        return sorted(
            {bar.software for lane in self.lanes for bar in lane.bars},
            key=lambda label: (label.newest, label.name),
        )

    @property
    def nodes(self) -> int:
        """The number of nodes; a combined node counts once."""
        return len({node for lane in self.lanes for node in lane.nodes})


def runs(nodes: Sequence[int], most: int = MAX_RUNS) -> str:
    """Formats ids with runs joined, ``1-3, 7``; after ``most`` runs an ellipsis follows."""
    id_runs: list[list[int]] = []
    for node in sorted(nodes):
        if id_runs and node == id_runs[-1][1] + 1:
            id_runs[-1][1] = node
        else:
            id_runs.append([node, node])
    text = ", ".join(
        f"{first}" if first == last else f"{first}-{last}" for first, last in id_runs[:most]
    )
    return f"{text}, …" if len(id_runs) > most else text


def picture(
    lake: LakeReader, cluster: str, since: datetime | None, until: datetime | None, now: datetime
) -> Picture:
    """Reads the history of a cluster between two times (None: as far as the lake goes).

    Raises:
        UnknownMomentError: The lake holds nothing in that range.
        LakeError: The lake cannot be read.
    """
    snapshots = lake.query(
        "SELECT at, finalized FROM epochs WHERE cluster = $cluster ORDER BY revision",
        EPOCHS,
        cluster=cluster,
    )
    end = min(until or now, lake_end(lake, now))
    snapshot_times = [row["at"] for row in snapshots[:1]]
    intervals = lake.query(
        "SELECT role, node_id, ranges, release, since, until FROM capability_intervals"
        " WHERE cluster = $cluster AND since < $end ORDER BY role, node_id, since",
        CAPABILITY_INTERVALS,
        cluster=cluster,
        end=end,
    )
    earliest = min([*snapshot_times, *(row["since"] for row in intervals)], default=end)
    begin = max(since, earliest) if since else earliest
    if begin >= end:
        raise UnknownMomentError(
            f"the history of cluster {cluster} has nothing between "
            f"{format_time(since or earliest)} and "
            f"{format_time(end)}"
        )
    incompatible = lake.query(
        "SELECT role, node_id, reason, since, until FROM incompatibilities"
        " WHERE cluster = $cluster AND since < $end ORDER BY since",
        INCOMPATIBILITIES,
        cluster=cluster,
        end=end,
    )
    rolls = upgrades(lake, cluster, begin, end)
    return Picture(
        cluster,
        begin,
        end,
        tuple(levels(snapshots, begin, end)),
        tuple(lanes(intervals, incompatible, begin, end)),
        tuple(_roll(row, begin, end) for row in rolls),
    )


def lake_end(lake: LakeReader, now: datetime) -> datetime:
    """The time up to which the lake has messages, at most ``now``."""
    newest = lake.newest(SOURCE_STATES, "seen_at") if lake.has(SOURCE_STATES) else None
    return min(newest, now) if newest else now


def _roll(row: Row, begin: datetime, end: datetime) -> RollBar:
    ends_at = row["finalized"] or row["rolled"] or row["ended"] or end
    names = (", ".join(row[name] or ["?"]) for name in ("from_releases", "to_releases"))
    return RollBar(max(row["started"], begin), min(ends_at, end), " → ".join(names), row["state"])


def levels(snapshots: Iterable[Row], begin: datetime, end: datetime) -> list[LevelSteps]:
    """Returns the steps of each feature's level; metadata.version comes first, the others by
    name."""
    steps_by_feature: dict[str, list[tuple[datetime, int | None]]] = defaultdict(list)
    for row in snapshots:
        at = max(row["at"], begin)
        finalized = row["finalized"] or {}
        if at > end:
            break
        for feature in {*steps_by_feature, *finalized}:
            steps, level = steps_by_feature[feature], finalized.get(feature)
            if not steps and at > begin + (end - begin) / COLUMNS:
                steps.append((begin, None))  # shows that the feature was not finalized before
            if steps and steps[-1][0] == at:
                steps.pop()
            if not steps or steps[-1][1] != level:
                steps.append((at, level))
    ordered = sorted(
        steps_by_feature.items(), key=lambda item: (item[0] != METADATA_VERSION, item[0])
    )
    return [
        LevelSteps(feature, tuple(steps))
        for feature, steps in ordered
        if any(level is not None for _, level in steps)
    ]


def lanes(
    intervals: Iterable[Row], incompatible: Iterable[Row], begin: datetime, end: datetime
) -> list[Lane]:
    """Returns the lanes of a cluster's nodes, by role and ids."""
    nodes: dict[tuple[str, int], list[Bar]] = defaultdict(list)
    bad: dict[tuple[str, int], list[Bar]] = defaultdict(list)
    for row in intervals:
        if (bar := _bar(row, software(row["release"], row["ranges"]), begin, end)) is not None:
            nodes[(row["role"], row["node_id"])].append(bar)
    for row in incompatible:
        if (bar := _bar(row, SoftwareLabel(-1, ""), begin, end, row["reason"] or "")) is not None:
            bad[(row["role"], row["node_id"])].append(bar)
    for key, spans in bad.items():
        nodes.setdefault(key, [])
        bad[key] = _joined(spans)
    bars_by_node = {key: _joined(bars) for key, bars in nodes.items()}
    tolerance = (end - begin) / COLUMNS
    result = _alike(bars_by_node, bad, tolerance)
    while len(result) > MANY_LANES and tolerance < (end - begin) / 25:
        tolerance *= 2
        result = _alike(bars_by_node, bad, tolerance)
    return sorted(result, key=lambda lane: (lane.role, lane.nodes))


def software(release: str | None, ranges: Mapping[str, Sequence[int]] | None) -> SoftwareLabel:
    """Returns the label of a node's software: its release, or its range of metadata.version."""
    bounds = (ranges or {}).get(METADATA_VERSION)
    newest = bounds[1] if bounds else -1
    if release:
        return SoftwareLabel(newest, release)
    return SoftwareLabel(
        newest, f"level {bounds[0]}-{bounds[1]}" if bounds else "no metadata.version"
    )


def _bar(
    row: Row, runs_on: SoftwareLabel, begin: datetime, end: datetime, reason: str = ""
) -> Bar | None:
    first, last = max(row["since"], begin), min(row["until"] or end, end)
    return Bar(first, last, runs_on, reason) if first < last else None


def _joined(bars: Iterable[Bar]) -> list[Bar]:
    """The bars of one node, with adjacent equal ones joined."""
    joined: list[Bar] = []
    for bar in sorted(bars, key=lambda bar: bar.begin):
        last = joined[-1] if joined else None
        if (
            last
            and last.end >= bar.begin
            and (last.software, last.reason) == (bar.software, bar.reason)
        ):
            joined[-1] = Bar(last.begin, max(last.end, bar.end), bar.software, bar.reason)
        else:
            joined.append(bar)
    return joined


def _alike(
    nodes: Mapping[tuple[str, int], Sequence[Bar]],
    bad: Mapping[tuple[str, int], Sequence[Bar]],
    tolerance: timedelta,
) -> list[Lane]:
    """Groups nodes whose bars begin and end at nearly the same times into lanes."""
    both = {key: (*bars, *bad.get(key, ())) for key, bars in nodes.items()}
    times = {time for bars in both.values() for bar in bars for time in (bar.begin, bar.end)}
    time_index = _time_indices(times, tolerance)
    groups: dict[Any, list[tuple[str, int]]] = defaultdict(list)
    for key, bars in both.items():
        outline = [
            (time_index[bar.begin], time_index[bar.end], bar.software, bool(bar.reason))
            for bar in bars
        ]
        # A bar within one time index is invisible and does not make the history another one.
        visible = tuple(bar for bar in outline if bar[0] != bar[1] or bar[3])
        groups[(key[0], visible)].append(key)
    result = []
    for (role, _), keys in groups.items():
        first = keys[len(keys) // 2]
        ids = tuple(sorted(node_id for _, node_id in keys))
        result.append(Lane(role, ids, tuple(nodes[first]), tuple(bad.get(first, ()))))
    return result


def _time_indices(times: Iterable[datetime], tolerance: timedelta) -> dict[datetime, int]:
    """Numbers times in order; times within ``tolerance`` of each other get the same number."""
    indices: dict[datetime, int] = {}
    ordered = sorted(times)
    start = ordered[0] if ordered else None
    for before, time in pairwise([*ordered[:1], *ordered]):
        index = indices.get(before, 0)
        if start is not None and time - start > tolerance:
            start, index = time, index + 1
        indices[time] = index
    return indices
