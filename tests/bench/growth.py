"""How the pipeline grows with the number of clusters.

``growth_10000_vs_1000_clusters``: seconds per message of silver and gold in a stream, for ten
thousand clusters against a thousand. Each cluster has a day: six nodes register, a heartbeat comes
every half an hour, and at noon all nodes are rolled to the next release, one after the other
(fenced, re-registered, unfenced), whose level is then finalized. The first quarter of the day is
folded as a batch, as in a new lake; the other three are batches of the stream, which load and store
the state of every cluster, and these are timed.

It also prints figures that do not depend on the machine: the bytes of the state store in the
checkpoint, the number and bytes of the tables' files, and the memory of Spark's processes.
"""

import re
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import deltalake
import pyarrow as pa

from featurewatch.cli.runtime.spark_jars import spark_jars
from featurewatch.controller.kraft import release_of
from featurewatch.pipeline.derived.query import FoldQuery
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.row_blocks import arrow_type
from featurewatch.pipeline.lake.tables import MESSAGES
from featurewatch.pipeline.run import run_once
from featurewatch.pipeline.spark.checkpoints import FOLD
from featurewatch.pipeline.spark.session import spark_session
from featurewatch.stack.java.jars import Cache, default_cache
from featurewatch.streams.codec.events import encode
from featurewatch.streams.events import CommitKind, Event, LogCommit, SourceState, SourceStatus
from featurewatch.streams.topics import METADATA_LOG
from featurewatch.streams.types import METADATA_VERSION, ClusterId
from tests.bench.worker import fencing, level, registration

SIZES: Final = (1_000, 10_000)
NODES: Final = 6
RELEASES: Final = ("4.0", "4.1")
START_MS: Final = 1_750_032_000_000
HEARTBEAT_MS: Final = 1_800_000
DAY_MS: Final = 86_400_000
ROUNDS: Final = 4
_NAME: Final = "cluster-000000"


def day() -> list[Event]:
    """The events of one cluster on one day, in order."""
    events: list[Event] = []
    offset = 0

    def commit(at_ms: int, *records: dict[str, Any]) -> None:
        nonlocal offset
        first, offset = offset, offset + len(records)
        numbered = [{**record, "offset": first + n} for n, record in enumerate(records)]
        where = (first, offset - 1, 1, at_ms)
        events.append(LogCommit(ClusterId(_NAME), CommitKind.BATCH, *where, numbered, {}, at_ms))

    old, new = (release_of(name).ranges()[METADATA_VERSION].maximum for name in RELEASES)
    commit(START_MS, level(0, old), *(registered(node, RELEASES[0]) for node in range(NODES)))
    for node in range(NODES):
        commit(START_MS + 1000 + node, fencing(0, node, -1))
    noon_ms = START_MS + DAY_MS // 2 + 60_000
    for node in range(NODES):
        at_ms = noon_ms + node * 300_000
        commit(at_ms, fencing(0, node, 1))
        commit(at_ms + 20_000, registered(node, RELEASES[1]))
        commit(at_ms + 30_000, fencing(0, node, -1))
    commit(noon_ms + 3_600_000, level(0, new))
    for at_ms in range(START_MS + 10_000, START_MS + DAY_MS, HEARTBEAT_MS):
        commits = [event for event in events if isinstance(event, LogCommit)]
        read = max((commit.last_offset for commit in commits if commit.seen_ms < at_ms), default=0)
        state = (read, 1, read + 1, 1, 1)
        status = SourceStatus(ClusterId(_NAME), "kraft", SourceState.FOLLOWING, *state, "", at_ms)
        events.append(status)
    return sorted(events, key=lambda event: event.seen_ms)


def registered(node: int, release: str) -> dict[str, Any]:
    """The registration of a broker of a release."""
    record = registration(0, node)
    ranges = release_of(release).ranges()
    record["data"]["features"] = [
        {"name": name, "minSupportedVersion": r.minimum, "maxSupportedVersion": r.maximum}
        for name, r in ranges.items()
    ]
    record["data"]["incarnationId"] = f"{release}-{node}"
    return record


