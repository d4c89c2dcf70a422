"""Thirty days of a topic are backfilled into a new lake while the live one continues.

``backfill_live_latency_s``: from the publishing of a level's change until gold of the live lake has
it, p50, while another process of ``pipeline run`` fills the new lake from the beginning of the
topic; the baseline is the same before that. In the end all tables of silver and gold of both lakes
have the same rows, or the bench fails: the live lake has had every message in its turn.

``backfill_s``: from the start of the second process until its lake has all messages, against the
seconds in which the live one took in the same messages, also all at once.
"""

import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import deltalake

from featurewatch.pipeline.gold.tables import FEATURE_CHANGES, GOLD
from featurewatch.pipeline.silver.tables import SILVER
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.events import CommitKind, Event, LogCommit
from featurewatch.streams.types import ClusterId
from tests.bench.cluster_days import OneCluster, keep_all, publish
from tests.bench.growth import DAY_MS
from tests.bench.row_counts import row_count
from tests.bench.thirty_days import DAYS, PATIENCE_S, Stream
from tests.bench.worker import level
from tests.pipeline.filling import put

CLUSTERS: Final = 200
CHANGES: Final = 10


class Changes:
    """Changes of a level of one more cluster, one after the other."""

    def __init__(self, bus: BusSettings, root: Path) -> None:
        self.number = 0
        self._bus = bus
        self._root = root

    def latency_s(self) -> float:
        """The seconds from one to its row in gold.

        Raises:
            RuntimeError: It does not come.
        """
        before, began = row_count(self._root, FEATURE_CHANGES.path), time.perf_counter()
        at_ms, number = int(time.time() * 1000), self.number
        self.number += 1
        batch = (CommitKind.BATCH, number, number, 1, at_ms)
        records = [level(number, 1 + number % 2)]
        put(self._bus, [LogCommit(ClusterId("live-cluster"), *batch, records, {}, at_ms)])
        while row_count(self._root, FEATURE_CHANGES.path) <= before:
            if time.perf_counter() - began > PATIENCE_S:
                raise RuntimeError(f"change {number} did not come to gold")
            time.sleep(0.05)
        return time.perf_counter() - began


def contents(root: Path, path: str) -> list[str]:
    """The rows of a table, in order."""
    if not any((root / path / "_delta_log").glob("*.json")):
        return []
    return sorted(map(repr, deltalake.DeltaTable(root / path).to_pyarrow_table().to_pylist()))


def run(bus: BusSettings, directory: Path) -> Iterator[dict[str, Any]]:
    """The measures.

    Raises:
        RuntimeError: The lakes differ.
    """
    ensure_topics(bus)
    keep_all(bus)
    start_ms = int(time.time() * 1000) // DAY_MS * DAY_MS - DAYS * DAY_MS
    cluster, events = OneCluster(), list[Event]()
    for number in range(DAYS):
        events += cluster.day(number, start_ms + number * DAY_MS)
    for name in ("live", "new"):
        (directory / name).mkdir()
    live = Stream(bus, directory / "live")
    try:
        changes = Changes(bus, live.root)
        changes.latency_s()  # the start
        live.expect(events, CLUSTERS)
        began = time.perf_counter()
        messages = publish(bus, events, CLUSTERS)
        live.wait()
        live_s = time.perf_counter() - began
        changes.latency_s()
        before = [changes.latency_s() for _ in range(CHANGES)]
        began = time.perf_counter()
        new = Stream(bus, directory / "new")
        try:
            new.expect(events, CLUSTERS)
            during: list[float] = []
            while not new.is_complete():
                during.append(changes.latency_s())
            backfill_s = time.perf_counter() - began
            deadline = time.monotonic() + PATIENCE_S
            expected = row_count(live.root, FEATURE_CHANGES.path)
            while row_count(new.root, FEATURE_CHANGES.path) < expected:
                if time.monotonic() > deadline:
                    raise RuntimeError("the new lake does not catch up")
                time.sleep(0.1)
        finally:
            new.stop()
    finally:
        live.stop()
    tables = (*SILVER, *GOLD)
    differing = [
        table.path
        for table in tables
        if contents(live.root, table.path) != contents(new.root, table.path)
    ]
    if differing:
        raise RuntimeError(f"the lakes differ in {', '.join(differing)}")
    p50, p50_before = statistics.median(during), statistics.median(before)
    yield {
        "measure": "backfill_live_latency_s",
        "value": round(p50, 2),
        "baseline": round(p50_before, 2),
        "ratio": round(p50 / p50_before, 2),
        "max": round(max(during), 2),
        "changes": len(during),
    }
    yield {
        "measure": "backfill_s",
        "value": round(backfill_s, 1),
        "baseline": round(live_s, 1),
        "ratio": round(backfill_s / live_s, 2),
        "messages": messages,
        "tables_equal": len(tables),
    }
