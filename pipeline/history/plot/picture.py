"""What a picture of a cluster's history shows, as data.

Nodes whose history looks the same at the picture's resolution share a lane, so that a thousand
nodes that were rolled together are a few lanes. A node that some level excluded at times has
company only of nodes of which the same is true.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final

from featurewatch.controller.levels import level_name
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
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, FeatureName

COLUMNS: Final = 400
"""Times that are closer than a part of the picture's width are one."""
MANY_LANES: Final = 100
MAX_RUNS: Final = 6
"""Runs of ids that are spelled out."""


@dataclass(frozen=True, slots=True)
class LevelSteps:
    """A feature's level over time: from each time on, the level; 0: not finalized."""

    feature: str
    steps: tuple[tuple[datetime, int], ...]


@dataclass(frozen=True, slots=True)
class SoftwareLabel:
    """What nodes run, as far as their ranges tell: a release, or the ranges themselves.

    ``newest`` is the highest metadata.version (-1: none); software is ordered by it.
    """

    newest: int
    name: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A node supported the same from ``begin`` to ``end``; ``why`` says which level excluded it."""

    begin: datetime
    end: datetime
    software: SoftwareLabel
    why: str = ""


@dataclass(frozen=True, slots=True)
class Lane:
    """Nodes of one role with the same history; ``bad`` are the times of incompatibility."""

    role: str
    nodes: tuple[int, ...]
    bars: tuple[Bar, ...]
    bad: tuple[Bar, ...]

    def title(self, most: int = MAX_RUNS) -> str:
        """Who they are; at most so many runs of ids."""
        return f"{self.role}{'s' if len(self.nodes) > 1 else ''} {runs(self.nodes, most)}"


@dataclass(frozen=True, slots=True)
class RollBar:
    """A roll to other software."""

    begin: datetime
    end: datetime
    title: str
    state: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A cluster from ``begin`` to ``end``."""

    cluster: str
    begin: datetime
    end: datetime
    levels: tuple[LevelSteps, ...]
    lanes: tuple[Lane, ...]
    rolls: tuple[RollBar, ...]

    @property
    def software(self) -> list[SoftwareLabel]:
        """All software, oldest first."""
        return sorted(
            {bar.software for lane in self.lanes for bar in lane.bars},
            key=lambda each: (each.newest, each.name),
        )

    @property
    def nodes(self) -> int:
        """How many nodes it shows; a combined one is one."""
        return len({node for lane in self.lanes for node in lane.nodes})


def runs(nodes: Sequence[int], most: int = MAX_RUNS) -> str:
    """Ids with runs drawn together, ``1-3, 7``; after ``most`` runs an ellipsis."""
    found: list[list[int]] = []
    for node in sorted(nodes):
        if found and node == found[-1][1] + 1:
            found[-1][1] = node
        else:
            found.append([node, node])
    text = ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in found[:most])
    return f"{text}, …" if len(found) > most else text


def level_label(feature: str, level: int) -> str:
    """A level for people."""
    return level_name(FeatureName(feature), FeatureLevel(level))