def fill(lake: Lake, clusters: int, round_: int) -> int:
    """Adds a quarter of the day of each cluster to bronze; the number of messages."""
    begin_ms = START_MS + (round_ - 1) * DAY_MS // ROUNDS
    quarter = [e for e in day() if begin_ms <= e.seen_ms < begin_ms + DAY_MS // ROUNDS]
    messages = [(event.seen_ms, encode(METADATA_LOG, event)) for event in quarter]
    schema = pa.schema([(name, arrow_type(type_)) for name, type_ in MESSAGES.columns.items()])
    path = lake.ensure_table(MESSAGES)
    first = (round_ - 1) * 1_000_000_000
    for low in range(0, clusters, 1000):
        columns: dict[str, list[Any]] = {name: [] for name in MESSAGES.columns}
        for number in range(low, min(low + 1000, clusters)):
            name = f"cluster-{number:06}".encode()
            for at_ms, message in messages:
                time_ = datetime.fromtimestamp(at_ms / 1000, UTC)
                row = {
                    "topic": METADATA_LOG.name(),
                    "partition": 0,
                    "offset": first,
                    "kafka_time": time_,
                    "key": name,
                    "value": (message.value or b"").replace(_NAME.encode(), name),
                    "headers": [],
                    "ingested_at": time_,
                    "round": round_,
                    "day": time_.date(),
                }
                first += 1
                for column, value in row.items():
                    columns[column].append(value)
        deltalake.write_deltalake(path, pa.table(columns, schema=schema), mode="append")
    return clusters * len(messages)


def grown(session: Any, root: Path, clusters: int) -> dict[str, Any]:
    """A day of this many clusters through silver and gold."""
    lake = Lake(session, str(root / f"clusters-{clusters}"))
    seconds, timed = 0.0, 0
    for round_ in range(1, ROUNDS + 1):
        count = fill(lake, clusters, round_)
        began = time.perf_counter()
        run_once(lake, [FoldQuery(lake).writer])
        if round_ > 1:
            seconds += time.perf_counter() - began
            timed += count
    lake.unlock()
    state = Path(lake.checkpoint(FOLD), "state")
    tables = [file for layer in ("silver", "gold") for file in _files(Path(lake.root, layer))]
    java_mb, python_mb = memory_mb(session.sparkContext._gateway.proc.pid)
    return {
        "clusters": clusters,
        "messages": timed,
        "seconds": round(seconds, 1),
        "us_per_message": round(seconds / timed * 1e6, 1),
        "s_per_million_messages": round(seconds / timed * 1e6),
        "state_mb": round(sum(file.stat().st_size for file in _files(state)) / 1e6, 1),
        "state_files": len(_files(state)),
        "table_mb": round(sum(file.stat().st_size for file in tables) / 1e6, 1),
        "table_files": sum(file.suffix == ".parquet" for file in tables),
        "jvm_rss_mb": java_mb,
        "python_rss_mb": python_mb,
    }


def _files(directory: Path) -> list[Path]:
    return [file for file in directory.rglob("*") if file.is_file()]


def memory_mb(jvm_pid: int) -> tuple[int, int]:
    """The peak memory of Spark's JVM, and the sum of the peaks of its Python processes."""
    parents: dict[int, int] = {}
    peaks: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text()
        except OSError:
            continue  # it has ended
        fields = dict(re.findall(r"^(Pid|PPid|VmHWM):\s+(\d+)", text, re.MULTILINE))
        if "VmHWM" in fields:
            parents[int(fields["Pid"])] = int(fields["PPid"])
            peaks[int(fields["Pid"])] = int(fields["VmHWM"]) // 1024
    below = {jvm_pid}
    for _ in range(4):
        below |= {pid for pid, parent in parents.items() if parent in below}
    return peaks.get(jvm_pid, 0), sum(peaks.get(pid, 0) for pid in below - {jvm_pid})


def run(sizes: tuple[int, int] = SIZES) -> Iterator[dict[str, Any]]:
    """The measure, with both sizes in full."""
    with tempfile.TemporaryDirectory(prefix="featurewatch-") as name:
        root, found = Path(name), []
        for clusters in sizes:
            jars = spark_jars(Cache(default_cache()))
            settings = {"spark.driver.memory": "3g"}
            session = spark_session(root / f"spark-{clusters}", "local[2]", jars, settings)
            try:
                found.append(grown(session, root, clusters))
            finally:
                session.stop()
    small, large = (size["us_per_message"] for size in found)
    yield {
        "measure": f"growth_{sizes[1]}_vs_{sizes[0]}_clusters",
        "value": large,
        "baseline": small,
        "ratio": round(large / small, 2),
        "sizes": found,
    }
