"""Thirty days of a thousand clusters: what grows, and what maintenance takes beside the stream.

A whole process of ``pipeline run`` follows a real bus, with a trigger a second. A day of a cluster
is a heartbeat every four hours, and one of its six nodes that restarts (fenced, registered,
unfenced); on the first day all register. Each day is published in two halves, and the next half
when the tables have the one before, so a day takes seconds. Every ten days ``pipeline maintain``
runs as another process while the stream folds that day.

``thirty_days_us_per_message``: processor time of all processes of the stream for each message, of
the last three days against the second to fourth. Half a day has 4,500 messages, so the fixed cost
of its two batches is part of it. ``thirty_days_maintain_s``: the last maintenance against the
first, each a whole process with the start of Java. ``thirty_days_state_mb``: the state store in the
checkpoint after the last day, against the first.

``heartbeats_minute_s``: after the last day, the seconds for a minute of the heartbeats that a real
source publishes, one every three seconds of each cluster, all at once; against that minute.

The other figures of each day: the files of the tables that their newest version has, those on the
disk, the commits in their logs, their bytes, and the bytes of both checkpoints without the state.
Files that no version needs any more stay for the whole run, since only those older than a day could
be removed beside a stream.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import deltalake

from featurewatch.pipeline.maintain import TABLES
from featurewatch.pipeline.silver.tables import REGISTRATIONS, SOURCE_STATES
from featurewatch.pipeline.spark.checkpoints import FOLD
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.events import Event, LogCommit, SourceStatus
from tests.bench.cluster_days import OneCluster, keep_all, publish
from tests.bench.growth import DAY_MS, memory_mb
from tests.bench.row_counts import row_count
from tests.bench.turns import FEATUREWATCH

CLUSTERS: Final = 1_000
DAYS: Final = 30
MINUTES: Final = 3
PORTIONS: Final = 2
MAINTAINED_EVERY: Final = 10
PATIENCE_S: Final = 300.0
REGISTERED: Final = "REGISTER_BROKER_RECORD"


def processor_s(pid: int) -> float:
    """The processor time of a process and of all that it started, also of those that ended."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        one = int(stat.parent.name)
        parents[one] = int(fields[1])
        ticks[one] = sum(int(field) for field in fields[11:15])
    below = {pid}
    for _ in range(6):
        below |= {one for one, parent in parents.items() if parent in below}
    return sum(ticks.get(one, 0) for one in below) / os.sysconf("SC_CLK_TCK")


def sizes(root: Path) -> dict[str, Any]:
    """What a lake takes."""
    live_files = live_bytes = 0
    for table in TABLES:
        if (root / table.path / "_delta_log").is_dir():
            actions = deltalake.DeltaTable(root / table.path).get_add_actions(flatten=True)
            found = actions.column("size_bytes").to_pylist()
            live_files += len(found)
            live_bytes += sum(found)
    layers = [file for layer in ("bronze", "silver", "gold") for file in _files(root / layer)]
    checkpoints = _files(root / "checkpoints")
    state = root / "checkpoints" / FOLD / "state"
    in_state = [file for file in checkpoints if file.is_relative_to(state)]
    others = [file for file in checkpoints if not file.is_relative_to(state)]
    return {
        "files": live_files,
        "table_mb": _mb(live_bytes),
        "files_on_disk": sum(file.suffix == ".parquet" for file in layers),
        "commits_in_logs": sum(file.suffix == ".json" for file in layers),
        "log_mb": _mb(_bytes([file for file in layers if "_delta_log" in file.parts])),
        "state_mb": _mb(_bytes(in_state)),
        "state_files": len(in_state),
        "checkpoint_mb": _mb(_bytes(others)),
        "checkpoint_files": len(others),
    }


def _files(directory: Path) -> list[Path]:
    return [file for file in directory.rglob("*") if file.is_file()]


def _bytes(files: list[Path]) -> int:
    total = 0
    for file in files:
        try:
            total += file.stat().st_size
        except OSError:
            continue  # Spark removed it
    return total


def _mb(size: int) -> float:
    return round(size / 1e6, 2)


class Stream:
    """``pipeline run`` as a process."""

    def __init__(self, bus: BusSettings, directory: Path, *arguments: str) -> None:
        self.root = directory / "lake"
        self._log = directory / "stream.log"
        self._expected = {SOURCE_STATES.path: 0, REGISTRATIONS.path: 0}
        where = ("--bus", bus.bootstrap_servers, "--prefix", bus.prefix, "--lake", str(self.root))
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*FEATUREWATCH, "pipeline", "run", *where, *arguments], stderr=log
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def expect(self, events: list[Event], clusters: int) -> None:
        """Counts the rows that follow from the events of each cluster."""
        for event in events:
            if isinstance(event, SourceStatus):
                self._expected[SOURCE_STATES.path] += clusters
            elif isinstance(event, LogCommit):
                types = [record["type"] for record in event.records]
                self._expected[REGISTRATIONS.path] += clusters * types.count(REGISTERED)

    def is_complete(self) -> bool:
        """Whether silver has them; gold is written in the same batch."""
        return all(row_count(self.root, path) >= count for path, count in self._expected.items())

    def wait(self) -> None:
        """Returns when the lake has them.

        Raises:
            RuntimeError: The process ended, or this takes too long.
        """
        deadline = time.monotonic() + PATIENCE_S
        while not self.is_complete():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the stream stopped: {self._log.read_text()[-2000:]}")
            time.sleep(0.1)

    def stop(self) -> None:
        """Ends it in order."""
        self._process.terminate()
        self._process.wait(60)


