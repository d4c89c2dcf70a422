"""How fast the pipeline is, in bulk and in a stream.

``silver_gold_vs_bare_spark``: rows of bronze a second into all tables of silver and gold. Bronze
holds three million records of eight clusters of a hundred brokers, in commits of a hundred in the
proportions of ``worker_vs_raw_consumer``, and a heartbeat after each. That is a source that passes
on all it reads. A source as it comes leaves out what no feature depends on: then a commit has ten
records, and ``silver_gold_vs_bare_spark_published`` measures those.

The baseline is a bare Spark read of the same rows: the same ``from_json``, and a count by kind, of
which Spark parses only the kind; ``parsed_s`` is the same read with each message parsed whole.
Start-up is left out: all has run once before, and the tables are there.

``pipeline_vs_single_process``: the same bronze into the same tables, by Spark and by one plain
Python process (`tests.bench.single_process`) in turn; both make the same rows.

``pipeline_once_idle_s``: a whole process of ``pipeline run --once`` that finds nothing new; the
baseline is a process that imports the packages of which it finds that out.

``pipeline_first_batch_vs_bare_spark``: see `tests.bench.first_batch`.

``stream_latency_p50_s``: from the publishing of a message until its change can be read in gold,
with triggers of 100 ms, on a real bus; beside it with a trigger a second, and for both the cores
that Spark's JVM keeps busy while nothing comes.
"""

import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
from deltalake import DeltaTable
from pyspark.sql import functions as fn

from featurewatch.cli.runtime.spark_jars import spark_jars
from featurewatch.pipeline.bronze.kafka import offset_ranges
from featurewatch.pipeline.derived.query import FoldQuery
from featurewatch.pipeline.derived.spark_fold import input_messages
from featurewatch.pipeline.errors import TopicError
from featurewatch.pipeline.gold.tables import FEATURE_CHANGES, GOLD
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import MESSAGES
from featurewatch.pipeline.maintain import TABLES
from featurewatch.pipeline.run import run_on, run_once, stages
from featurewatch.pipeline.silver.tables import SILVER
from featurewatch.pipeline.spark.queries import with_settings
from featurewatch.pipeline.spark.session import jvm, spark_session
from featurewatch.stack.java.jars import Cache, default_cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import single_bus
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.codec.events import encode
from featurewatch.streams.events import CommitKind, LogCommit
from featurewatch.streams.topics import METADATA_LOG
from featurewatch.streams.types import ClusterId
from tests.bench import first_batch
from tests.bench.event_schema import event_ddl
from tests.bench.histories import IN_A_COMMIT, history
from tests.bench.row_counts import row_count
from tests.bench.turns import FEATUREWATCH, medians
from tests.bench.worker import level
from tests.pipeline.filling import Messages, put

CLUSTERS: Final = 8
RECORDS: Final = 375_000
"""Of each cluster."""
ROUNDS: Final = 7
"""Of the comparison with one process: on a shared machine the ratio of one is off by a fifth."""
CHANGES: Final = 15
"""Whose way through the stream is timed, one after the other."""
PATIENCE_S: Final = 240.0
QUIET_S: Final = 10.0


def fill(lake: Lake, clusters: int, total: int, *, everything: bool = True) -> int:
    """Bronze with so many records of each cluster, and empty tables; the number of its rows."""
    for table in TABLES:
        lake.ensure_table(table)
    messages = Messages()
    for number in range(clusters):
        cluster = ClusterId(f"bench-cluster-{number}")
        for event in history(cluster, total, everything=everything):
            message = encode(METADATA_LOG, event)
            # As the bus would: an event whose time is ahead of its message's is an alert.
            messages.add(METADATA_LOG, message.key, message.value, event.seen_ms)
        messages.into(lake)
    return lake.read(MESSAGES).count()


def bare(lake: Lake) -> None:
    """What Spark needs at least to look into each message: it parses only the kind."""
    event = fn.from_json(fn.col("value").cast("string"), event_ddl()).alias("event")
    input_messages(lake.read(MESSAGES)).select(event).groupBy("event.kind").count().collect()


