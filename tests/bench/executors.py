"""``two_executors_vs_one``: the one pass on a standalone Spark cluster.

A master and two workers with a core each run on this machine; silver and gold are filled from the
same bronze with one executor and with two, in turn. Each executor has its own core, on which
its JVM and its Python process take turns; the driver runs where there is room.
"""

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from featurewatch.cli.runtime.spark_jars import spark_jars
from featurewatch.pipeline.derived.query import FoldQuery
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import MESSAGES
from featurewatch.pipeline.maintain import TABLES
from featurewatch.pipeline.spark.session import spark_session
from featurewatch.stack.java.jars import Cache, default_cache
from tests.bench.pipeline import fill
from tests.paths import ROOT
from tests.pipeline.spark.standalone import Standalone

CLUSTERS: Final = 8
RECORDS: Final = 400_000
"""Of each cluster."""
ROUNDS: Final = 2
EXECUTOR_MEMORY: Final = "1g"


def run(records: int = RECORDS, rounds: int = ROUNDS) -> Iterator[dict[str, Any]]:
    """The measure."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with tempfile.TemporaryDirectory(prefix="featurewatch-") as name:
        root, jars = Path(name), spark_jars(Cache(default_cache()))
        cluster = Standalone(root, EXECUTOR_MEMORY, pinned=True)
        took: dict[int, list[float]] = {1: [], 2: []}
        try:
            cluster.start()
            for number in range(rounds):
                for executors in (1, 2):
                    lake = root / f"lake-{number}-{executors}"
                    session = _session(cluster, root, jars, executors)
                    try:
                        if not (root / "bronze").exists():
                            fill(Lake(session, str(root / "bronze")), CLUSTERS, records)
                        # An executor that has folded all messages once has compiled its code and
                        # grown its heap; two of them fold half of the messages each.
                        for times in range(executors + 1):
                            copied = _copy(session, root / "bronze", lake / str(times))
                            began = time.perf_counter()
                            FoldQuery(copied).rebuild()
                            seconds = time.perf_counter() - began
                        took[executors].append(seconds)
                    finally:
                        session.stop()
        finally:
            cluster.stop()
    one, two = (statistics.median(took[executors]) for executors in (1, 2))
    yield {
        "measure": "two_executors_vs_one",
        "value": round(two, 1),
        "baseline": round(one, 1),
        "ratio": round(one / two, 2),
        "seconds": {str(count): [round(s, 1) for s in seconds] for count, seconds in took.items()},
        "cores": os.cpu_count(),
    }


def _session(cluster: Standalone, root: Path, jars: list[Path], executors: int) -> Any:
    """A session with so many executors of one core."""
    settings = {
        "spark.cores.max": str(executors),
        "spark.executor.cores": "1",
        "spark.executor.memory": EXECUTOR_MEMORY,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
    }
    return spark_session(root / "spark", cluster.master, jars, settings)


def _copy(session: Any, bronze: Path, root: Path) -> Lake:
    """Another lake with the same bronze, and empty tables."""
    shutil.copytree(bronze / MESSAGES.path, root / MESSAGES.path)
    copied = Lake(session, str(root))
    for table in TABLES:
        copied.ensure_table(table)
    return copied
