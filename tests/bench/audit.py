"""``audit_differences``: what was said live and not recomputed by the lake, or the other way round.

Four runs: a real cluster whose levels change and whose nodes come with good and bad ranges, with
the real source, worker and pipeline; the same with kill -9 of source and worker all the time; the
same with a bus that is killed in the middle and comes back after 20 seconds; and a thousand
simulated clusters, each with several sources, a worker that takes their topics in another
order than that of their times, and messages that were published or said again after crashes.

``audit_vs_build``: the audit of the last of these lakes, against building its silver and gold in
the same session.

``audit_of_one_cluster``: the audit of a single cluster with a long history, whose findings are made
in as many tasks as those of many clusters, against the same audit with all of them in one task.
"""

import contextlib
import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from pyspark.sql import DataFrame

from featurewatch.cli.runtime.spark_jars import spark_jars
from featurewatch.pipeline.audit import live_outputs
from featurewatch.pipeline.audit.audit import audit
from featurewatch.pipeline.audit.report import BAD, EQUAL, REORDERED, UNKNOWN, AuditReport
from featurewatch.pipeline.derived.query import FoldQuery
from featurewatch.pipeline.derived.spark_fold import partitioned_by_cluster
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import MESSAGES
from featurewatch.pipeline.run import run_once, stages
from featurewatch.pipeline.spark.session import spark_session
from featurewatch.stack.java.jars import Cache, default_cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import single_bus
from featurewatch.stack.wire.light_nodes import LightNodes
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.events import CommitKind, LogCommit, SourceState, SourceStatus
from featurewatch.streams.topics import METADATA_LOG
from featurewatch.streams.types import ClusterId
from tests.bench.worker import level, registration
from tests.integration.processes.level_flips import flip_levels, wait_until_read
from tests.pipeline.audit.lakes import (
    START_MS,
    Read,
    SourceEvent,
    Topics,
    heartbeat,
    with_crashes,
    work,
)
from tests.processes import Process, killed_at_random, wait_ready

CLUSTERS: Final = 1000
FLIPS: Final = 40
OUTAGE_AFTER_S: Final = 6.0
OUTAGE_S: Final = 20.0
ONE_CLUSTER: Final = ClusterId("large")
NODES: Final = 100
COMMITS: Final = 40_000
HEARTBEATS: Final = 4
"""After each commit."""
ROUND_OUTPUTS: Final = 5_000
ROUNDS: Final = 3
"""Of the audits of one cluster, by turns."""


def simulated(lake: Lake, clusters: int = CLUSTERS) -> float:
    """Bronze, silver and gold of many clusters; one message in ten is there twice.

    Returns the seconds that silver and gold took.
    """
    topics = Topics()
    outputs = [output for seed in range(clusters) for output in with_crashes(topics, seed)[1]]
    topics.publish([heartbeat(START_MS + 1_000_000)])
    for output, at_ms in sorted(outputs, key=lambda timed: timed[1]):
        topics.publish_output(output, at_ms)
    topics.into(lake)
    began = time.perf_counter()
    run_once(lake, [FoldQuery(lake).writer])
    return time.perf_counter() - began


def real(lake: Lake, directory: Path, seed: int, *, killed: bool) -> None:
    """The topics of a real cluster in a lake; it is its own bus."""
    directory.mkdir()
    with Cluster(single_bus(), directory / "kafka", temporary=True) as cluster:
        bus = BusSettings(cluster.bootstrap_servers, prefix="audit", replication_factor=1)
        ensure_topics(bus)
        on_bus = ["--bus", bus.bootstrap_servers, "--prefix", bus.prefix]
        watch = ["watch", "--controllers", cluster.controllers, "--cluster-id", cluster.cluster_id]
        processes = [
            Process("watch", [*watch, "--servers", cluster.bootstrap_servers, *on_bus], directory),
            Process("worker", ["worker", *on_bus], directory),
        ]
        killing = killed_at_random(processes, seed, pause_s=(3.0, 9.0))
        try:
            with killing if killed else contextlib.nullcontext():
                for process in processes:
                    process.start()
                with LightNodes(cluster.controllers, cluster.cluster_id, 1) as light:
                    flip_levels(cluster, light, seed, FLIPS)
            wait_until_read(bus, processes)
        finally:
            for process in processes:
                process.kill()
        run_once(lake, stages(lake, bus))


def outage(lake: Lake, directory: Path, seed: int) -> None:
    """The topics of a real cluster in a lake, from a bus that was unreachable in the middle."""
    directory.mkdir()
    with (
        Cluster(single_bus(), directory / "bus", temporary=True) as bus,
        Cluster(single_bus(), directory / "kafka", temporary=True) as cluster,
    ):
        settings = BusSettings(bus.bootstrap_servers, prefix="audit", replication_factor=1)
        ensure_topics(settings)
        on_bus = ["--bus", settings.bootstrap_servers, "--prefix", settings.prefix]
        watch = ["watch", "--controllers", cluster.controllers, "--cluster-id", cluster.cluster_id]
        processes = [
            Process("watch", [*watch, "--servers", cluster.bootstrap_servers, *on_bus], directory),
            Process("worker", ["worker", *on_bus], directory),
        ]
        try:
            for process in processes:
                process.start()
            wait_ready(processes)
            with (
                LightNodes(cluster.controllers, cluster.cluster_id, 1) as light,
                ThreadPoolExecutor(1) as pool,
            ):
                flips = pool.submit(flip_levels, cluster, light, seed, FLIPS)
                time.sleep(OUTAGE_AFTER_S)
                bus.node(1).kill()
                time.sleep(OUTAGE_S)
                bus.node(1).start()
                for process in processes:
                    process.start()  # as a service manager would, if it ended
                flips.result()
            wait_until_read(settings, processes)
        finally:
            for process in processes:
                process.kill()
        run_once(lake, stages(lake, settings))


