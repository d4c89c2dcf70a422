"""How soon a new lake has its first messages.

``pipeline_first_batch_vs_bare_spark``: from the start of ``pipeline run`` to the first commit of
messages in bronze, against a process with a bare Spark session that reads one message and writes
one Delta row, in turn. ``python -m tests.bench.first_batch BUS TOPIC DIRECTORY JAR…`` is that
process.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from featurewatch.pipeline.lake.tables import MESSAGES
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.topics import METADATA_LOG
from tests.bench.turns import FEATUREWATCH

ROUNDS: Final = 3
PATIENCE_S: Final = 300.0


def _until_commit(command: Sequence[str], log: Path, number: int) -> float:
    """The seconds from the start of a process to a commit; the process is then killed."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        while not (log / f"{number:020}.json").exists():
            if process.poll() is not None or time.perf_counter() - began > PATIENCE_S:
                process.kill()
                raise RuntimeError(f"no commit in {log}: {process.communicate()[1][-800:]!r}")
            time.sleep(0.01)
        return time.perf_counter() - began
    finally:
        process.kill()
        process.communicate()


def measure(bus: BusSettings, root: Path, jars: Sequence[Path]) -> dict[str, Any]:
    """The medians of both, on topics that have messages."""
    ours: list[float] = []
    bare: list[float] = []
    for number in range(ROUNDS):
        lake, table = root / f"first-{number}", root / f"bare-{number}"
        where = ("--bus", bus.bootstrap_servers, "--prefix", bus.prefix, "--lake", str(lake))
        command = [*FEATUREWATCH, "pipeline", "run", *where]
        # The first commit of bronze creates the table.
        ours.append(_until_commit(command, lake / MESSAGES.path / "_delta_log", 1))
        topic = bus.topic(METADATA_LOG)
        module = (sys.executable, "-m", "tests.bench.first_batch", bus.bootstrap_servers, topic)
        bare.append(_until_commit([*module, str(table), *map(str, jars)], table / "_delta_log", 0))
    ratios = [mine / other for mine, other in zip(ours, bare, strict=True)]
    return {
        "measure": "pipeline_first_batch_vs_bare_spark",
        "value": round(statistics.median(ours), 1),
        "baseline": round(statistics.median(bare), 1),
        "ratio": round(statistics.median(ratios), 2),
        "ratios": [round(ratio, 2) for ratio in ratios],
    }


def bare_session(bus: str, topic: str, directory: str, jars: Sequence[str]) -> None:
    """Reads one message and writes one row, with as few settings as that takes."""
    from pyspark.sql import SparkSession

    extension = "io.delta.sql.DeltaSparkSessionExtension"
    catalog = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    session = (
        SparkSession.builder.master("local[*]")
        .config("spark.jars", ",".join(jars))
        .config("spark.sql.extensions", extension)
        .config("spark.sql.catalog.spark_catalog", catalog)
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    source = session.read.format("kafka").option("kafka.bootstrap.servers", bus)
    messages = source.option("subscribe", topic).load().limit(1)
    messages.write.format("delta").save(directory)


if __name__ == "__main__":
    bare_session(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
