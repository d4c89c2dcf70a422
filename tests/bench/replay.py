"""``replay_vs_single_process`` and ``replay_growth_10x``: a log of three million records replayed.

A real controller writes 300,000 records: bootstrap, registrations, 150,000 partitions, and their
leaders' change when a broker is fenced. Its batches are repeated with rising offsets and times, and
between them is what the same controller writes when it is idle, two NoOps a second: half of the
records. After every thousand of those a broker registers again or is unfenced.

The baseline is one plain Python process on the same log: segments read, decoded with what a monitor
needs and folded, as the live source and worker do. The replay fills bronze, silver and gold on
``local[2]``. Start-up is left out: both have run once before, on a small log. The baseline runs
before and after the replay and the better time counts.
"""

import struct
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any, Final

from crc32c import crc32c

from featurewatch.cli.runtime.spark_jars import spark_jars
from featurewatch.monitor.step import MonitorState, step
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.replay.plan import prepare
from featurewatch.pipeline.replay.run import replay
from featurewatch.pipeline.spark.session import spark_session
from featurewatch.stack.java.jars import Cache, default_cache
from featurewatch.streams.events import LogCommit
from featurewatch.streams.kraft.commits import CommitAssembler
from featurewatch.streams.kraft.directory.files import LogSegment, segments
from featurewatch.streams.kraft.records.batch import RecordBatch, scan_batches
from featurewatch.streams.kraft.records.decoder import RecordDecoder
from featurewatch.streams.kraft.records.selection import ALL_RECORDS
from featurewatch.streams.types import ClusterId
from tests.bench.decode_log import write_log

CLUSTER: Final = ClusterId("bench-cluster-0000000")
RECORDS: Final = 3_000_000
PARTITIONS: Final = 150_000
NOW_MS: Final = 1_750_000_000_000
IDLE_MS: Final = 500
SEGMENT_BYTES: Final = 100 << 20

_CRC_BEGINS: Final = 21


def moved(batch: RecordBatch, base: int, at_ms: int) -> bytes:
    """A batch's bytes at another offset and time."""
    content = bytearray(batch.buffer[batch.at : batch.end])
    struct.pack_into(">q", content, 0, base)
    struct.pack_into(">qq", content, 27, at_ms, at_ms)
    struct.pack_into(">I", content, 17, crc32c(content[_CRC_BEGINS:]))
    return bytes(content)


class Material:
    """The batches of a real log, by what they are good for."""

    def __init__(self, segment: Path) -> None:
        decoder = RecordDecoder(ALL_RECORDS)
        self.work: list[RecordBatch] = []
        self.nodes: list[RecordBatch] = []
        self.idle: list[RecordBatch] = []
        for batch in scan_batches(segment.read_bytes()).batches:
            types = {record["type"] for record in decoder.decode(batch).records}
            if types == {"NO_OP_RECORD"} and batch.record_count == 1:
                self.idle.append(batch)
            elif types & {"REGISTER_BROKER_RECORD", "BROKER_REGISTRATION_CHANGE_RECORD"}:
                self.nodes.append(batch)
                self.work.append(batch)
            else:
                self.work.append(batch)


def batches(material: Material, total: int) -> Iterator[bytes]:
    """The whole log, batch by batch."""
    work, nodes, idle = material.work, cycle(material.nodes), cycle(material.idle)
    base, at_ms, busy, rest = 0, NOW_MS, 0, 0
    source = cycle(work)
    while base < total:
        at_ms += 1
        if busy <= rest:
            batch = next(source)
            busy += batch.record_count
        else:
            batch = next(nodes) if rest % 1000 == 999 else next(idle)
            rest += 1
            at_ms += IDLE_MS
        yield moved(batch, base, at_ms)
        base += batch.record_count


def write(material: Material, total: int, node: Path) -> int:
    """A log directory with at least so many records; how many there are."""
    log = node / "__cluster_metadata-0"
    log.mkdir(parents=True)
    (node / "meta.properties").write_text(f"cluster.id={CLUSTER}\n")
    base, held, size = 0, [], 0
    count = 0
    for content in batches(material, total):
        held.append(content)
        size += len(content)
        count += struct.unpack_from(">i", content, 57)[0]
        if size >= SEGMENT_BYTES:
            (log / f"{base:020}.log").write_bytes(b"".join(held))
            base, held, size = count, [], 0
    (log / f"{base:020}.log").write_bytes(b"".join(held))
    return count


def plain(node: Path) -> tuple[float, MonitorState]:
    """Seconds for one process that decodes and folds, and what it comes to."""
    began = time.perf_counter()
    log = node / "__cluster_metadata-0"
    assembler, state = CommitAssembler(CLUSTER), MonitorState.of(CLUSTER)
    for base in segments(log):
        with LogSegment(log, base) as segment:
            for batch in segment.batches():
                for event in assembler.add(batch, batch.append_ms):
                    if isinstance(event, LogCommit):
                        state = step(state, event).state
    return time.perf_counter() - began, state


def replayed(lake: Lake, node: Path) -> float:
    """Seconds for a replay into a lake."""
    began = time.perf_counter()
    result = replay(lake, prepare([node], "", node.parent / "scratch"))
    if result.problems:
        raise RuntimeError(result.problems[0])
    return time.perf_counter() - began


def run(total: int = RECORDS, segment: Path | None = None) -> Iterator[dict[str, Any]]:
    """Both measures."""
    with tempfile.TemporaryDirectory(prefix="featurewatch-") as name:
        root = Path(name)
        material = Material(segment or write_log(root, PARTITIONS))
        small = write(material, total // 10, root / "small")
        large = write(material, total, root / "large")
        plain(root / "small")
        jars = spark_jars(Cache(default_cache()))
        session = spark_session(root / "spark", "local[2]", jars, brief=True)
        try:
            replayed(Lake(session, str(root / "warm")), root / "small")
            small_s = replayed(Lake(session, str(root / "lake-1")), root / "small")
            plain_s = plain(root / "large")[0]
            large_s = replayed(Lake(session, str(root / "lake-2")), root / "large")
            plain_s = min(plain_s, plain(root / "large")[0])
        finally:
            session.stop()
    yield {
        "measure": "replay_vs_single_process",
        "value": round(large / large_s),
        "baseline": round(large / plain_s),
        "ratio": round(plain_s / large_s, 2),
        "unit": "records/s",
        "records": large,
        "seconds": round(large_s, 2),
        "baseline_seconds": round(plain_s, 2),
    }
    yield {
        "measure": "replay_growth_10x",
        "ratio": round(large_s / small_s, 2),
        "seconds": round(large_s, 2),
        "small_seconds": round(small_s, 2),
        "records": large,
        "small_records": small,
    }