def picture(
    lake: LakeReader, cluster: str, since: datetime | None, until: datetime | None, now: datetime
) -> Picture:
    """The history of a cluster between two times (None: all that there is).

    Raises:
        UnknownMomentError: The lake holds nothing of that time.
        LakeError: The lake cannot be read.
    """
    snapshots = lake.query(
        "SELECT at, finalized FROM epochs WHERE cluster = $cluster ORDER BY revision",
        EPOCHS,
        cluster=cluster,
    )
    end = min(until or now, _end(lake, now))
    first = [row["at"] for row in snapshots[:1]]
    intervals = lake.query(
        "SELECT role, node_id, ranges, release, since, until FROM capability_intervals"
        " WHERE cluster = $cluster AND since < $end ORDER BY role, node_id, since",
        CAPABILITY_INTERVALS,
        cluster=cluster,
        end=end,
    )
    begins = min([*first, *(row["since"] for row in intervals)], default=end)
    begin = max(since, begins) if since else begins
    if begin >= end:
        raise UnknownMomentError(
            f"the history of cluster {cluster} has nothing between "
            f"{format_time(since or begins)} and "
            f"{format_time(end)}"
        )
    incompatible = lake.query(
        "SELECT role, node_id, why, since, until FROM incompatibilities"
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


def _end(lake: LakeReader, now: datetime) -> datetime:
    newest = lake.newest(SOURCE_STATES, "seen_at") if lake.has(SOURCE_STATES) else None
    return min(newest, now) if newest else now


def _roll(row: Row, begin: datetime, end: datetime) -> RollBar:
    ends = row["finalized"] or row["rolled"] or row["ended"] or end
    releases = (", ".join(row[name] or ["?"]) for name in ("from_releases", "to_releases"))
    return RollBar(max(row["started"], begin), min(ends, end), " → ".join(releases), row["state"])


def levels(snapshots: Iterable[Row], begin: datetime, end: datetime) -> list[LevelSteps]:
    """How each feature's level went; metadata.version comes first, the others by name."""
    found: dict[str, list[tuple[datetime, int]]] = defaultdict(list)
    for row in snapshots:
        at = max(row["at"], begin)
        finalized = row["finalized"] or {}
        if at > end:
            break
        for feature in {*found, *finalized}:
            steps, level = found[feature], finalized.get(feature, 0)
            if not steps and at > begin + (end - begin) / COLUMNS:
                steps.append((begin, 0))  # it is seen that there was nothing before
            if steps and steps[-1][0] == at:
                steps.pop()
            if not steps or steps[-1][1] != level:
                steps.append((at, level))
    ordered = sorted(found.items(), key=lambda item: (item[0] != METADATA_VERSION, item[0]))
    return [
        LevelSteps(feature, tuple(steps)) for feature, steps in ordered if any(s[1] for s in steps)
    ]


def lanes(
    intervals: Iterable[Row], incompatible: Iterable[Row], begin: datetime, end: datetime
) -> list[Lane]:
    """The nodes' bars, alike ones together: by role, and then by id."""
    nodes: dict[tuple[str, int], list[Bar]] = defaultdict(list)
    bad: dict[tuple[str, int], list[Bar]] = defaultdict(list)
    for row in intervals:
        if (bar := _bar(row, software(row["release"], row["ranges"]), begin, end)) is not None:
            nodes[(row["role"], row["node_id"])].append(bar)
    for row in incompatible:
        if (bar := _bar(row, SoftwareLabel(-1, ""), begin, end, row["why"] or "")) is not None:
            bad[(row["role"], row["node_id"])].append(bar)
    for key, spans in bad.items():
        nodes.setdefault(key, [])
        bad[key] = _joined(spans)
    joined = {key: _joined(bars) for key, bars in nodes.items()}
    near = (end - begin) / COLUMNS
    found = _alike(joined, bad, near)
    while len(found) > MANY_LANES and near < (end - begin) / 25:
        near *= 2
        found = _alike(joined, bad, near)
    return sorted(found, key=lambda lane: (lane.role, lane.nodes))


def software(release: str | None, ranges: Mapping[str, Sequence[int]] | None) -> SoftwareLabel:
    """What a node runs: the name of its release, or what it supports."""
    bounds = (ranges or {}).get(METADATA_VERSION)
    newest = bounds[1] if bounds else -1
    if release:
        return SoftwareLabel(newest, release)
    return SoftwareLabel(
        newest, f"level {bounds[0]}-{bounds[1]}" if bounds else "no metadata.version"
    )


def _bar(
    row: Row, runs_on: SoftwareLabel, begin: datetime, end: datetime, why: str = ""
) -> Bar | None:
    first, last = max(row["since"], begin), min(row["until"] or end, end)
    return Bar(first, last, runs_on, why) if first < last else None


def _joined(bars: Iterable[Bar]) -> list[Bar]:
    """Bars of one node, where the next one says the same drawn together."""
    found: list[Bar] = []
    for bar in sorted(bars, key=lambda bar: bar.begin):
        last = found[-1] if found else None
        if last and last.end >= bar.begin and (last.software, last.why) == (bar.software, bar.why):
            found[-1] = Bar(last.begin, max(last.end, bar.end), bar.software, bar.why)
        else:
            found.append(bar)
    return found


def _alike(
    nodes: Mapping[tuple[str, int], Sequence[Bar]],
    bad: Mapping[tuple[str, int], Sequence[Bar]],
    near: timedelta,
) -> list[Lane]:
    """Lanes of nodes whose bars begin and end at nearly the same times."""
    both = {key: (*bars, *bad.get(key, ())) for key, bars in nodes.items()}
    times = {time for bars in both.values() for bar in bars for time in (bar.begin, bar.end)}
    place = _places(times, near)
    groups: dict[Any, list[tuple[str, int]]] = defaultdict(list)
    for key, bars in both.items():
        look = [(place[bar.begin], place[bar.end], bar.software, bool(bar.why)) for bar in bars]
        # What came and went between two places is seen in no lane, but it is no other history.
        seen = tuple(each for each in look if each[0] != each[1] or each[3])
        groups[(key[0], seen)].append(key)
    found = []
    for (role, _), keys in groups.items():
        first = keys[len(keys) // 2]
        ids = tuple(sorted(node_id for _, node_id in keys))
        found.append(Lane(role, ids, tuple(nodes[first]), tuple(bad.get(first, ()))))
    return found


def _places(times: Iterable[datetime], near: timedelta) -> dict[datetime, int]:
    """Numbers for times, in order, the same for those that are near each other."""
    found: dict[datetime, int] = {}
    ordered = sorted(times)
    start = ordered[0] if ordered else None
    for before, time in pairwise([*ordered[:1], *ordered]):
        number = found.get(before, 0)
        if start is not None and time - start > near:
            start, number = time, number + 1
        found[time] = number
    return found
