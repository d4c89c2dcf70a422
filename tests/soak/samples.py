"""What grows in a process and on the bus while they run, and how fast. Pure but for `sample`."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_WARM_UP: Final = 0.25
"""The part of a run that no slope is taken of: caches and heaps fill."""
_HOUR_S: Final = 3600.0


class Sample(NamedTuple):
    """What is counted of one thing at one moment; ``at_s`` is in seconds since the start."""

    at_s: float
    counts: Mapping[str, float]


class Growth(NamedTuple):
    """How one count of a thing developed: at the warm-up's end, at the end, and each hour."""

    name: str
    what: str
    first: float
    last: float
    per_hour: float


def sample(pid: int, log: Path, counted: Path) -> dict[str, float]:
    """Returns the memory (MB), descriptors, threads, tasks and log lines of a process.

    ``counted`` is the file in which the process counts its tasks (`tests.soak.counted`). What a
    process that has just ended no longer tells is left out.
    """
    counts: dict[str, float] = {}
    process = Path(f"/proc/{pid}")
    try:
        resident = int((process / "statm").read_text().split()[1])
        counts["rss_mb"] = resident * _PAGE_BYTES / 1e6
        counts["descriptors"] = len(os.listdir(process / "fd"))
        counts["threads"] = len(os.listdir(process / "task"))
        counts["tasks"] = json.loads(counted.read_text())
    except (OSError, ValueError):
        pass
    counts["log_lines"] = log.read_bytes().count(b"\n") if log.exists() else 0
    return counts


def growth_of(name: str, samples: Sequence[Sample]) -> list[Growth]:
    """Returns the growth of each count of a thing, by a straight line through its samples."""
    if not samples:
        return []
    begin_s = samples[0].at_s + (samples[-1].at_s - samples[0].at_s) * _WARM_UP
    found = []
    for count in dict.fromkeys(count for each in samples for count in each.counts):
        points = [
            (each.at_s, each.counts[count])
            for each in samples
            if each.at_s >= begin_s and count in each.counts
        ]
        if points:
            found.append(Growth(name, count, points[0][1], points[-1][1], slope(points) * _HOUR_S))
    return found


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Returns the slope of the line of least squares; 0 for a single point."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    if not spread:
        return 0.0
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread


def beyond(growths: Sequence[Growth], bounds: Mapping[str, float]) -> list[Growth]:
    """Returns what grows by more an hour than its count may."""
    return [each for each in growths if each.per_hour > bounds.get(each.what, float("inf"))]
