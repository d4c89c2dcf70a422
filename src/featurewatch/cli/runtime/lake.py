"""Opens the lake with Spark for one command, and ends it in order at a signal."""

import contextlib
import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from featurewatch.cli.errors import UsageError
from featurewatch.cli.runtime.spark_jars import spark_jars
from featurewatch.pipeline.errors import LakeError, RunError, reason_in
from featurewatch.pipeline.lake.root import absolute_root
from featurewatch.pipeline.spark.session import is_submitted, spark_session
from featurewatch.stack.java.jars import Cache, default_cache

if TYPE_CHECKING:
    from featurewatch.pipeline.lake.lake import Lake


@contextlib.contextmanager
def open_lake(root: str, master: str, *, brief: bool = False) -> Iterator["Lake"]:
    """The lake, with a Spark session (`spark_session`) that ends with the context.

    Raises:
        UsageError: No lake is named.
        LakeError: It can have no tables at this place, or its tables are not as they must be: here,
            or as Spark reports inside.
        RunError: Spark's processes ended inside.
    """
    if not root.strip():
        raise UsageError("no lake is given: pass --lake DIRECTORY or URI")
    place = absolute_root(root)
    # Who was submitted has the jars that spark-submit was given; for a session of our own they are
    # fetched.
    jars = [] if is_submitted() else spark_jars(Cache(default_cache()))
    with tempfile.TemporaryDirectory(prefix="featurewatch-spark-") as scratch:
        with _quiet_stdout():
            session = spark_session(Path(scratch), master, jars, brief=brief)
        from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
        from pyspark.errors.exceptions.captured import CapturedException

        from featurewatch.pipeline.bronze.query import check_bronze
        from featurewatch.pipeline.lake.lake import Lake
        from featurewatch.pipeline.spark.executors import executors_watched

        lake = Lake(session, place)
        try:
            with executors_watched(session, master):
                check_bronze(lake)
                yield lake
        except (Py4JNetworkError, ConnectionError) as error:
            raise RunError(
                "Spark's driver, a Java process of this command, ended: it was killed, or had no "
                "memory; start again: it continues where it was, and nothing is lost"
            ) from error
        except (Py4JJavaError, CapturedException) as error:
            trace = f"{error}\n{getattr(error, '_stackTrace', '')}"
            logging.getLogger("pyspark").info("%s", trace)
            raise LakeError(f"the lake {root} cannot be used: {reason_in(trace)}") from error
        finally:
            with contextlib.suppress(Py4JError, OSError):  # its JVM may have been killed
                session.sparkContext.setLogLevel("OFF")  # its messages at the end are useless
                session.stop()


@contextlib.contextmanager
def _quiet_stdout() -> Iterator[None]:
    """Nothing that is started inside writes to our stdout: Delta counts there what it removed, and
    stdout is for the command's results."""
    sys.stdout.flush()
    ours = os.dup(1)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        yield
    finally:
        os.dup2(ours, 1)
        os.close(ours)


def stop_at_signal() -> threading.Event:
    """An event that SIGINT and SIGTERM set; the second signal ends the process at once."""
    stop = threading.Event()

    def on_signal(number: int, _: object) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    return stop
