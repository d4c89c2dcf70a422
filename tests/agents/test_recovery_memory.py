"""A worker returns the memory that the recovery of its tables took."""

import asyncio
import uuid
from pathlib import Path

import pytest

from featurewatch.agents.changelog import ChangelogWriter
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.types import ClusterId
from featurewatch.tables.rows import Row, changelog_topic, row_key
from tests.processes import Process, wait_ready
from tests.waiting import eventually

pytestmark = pytest.mark.stack

ROWS, ROW_BYTES = 10_000, 3_000
RETURNED_MB = 20


async def _fill(bus: BusSettings, app_id: str, topic: str) -> None:
    """Many values of one row, as after weeks without a compaction; then it is deleted."""
    key = row_key(ClusterId("retired"), "cluster")
    rows: list[Row] = [*[(key, b"x" * ROW_BYTES)] * ROWS, (key, None)]
    async with Publisher(bus) as publisher:
        writer = ChangelogWriter(bus, app_id, topic)
        await writer.claim([0], publisher)
        await writer.write(0, rows)
        await writer.commit()
        await writer.close()


def _memory_mb(pid: int, name: str) -> float:
    """A line of a process's status: ``VmRSS`` is what it has now, ``VmHWM`` the most it had."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"no {name} of process {pid}")


def test_a_worker_returns_what_it_read_of_its_changelog(
    bus: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads each row's every value, and keeps the last one."""
    monkeypatch.setenv("FEATUREWATCH_BUS__PARTITIONS", "1")
    prefix = f"memory-{uuid.uuid4().hex[:8]}"
    settings = BusSettings(bus.bootstrap_servers, prefix=prefix, partitions=1, replication_factor=1)
    app_id = f"{prefix}-worker"
    topic = changelog_topic(app_id)
    ensure_topics(settings, changelogs=[topic])
    asyncio.run(_fill(settings, app_id, topic))
    on_bus = ["--bus", settings.bootstrap_servers, "--prefix", prefix]
    worker = Process("worker", ["worker", *on_bus], tmp_path)
    worker.start()
    try:
        wait_ready([worker])

        def returned_mb() -> float:
            return _memory_mb(worker.pid, "VmHWM") - _memory_mb(worker.pid, "VmRSS")

        assert eventually(lambda: returned_mb() > RETURNED_MB, 60), returned_mb()
    finally:
        worker.kill()