def parsed(lake: Lake) -> None:
    """The same, but each message is parsed whole, as the tables want it."""
    pruned = "spark.sql.optimizer.enableJsonExpressionOptimization"
    with with_settings(lake.session, {pruned: "false"}):
        bare(lake)


def one_pass(lake: Lake) -> None:
    """Every table of silver and gold."""
    FoldQuery(lake).rebuild()


def seconds(work: Callable[[Lake], None], lake: Lake) -> float:
    """How long something takes."""
    began = time.perf_counter()
    work(lake)
    return time.perf_counter() - began


def bulk(session: Any, root: Path, name: str, *, everything: bool) -> dict[str, Any]:
    """Silver and gold of a whole history, against the bare read."""
    lake = Lake(session, str(root / name))
    rows = fill(lake, CLUSTERS, RECORDS, everything=everything)
    # Before and after, since the machine may be busier at one time than at another.
    bare_s = seconds(bare, lake)
    filled_s = seconds(one_pass, lake)
    bare_s = min(bare_s, seconds(bare, lake))
    parsed_s = seconds(parsed, lake)
    return {
        "measure": name,
        "value": round(rows / filled_s),
        "baseline": round(rows / bare_s),
        "ratio": round(bare_s / filled_s, 3),
        "rows": rows,
        "records": CLUSTERS * RECORDS,
        "filled_s": round(filled_s, 2),
        "bare_s": round(bare_s, 2),
        "parsed_s": round(parsed_s, 2),
        "ratio_parsed": round(parsed_s / filled_s, 3),
    }


def against_one_process(session: Any, root: Path) -> dict[str, Any]:
    """Silver and gold of the same bronze by Spark and by one plain process, in turn."""
    bronze = Lake(session, str(root / "bronze"))
    rows = fill(bronze, CLUSTERS, RECORDS)
    spark_s, peer_s, peer_cpu_s = [], [], []
    for number in range(ROUNDS):
        ours, theirs = (
            _copy(bronze, root / f"spark-{number}"),
            _copy(bronze, root / f"one-{number}"),
        )
        spark_s.append(seconds(one_pass, ours))
        command = [sys.executable, "-m", "tests.bench.single_process", theirs.root]
        took = orjson.loads(subprocess.check_output(command))
        peer_s.append(took["wall"])
        peer_cpu_s.append(took["cpu"])
        if (counts := _counts(ours)) != _counts(theirs):
            raise RuntimeError(f"the tables differ: {counts} and {_counts(theirs)}")
    ratios = [peer / spark for peer, spark in zip(peer_s, spark_s, strict=True)]
    return {
        "measure": "pipeline_vs_single_process",
        "value": round(rows / statistics.median(spark_s)),
        "baseline": round(rows / statistics.median(peer_s)),
        "ratio": round(statistics.median(ratios), 2),
        "ratios": [round(ratio, 2) for ratio in ratios],
        "spark_s": [round(one, 2) for one in spark_s],
        "peer_s": [round(one, 2) for one in peer_s],
        "peer_cpu_s": [round(one, 2) for one in peer_cpu_s],
        "records": CLUSTERS * RECORDS,
    }


def _copy(lake: Lake, root: Path) -> Lake:
    """Another lake with the same bronze, and empty tables."""
    shutil.copytree(lake.path(MESSAGES), root / MESSAGES.path)
    copied = Lake(lake.session, str(root))
    for table in TABLES:
        copied.ensure_table(table)
    return copied


def _counts(lake: Lake) -> dict[str, int]:
    """The number of rows of each table that follows bronze."""
    return {table.path: DeltaTable(lake.path(table)).count() for table in (*SILVER, *GOLD)}


def _wait_for_leaders(bus: BusSettings) -> None:
    """Returns when each partition of new topics has its leader."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            offset_ranges(bus)
        except TopicError:
            time.sleep(0.2)
        else:
            return


class Stream(NamedTuple):
    """Seconds from a message to its change in gold, of one change after the other, and the cores
    that Spark's JVM keeps busy while nothing comes."""

    latencies_s: list[float]
    idle_cores: float