def followed_days(
    bus: BusSettings, directory: Path, clusters: int = CLUSTERS, days: int = DAYS
) -> list[dict[str, Any]]:
    """The figures of each day."""
    ensure_topics(bus)
    keep_all(bus)
    start_ms = int(time.time() * 1000) // DAY_MS * DAY_MS - days * DAY_MS
    cluster, found = OneCluster(), list[dict[str, Any]]()
    other = ThreadPoolExecutor(1)
    stream = Stream(bus, directory)
    try:
        for number in range(days):
            midnight_ms = start_ms + number * DAY_MS
            events = cluster.day(number, midnight_ms)
            began, processor_began = time.perf_counter(), processor_s(stream.pid)
            is_due = (number + 1) % MAINTAINED_EVERY == 0
            maintenance = other.submit(maintained, stream.root) if is_due else None
            count = 0
            for portion in range(PORTIONS):
                low = midnight_ms + portion * DAY_MS // PORTIONS
                here = [e for e in events if low <= e.seen_ms < low + DAY_MS // PORTIONS]
                stream.expect(here, clusters)
                count += publish(bus, here, clusters)
                stream.wait()
            took = time.perf_counter() - began
            java_mb, python_mb = memory_mb(_java_of(stream.pid))
            found.append(
                {
                    "day": number + 1,
                    "messages": count,
                    "seconds": round(took, 1),
                    "cpu_us_per_message": round(
                        (processor_s(stream.pid) - processor_began) / count * 1e6
                    ),
                    **(maintenance.result() if maintenance else {}),
                    **sizes(stream.root),
                    "jvm_rss_mb": java_mb,
                    "python_rss_mb": python_mb,
                }
            )
            sys.stderr.write(f"{found[-1]}\n")
        found += [
            _followed_minute(bus, stream, cluster.minute(start_ms + days * DAY_MS + n * 60_000))
            for n in range(MINUTES)
        ]
    finally:
        stream.stop()
        other.shutdown()
    return found


def _followed_minute(bus: BusSettings, stream: Stream, events: list[Event]) -> dict[str, Any]:
    """What a minute of heartbeats takes, from the first message on the topic."""
    began, processor_began = time.perf_counter(), processor_s(stream.pid)
    stream.expect(events, CLUSTERS)
    count = publish(bus, events, CLUSTERS)
    stream.wait()
    took = processor_s(stream.pid) - processor_began
    return {
        "messages": count,
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_us_per_message": round(took / count * 1e6),
    }


def _java_of(pid: int) -> int:
    """The JVM that a process started."""
    children = Path(f"/proc/{pid}/task").glob("*/children")
    return next(int(child) for file in children for child in file.read_text().split())


def maintained(root: Path) -> dict[str, Any]:
    """``pipeline maintain`` of a lake that a stream fills, as a process, and what it took.

    Raises:
        CalledProcessError: It failed.
    """
    files, began = sizes(root)["files"], time.perf_counter()
    command = [*FEATUREWATCH, "pipeline", "maintain", "--vacuum-hours", "24", "--lake", str(root)]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_S)
    return {"maintain_s": round(time.perf_counter() - began, 1), "files_before": files}


def run(bus: BusSettings, directory: Path) -> Iterator[dict[str, Any]]:
    """The measures, with the figures of each day."""
    found = followed_days(bus, directory)
    days, minutes = found[:DAYS], found[DAYS:]
    costs = [day["cpu_us_per_message"] for day in days]
    early, late = statistics.median(costs[1:4]), statistics.median(costs[-3:])
    yield _measure("thirty_days_us_per_message", late, early, days=days)
    seconds = [day["maintain_s"] for day in days if "maintain_s" in day]
    yield _measure("thirty_days_maintain_s", seconds[-1], seconds[0])
    yield _measure("thirty_days_state_mb", days[-1]["state_mb"], days[0]["state_mb"])
    took = statistics.median(minute["seconds"] for minute in minutes)
    yield _measure("heartbeats_minute_s", took, 60.0, minutes=minutes)


def _measure(name: str, value: float, baseline: float, **fields: Any) -> dict[str, Any]:
    ratio = round(value / baseline, 2)
    return {"measure": name, "value": value, "baseline": baseline, "ratio": ratio, **fields}
