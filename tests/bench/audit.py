"""``audit_differences``: what was said live and not recomputed by the lake, or the other way round.

Four runs: a real cluster whose levels change and whose nodes come with good and bad ranges, with
the real source, worker and pipeline; the same with kill -9 of source and worker all the time; the
same with a bus that is killed in the middle and comes back after 20 seconds; and a thousand
simulated clusters, each with several sources, a worker that takes their topics in another
order than that of their times, and messages that were published or said again after crashes.

``audit_vs_build``: the audit of the last of these lakes, against building its silver and gold in
the same session.
"""

import contextlib
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from featurewatch.cli.runtime.spark_jars import spark_jars
from featurewatch.pipeline.audit.audit import audit
from featurewatch.pipeline.audit.report import BAD, EQUAL, REORDERED, UNKNOWN, AuditReport
from featurewatch.pipeline.derived.query import FoldQuery
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.run import run_once, stages
from featurewatch.pipeline.spark.session import spark_session
from featurewatch.stack.java.jars import Cache, default_cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import single_bus
from featurewatch.stack.wire.light_nodes import LightNodes
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from tests.integration.processes.level_flips import flip_levels, wait_until_read
from tests.pipeline.audit.lakes import START_MS, Topics, heartbeat, with_crashes
from tests.processes import Process, killed_at_random, wait_ready

CLUSTERS: Final = 1000
FLIPS: Final = 40
OUTAGE_AFTER_S: Final = 6.0
OUTAGE_S: Final = 20.0


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
        finally:
            session.stop()