def followed(lake: Lake, bus: BusSettings, every_s: float) -> Stream:
    """A lake that follows a new bus, with a trigger every so many seconds."""
    ensure_topics(bus)
    _wait_for_leaders(bus)
    stop, cluster, chance = threading.Event(), ClusterId("bench-stream"), random.Random(584)
    failed: list[Exception] = []

    def follow() -> None:
        try:
            run_on(lake, stages(lake, bus), every_s, stop)
        except Exception as error:
            failed.append(error)

    following, found = threading.Thread(target=follow), []
    following.start()
    try:
        for number in range(CHANGES + 2):
            kept = [level(number, number + 1)]
            at_ms, began = int(time.time() * 1000), time.perf_counter()
            batch = (CommitKind.BATCH, number, number, 1, at_ms)
            put(bus, [LogCommit(cluster, *batch, kept, {}, at_ms)])
            while row_count(Path(lake.root), FEATURE_CHANGES.path) <= number:
                if failed or time.perf_counter() - began > PATIENCE_S:
                    raise RuntimeError(f"change {number} did not come to gold") from (
                        failed[0] if failed else None
                    )
                time.sleep(0.02)
            found.append(time.perf_counter() - began)
            time.sleep(chance.random())
        time.sleep(QUIET_S / 4)
        java_s = _java_s(lake)
        time.sleep(QUIET_S)
        idle_cores = (_java_s(lake) - java_s) / QUIET_S
    finally:
        stop.set()
        following.join()
        lake.unlock()
    return Stream(found[2:], idle_cores)  # the first ones wait for what starts


def _java_s(lake: Lake) -> float:
    """The processor time that the session's JVM has taken."""
    nanoseconds = (
        jvm(lake.session)
        .java.lang.ProcessHandle.current()
        .info()
        .totalCpuDuration()
        .get()
        .toNanos()
    )
    return float(nanoseconds) / 1e9


def idle(lake: Lake, bus: BusSettings) -> dict[str, Any]:
    """The seconds of a run that finds nothing new."""
    run_once(lake, stages(lake, bus))
    lake.unlock()
    once = (*FEATUREWATCH, "pipeline", "run", "--once", "--bus", bus.bootstrap_servers)
    imports = (sys.executable, "-c", "import deltalake, confluent_kafka.admin, pydantic")
    took = medians({"once": (*once, "--lake", lake.root), "imports": imports}, rounds=7)
    return {
        "measure": "pipeline_once_idle_s",
        "value": round(took["once"], 2),
        "baseline": round(took["imports"], 2),
    }


def run() -> Iterator[dict[str, Any]]:
    """The measures, with their parts."""
    with tempfile.TemporaryDirectory(prefix="featurewatch-") as name:
        root, cache = Path(name), Cache(default_cache())
        heap = {"spark.driver.memory": "3g"}
        session = spark_session(root / "spark", "local[2]", spark_jars(cache), heap)
        try:
            small = Lake(session, str(root / "small"))
            fill(small, 2, 10 * IN_A_COMMIT)
            for work in (bare, one_pass):
                work(small)
            yield against_one_process(session, root)
            yield bulk(session, root, "silver_gold_vs_bare_spark", everything=True)
            yield bulk(session, root, "silver_gold_vs_bare_spark_published", everything=False)
            with Cluster(single_bus(), root / "bus", cache=cache, temporary=True) as cluster:
                bus = BusSettings(cluster.bootstrap_servers, partitions=1, replication_factor=1)
                lake = Lake(session, str(root / "stream"))
                slow = followed(lake, bus, 1.0)
                yield idle(lake, bus)
                other = replace(bus, prefix="often")
                fast = followed(Lake(session, str(root / "often")), other, 0.1)
                yield first_batch.measure(bus, root, spark_jars(cache))
        finally:
            session.stop()
    yield {
        "measure": "stream_latency_p50_s",
        "value": round(statistics.median(fast.latencies_s), 2),
        "max": round(max(fast.latencies_s), 2),
        "idle_cores": round(fast.idle_cores, 3),
        "with_a_second_s": round(statistics.median(slow.latencies_s), 2),
        "with_a_second_idle_cores": round(slow.idle_cores, 3),
        "changes": len(fast.latencies_s),
    }
