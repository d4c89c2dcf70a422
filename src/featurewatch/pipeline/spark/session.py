"""The Spark session: one release of Spark, Delta and the Kafka connector, with local defaults.

``pyproject.toml`` names the release. The caller passes the jars of the connectors, so this package
does not fetch them.
"""

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from featurewatch.kafka.releases import record_files
from featurewatch.kafka.releases.directory import VARIABLE, releases_directory
from featurewatch.pipeline.errors import SparkMissingError, SparkStartError
from featurewatch.pipeline.spark.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WORKER: Final = str(Path(__file__).with_name("worker"))
"""Directory whose sitecustomize Spark's Python processes import at start, if it exists there."""
_JVM_OPTIONS: Final = "spark.driver.extraJavaOptions"
_STREAMING: Final = "org.apache.spark.sql.execution.streaming"
_STATE_STORE: Final = f"{_STREAMING}.state.RocksDBStateStoreProvider"
_CHECKPOINT_FILES: Final = f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager"

_SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Times on the topics are UTC, whatever the machine's time zone is.
    "spark.sql.session.timeZone": "UTC",
    # JSON objects with duplicate names: the last one counts, as in Python.
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    # The only store that supports stateful Python functions.
    "spark.sql.streaming.stateStore.providerClass": _STATE_STORE,
    # A batch writes its changes, and a thread beside it the snapshots, of which each has several
    # files: every batch wrote one.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # A message may have ten thousand bytes: a batch of this many fits the processor's cache, and
    # costs half of one that does not; larger ones that are read from a table fill the heap.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
    "spark.sql.parquet.columnarReaderBatchSize": "500",
    # A table's log is read in this many tasks, fifty by default; ours have some thousands of files.
    "spark.databricks.delta.snapshotPartitions": "2",
    # Sources of merges come from immutable files, so reading them twice gives the same rows.
    "spark.databricks.delta.merge.materializeSource": "none",
    # Rows that are partitioned by cluster are joined by cluster and id without another shuffle.
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    # Tables are addressed by path only: no metastore is left behind.
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
_DRIVER_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Only the first JIT compiler: the second one takes the cores from the Python processes, and from
executors beside the driver, and saves less than it takes. The default code cache of the first is
48 MB, and when it is full nothing is compiled any more."""
BRIEF_JVM: Final = f"{_DRIVER_JVM} -XX:+UseSerialGC"


def spark_session(
    scratch: Path,
    master: str = "local[*]",
    jars: Sequence[Path] = (),
    settings: Mapping[str, str] | None = None,
    *,
    brief: bool = False,
) -> "SparkSession":
    """Returns a session on a master: ``local[*]`` runs in a JVM of this process, an address names a
    cluster.

    ``scratch`` is a directory for Spark's temporary files. ``jars`` are those of the connectors,
    empty if the cluster has them. ``settings`` override the defaults. ``brief`` is for small tables
    and many different plans that each run once: compiling them costs more than it saves.

    Raises:
        SparkMissingError: Spark is not installed, or there is no Java for it.
        SparkStartError: Spark does not start on that master.
    """
    if not master.startswith(_MASTERS):
        raise SparkStartError(
            f"{master} is not a Spark master: give local[*], spark://host:port, k8s://… or yarn"
        )
    if find_spec("pyspark") is None or find_spec("delta") is None:
        raise SparkMissingError("Spark is not installed; run: pip install 'featurewatch[pipeline]'")
    os.environ["JAVA_HOME"] = str(java_home())
    # Otherwise workers run the python3 on PATH, which may differ from this one. A cluster may have
    # set another interpreter.
    if not (is_submitted() and "PYSPARK_PYTHON" in os.environ):
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if master.startswith("local"):
        # Only this machine connects to a local session.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("featurewatch")
    config = {**_SETTINGS, **_paths(scratch, jars), **_local(master)}
    config[_JVM_OPTIONS] += f" {BRIEF_JVM if brief else _DRIVER_JVM}"
    if brief:
        config |= _BRIEF
    config |= settings or {}
    for name, value in config.items():
        builder = builder.config(name, value)
    # A failed batch raises the query's exception; py4j would log it a second time, at length.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)
    try:
        session = builder.getOrCreate()
    except (PySparkRuntimeError, Py4JJavaError) as error:
        reason = " ".join(str(getattr(error, "java_exception", error)).split())[:300]
        raise SparkStartError(f"Spark does not start on the master {master}: {reason}") from None
    worker_environment = session.sparkContext.environment
    python_path = worker_environment.get("PYTHONPATH", "").split(os.pathsep)
    if _WORKER not in python_path:
        worker_environment["PYTHONPATH"] = os.pathsep.join(filter(None, [_WORKER, *python_path]))
    share_releases(session, is_local=master.startswith("local"))
    # It would report the end of a JVM that was killed with a stack trace, beside what the command
    # says of it in one line.
    context: Any = session.sparkContext
    context._accumulatorServer.handle_error = lambda *_: None
    if not is_submitted():
        _log_uncaught(session)
    return session


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Whether a record is not what py4j logs beside the exception that it raises."""
    return not str(record.msg).startswith("Exception while sending")


