"""The Spark session: one release of Spark, Delta and the Kafka connector, and sane local defaults.

The jars are pinned one by one, and not resolved: Spark brings all else that they need, and one list
says what runs. They are handed in, so that who fetches them is not this package's business.
"""

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from featurewatch.pipeline.errors import SparkMissingError, SparkStartError
from featurewatch.pipeline.spark.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK: Final = "4.0.0"
DELTA: Final = "4.0.0"

JARS: Final = (
    f"io.delta:delta-spark_2.13:{DELTA}",
    f"io.delta:delta-storage:{DELTA}",
    f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK}",
    f"org.apache.spark:spark-token-provider-kafka-0-10_2.13:{SPARK}",
    "org.apache.kafka:kafka-clients:3.9.0",
    "org.apache.commons:commons-pool2:2.12.0",
)
"""What Spark needs beside what its Python package brings, as Maven coordinates."""

_WORKER: Final = str(Path(__file__).with_name("worker"))
"""What Spark's Python processes import at their start; where it is not there, nothing is."""
_JVM_OPTIONS: Final = "spark.driver.extraJavaOptions"
_STATE_STORE: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

_SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Times on the topics are UTC, whatever the machine's time zone is.
    "spark.sql.session.timeZone": "UTC",
    # An object with a name twice: the last one counts, as in Python's JSON.
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    # The only store that stateful Python functions can use.
    "spark.sql.streaming.stateStore.providerClass": _STATE_STORE,
    # A message of a log may have ten thousand bytes: a batch of them fits a processor's cache, and
    # costs half of what one does that does not.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
    # What is merged comes from files that do not change: read twice it is the same.
    "spark.databricks.delta.merge.materializeSource": "none",
    # A table is known to nobody but by its path: no metastore is left behind.
    "spark.sql.catalogImplementation": "in-memory",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|jaas|ssl[.]key",
}

_MASTERS: Final = ("local", "spark://", "k8s://", "yarn")
_BRIEF: Final[Mapping[str, str]] = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
BRIEF_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
"""The first compiler alone. By itself it has room for 48 MB of code, and where that is full nothing
is compiled any more."""


def spark_session(
    scratch: Path,
    master: str = "local[*]",
    jars: Sequence[Path] = (),
    settings: Mapping[str, str] | None = None,
    *,
    brief: bool = False,
) -> "SparkSession":
    """A session on a master: ``local[*]`` runs in this process' JVM, an address names a cluster.

    ``scratch`` is a directory for what Spark writes down while it runs; ``jars`` are those of
    `JARS`, empty where the cluster has them; ``settings`` go before the defaults. ``brief`` is for
    small tables and many different plans, each of which runs once: what would be compiled well, for
    long use, costs more than it saves.

    Raises:
        SparkMissingError: Spark is not installed, or there is no Java for it.
        SparkStartError: It does not start on that master.
    """
    if not master.startswith(_MASTERS):
        raise SparkStartError(
            f"{master} is no Spark master: give local[*], spark://host:port, k8s://… or yarn"
        )
    if find_spec("pyspark") is None or find_spec("delta") is None:
        raise SparkMissingError("Spark is not installed; run: pip install 'featurewatch[pipeline]'")
    os.environ["JAVA_HOME"] = str(java_home())
    # Workers take the python3 on PATH otherwise, which may be another than this one. Those of a
    # cluster may have been told of one of their own.
    if not (is_submitted() and "PYSPARK_PYTHON" in os.environ):
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if master.startswith("local"):
        # Nobody but this machine speaks with a session of this process.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("featurewatch")
    named = {**_SETTINGS, **_paths(scratch, jars), **_local(master)}
    if brief:
        named |= _BRIEF
        named[_JVM_OPTIONS] += f" {BRIEF_JVM}"
    named |= settings or {}
    for name, value in named.items():
        builder = builder.config(name, value)
    # A failure in a batch comes as the query's exception; here it would be told twice, at length.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    try:
        session = builder.getOrCreate()
    except (PySparkRuntimeError, Py4JJavaError) as error:
        reason = " ".join(str(getattr(error, "java_exception", error)).split())[:300]
        raise SparkStartError(f"Spark does not start on the master {master}: {reason}") from None
    environment = session.sparkContext.environment
    path = environment.get("PYTHONPATH", "").split(os.pathsep)
    if _WORKER not in path:
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [_WORKER, *path]))
    if not is_submitted():
        _log_uncaught(session)
    return session


def _log_uncaught(session: "SparkSession") -> None:
    """What ends a thread of the JVM goes to its log, where some of it is left out: by itself the
    JVM writes it to stderr, a page for each thread."""
    java = jvm(session)
    handler = java.org.apache.spark.util.SparkUncaughtExceptionHandler(False)
    java.java.lang.Thread.setDefaultUncaughtExceptionHandler(handler)


def _paths(scratch: Path, jars: Sequence[Path]) -> dict[str, str]:
    scratch.mkdir(parents=True, exist_ok=True)
    log4j = Path(__file__).with_name("log4j2.properties").as_uri()
    found = {
        "spark.sql.warehouse.dir": (scratch / "warehouse").absolute().as_uri(),
        "spark.local.dir": str((scratch / "spark").absolute()),
        _JVM_OPTIONS: f"-Dlog4j2.configurationFile={log4j}",
    }
    if jars:
        found["spark.jars"] = ",".join(str(jar) for jar in jars)
    return found


def _local(master: str) -> dict[str, str]:
    """What suits one machine: as many parts as cores, since more only cost."""
    cores = local_cores(master)
    if cores is None:
        return {}
    return {
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.default.parallelism": str(cores),
        # The log of a small table is read in one part instead of fifty.
        "spark.databricks.delta.snapshotPartitions": str(cores),
        # A vacuum lists files in so many tasks, ten thousand by default.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(cores),
    }


def local_cores(master: str) -> int | None:
    """The cores that a local master names (None: it is no local one)."""
    if not master.startswith("local"):
        return None
    named = master.removeprefix("local").strip("[]").partition(",")[0]
    if named in ("", "*"):
        return 1 if named == "" else os.cpu_count() or 1
    return int(named) if named.isdigit() else 1


def jvm(session: "SparkSession") -> Any:
    """The session's JVM, as py4j shows it."""
    return session.sparkContext._jvm


def is_submitted(environment: Mapping[str, str] | None = None) -> bool:
    """Whether there is a JVM to speak with, as spark-submit says it to the Python that it starts.

    Its class path stands then, and what the executors run on has been said.
    """
    env = os.environ if environment is None else environment
    return "PYSPARK_GATEWAY_PORT" in env