def long_history(commits: int) -> Iterator[SourceEvent]:
    """A cluster whose nodes register in turn, all of them first with a release that supports the
    finalized level, then with one that does not, and so on."""
    end = 0
    for number in range(commits):
        at_ms, node, first = START_MS + number * 1000, number % NODES, end
        records = [] if number else [level(0, 20)]
        records.append(registration(first + len(records), node))
        if number // NODES % 2:
            records[-1]["data"]["features"][0]["maxSupportedVersion"] = 19
        end += len(records)
        where = (first, end - 1, 1, at_ms)
        commit = LogCommit(ONE_CLUSTER, CommitKind.BATCH, *where, records, {}, at_ms)
        yield at_ms, METADATA_LOG, commit
        for beat in range(1, HEARTBEATS + 1):
            seen_ms, state = at_ms + 200 * beat, (end - 1, 1, end, 1, 1)
            following = SourceState.FOLLOWING
            status = SourceStatus(ONE_CLUSTER, "kraft", following, *state, "", seen_ms)
            yield seen_ms, METADATA_LOG, status


def one_cluster(lake: Lake, commits: int = COMMITS) -> None:
    """Bronze, silver and gold of one cluster with a long history."""
    topics = Topics()

    def reads() -> Iterator[Read]:
        for event in long_history(commits):
            yield from topics.publish([event])

    for number, (output, at_ms) in enumerate(work(reads()), start=1):
        topics.publish_output(output, at_ms)
        if number % ROUND_OUTPUTS == 0:
            topics.into(lake)
    topics.into(lake)
    run_once(lake, [FoldQuery(lake).writer])


def by_cluster_alone(rows: DataFrame, *_: str) -> DataFrame:
    """Rows in partitions of whole clusters, and so those of one cluster in one task."""
    return partitioned_by_cluster(rows)


def in_several_tasks(lake: Lake, rounds: int = ROUNDS) -> dict[str, Any]:
    """The seconds of an audit of one cluster, against those in one task, by turns."""
    several, one = list[float](), list[float]()
    audit(lake)  # unmeasured: the code of the session is compiled
    for _ in range(rounds):
        began = time.perf_counter()
        report = audit(lake)
        middle = time.perf_counter()
        with patch.object(live_outputs, "partitioned_by_cluster", by_cluster_alone):
            in_one = audit(lake)
        one.append(time.perf_counter() - middle)
        several.append(middle - began)
        assert report == in_one
        assert report.count(EQUAL) > 0
        assert report.count(*BAD) == 0
    value, baseline = statistics.median(several), statistics.median(one)
    return {
        "measure": "audit_of_one_cluster",
        "value": round(value, 1),
        "baseline": round(baseline, 1),
        "ratio": round(baseline / value, 2),
        "messages": lake.count(MESSAGES),
        "compared": report.count(EQUAL),
    }


def measurement(run: str, report: AuditReport, seconds: float) -> dict[str, Any]:
    """The measure of one run."""
    for difference in report.differences:
        print(difference)
    return {
        "measure": "audit_differences",
        "run": run,
        "value": report.count(*BAD),
        "compared": report.count(*BAD, EQUAL, REORDERED),
        "in_another_order": report.count(REORDERED),
        "duplicates": sum(counts.duplicates for counts in report.counts),
        "late": sum(counts.late for counts in report.counts),
        "unknown": report.count(UNKNOWN),
        "audit_s": round(seconds, 2),
    }


def run() -> Iterator[dict[str, Any]]:
    """The measure after each of the four runs."""
    with tempfile.TemporaryDirectory(prefix="featurewatch-") as name:
        root = Path(name)
        jars = spark_jars(Cache(default_cache()))
        session = spark_session(root / "spark", "local[2]", jars, {"spark.driver.memory": "2g"})
        try:
            for number, run in enumerate(("calm", "crashes", "outage", "simulated")):
                lake = Lake(session, str(root / f"lake-{run}"))
                built_s = None
                if run == "simulated":
                    built_s = simulated(lake)
                elif run == "outage":
                    outage(lake, root / run, 584 + number)
                else:
                    real(lake, root / run, 584 + number, killed=run == "crashes")
                lake.unlock()
                began = time.perf_counter()
                report = audit(lake, limit=5)
                audited_s = time.perf_counter() - began
                yield measurement(run, report, audited_s)
                if built_s is not None:
                    yield {
                        "measure": "audit_vs_build",
                        "value": round(audited_s, 1),
                        "baseline": round(built_s, 1),
                        "ratio": round(audited_s / built_s, 2),
                    }
            lake = Lake(session, str(root / "lake-one"))
            one_cluster(lake)
            lake.unlock()
            yield in_several_tasks(lake)
        finally:
            session.stop()