def share_releases(session: "SparkSession", *, is_local: bool) -> None:
    """Gives Spark's Python processes the learned tables of releases that this process has.

    They run here (``is_local``) and read the same directory, or on other machines, which get the
    files: an executor puts them where its processes run.
    """
    context = session.sparkContext
    if is_local:
        context.environment[VARIABLE] = str(releases_directory().absolute())
        return
    for file in record_files():
        if file.is_learned:
            context.addFile(os.path.join(file.directory, f"{file.release}.json"))
    context.environment[VARIABLE] = os.curdir


def _log_uncaught(session: "SparkSession") -> None:
    """Sends uncaught exceptions of JVM threads to the JVM's log, which filters them: by default the
    JVM prints a page per thread to stderr."""
    java_vm = jvm(session)
    handler = java_vm.org.apache.spark.util.SparkUncaughtExceptionHandler(False)
    java_vm.java.lang.Thread.setDefaultUncaughtExceptionHandler(handler)


def _paths(scratch: Path, jars: Sequence[Path]) -> dict[str, str]:
    scratch.mkdir(parents=True, exist_ok=True)
    log4j = Path(__file__).with_name("log4j2.properties").as_uri()
    settings = {
        "spark.sql.warehouse.dir": (scratch / "warehouse").absolute().as_uri(),
        "spark.local.dir": str((scratch / "spark").absolute()),
        _JVM_OPTIONS: f"-Dlog4j2.configurationFile={log4j}",
    }
    if jars:
        settings["spark.jars"] = ",".join(str(jar) for jar in jars)
    return settings


def _local(master: str) -> dict[str, str]:
    """Settings for one machine: as many partitions as cores, since more only cost time."""
    cores = local_cores(master)
    if cores is None:
        return {}
    return {
        "spark.driver.memory": "1g",
        # Both write a file beside its place and rename it. The default starts ten processes for a
        # file of this machine, eight of them readlink, and this one two.
        "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINT_FILES,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.default.parallelism": str(cores),
        # A vacuum lists files in this many tasks, ten thousand by default.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(cores),
    }


def local_cores(master: str) -> int | None:
    """Returns the number of cores of a local master (None: the master is not local)."""
    if not master.startswith("local"):
        return None
    cores = master.removeprefix("local").strip("[]").partition(",")[0]
    if cores in ("", "*"):
        return 1 if cores == "" else os.cpu_count() or 1
    return int(cores) if cores.isdigit() else 1


def jvm(session: "SparkSession") -> Any:
    """Returns the session's JVM, as py4j exposes it."""
    return session.sparkContext._jvm


def is_submitted(environment: Mapping[str, str] | None = None) -> bool:
    """Whether spark-submit started this Python process, and so the JVM exists already.

    The class path and the executors' interpreter are then fixed.
    """
    env = os.environ if environment is None else environment
    return "PYSPARK_GATEWAY_PORT" in env
