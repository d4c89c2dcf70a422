"""``featurewatch pipeline``: the history of the topics, as tables of a lake, by Spark."""

import contextlib
import json
import logging
import math
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import options
from cli.errors import UsageError
from cli.options import AsJson, BusServers, ConfigFile, Prefix
from cli.settings import Settings, load
from cli.spark_jars import spark_jars
from deploy.artifacts import Cache, default_cache
from pipeline.errors import LakeError, reason_in
from pipeline.session import spark_session
from pipeline.submit import is_submitted

if TYPE_CHECKING:
    from pipeline.lake import Lake
    from pipeline.maintain import MaintenanceResult

app = typer.Typer(help="The history of the topics as Delta tables, by Spark.", no_args_is_help=True)

LakeRoot = Annotated[
    str, typer.Option("--lake", help="Directory or URI of the lake.", show_default=False)
]
Master = Annotated[
    str, typer.Option("--master", help="Spark's master: local[*] runs in this process.")
]


def finite(value: float) -> float:
    """What an option was given, if it is a number that has an end."""
    if not math.isfinite(value):
        raise typer.BadParameter("it must be a finite number")
    return value


@app.command()
def run(
    config: ConfigFile = None,
    bus: BusServers = "",
    prefix: Prefix = "",
    lake: LakeRoot = "",
    master: Master = "local[*]",
    once: Annotated[
        bool, typer.Option("--once", help="Take in what is there now, and end.")
    ] = False,
    every: Annotated[
        float,
        typer.Option(
            "--every",
            min=0.1,
            max=86_400,
            callback=finite,
            help="Seconds from one batch to the next.",
        ),
    ] = 1.0,
) -> None:
    """Fill the lake from the topics, until Ctrl-C; `--once`: up to what is there now."""
    settings = load(config, bus=options.bus_flags(bus, prefix))
    found = settings.bus_settings()
    with open_lake(lake or default_lake(settings), master) as opened:
        # Here, since Spark has to be there for it.
        from pipeline.run import run_on, run_once, stages

        filling = stages(opened, found, settings.limits())
        if once:
            run_once(opened, filling)
        else:
            run_on(opened, filling, every, _stop_at_signal())


@app.command()
def maintain(
    config: ConfigFile = None,
    lake: LakeRoot = "",
    master: Master = "local[*]",
    keep_days: Annotated[
        int | None,
        typer.Option(
            "--keep-days", min=1, max=36_500, help="Delete older rows of bronze and silver."
        ),
    ] = None,
    vacuum_hours: Annotated[
        float,
        typer.Option(
            "--vacuum-hours",
            min=0,
            max=876_000,
            callback=finite,
            help="Remove files that are unused for so long.",
        ),
    ] = 168.0,
    as_json: AsJson = False,
) -> None:
    """Give tables new columns, delete what is too old, join small files, remove unused ones."""
    with open_lake(lake or default_lake(load(config)), master, brief=True) as opened:
        from pipeline.maintain import maintain as maintain_tables

        for done in maintain_tables(opened, keep_days, vacuum_hours):
            if as_json:
                print(json.dumps({**done._asdict(), "table": done.table.path}), flush=True)
            else:
                print(_told(done), flush=True)


def _told(done: "MaintenanceResult") -> str:
    added = f", added {', '.join(done.columns_added)}" if done.columns_added else ""
    deleted = f", deleted {done.rows_deleted} rows" if done.rows_deleted else ""
    return f"{done.table.path}: {done.files_before} files, now {done.files_after}{deleted}{added}"


def default_lake(settings: Settings) -> str:
    """Where the lake is if nobody says so."""
    return str(settings.worker.data_directory / "lake")


@contextlib.contextmanager
def open_lake(root: str, master: str, *, brief: bool = False) -> Iterator["Lake"]:
    """The lake, with a Spark session (`spark_session`) that ends with the context.

    Raises:
        UsageError: No lake is named.
        LakeError: Its tables are not as they must be: here, or as Spark says of them inside.
    """
    if not root.strip():
        raise UsageError("the lake has no place: give a directory or a URI with --lake")
    # Spark's SQL takes no relative path for a table's.
    place = root if "://" in root else str(Path(root).absolute())
    # Who was submitted has the jars that spark-submit was given; for a session of our own they are
    # fetched.
    jars = [] if is_submitted() else spark_jars(Cache(default_cache()))
    with tempfile.TemporaryDirectory(prefix="featurewatch-spark-") as scratch:
        with _quiet_stdout():
            session = spark_session(Path(scratch), master, jars, brief=brief)
        from py4j.protocol import Py4JJavaError
        from pyspark.errors.exceptions.captured import CapturedException

        from pipeline.bronze import check_bronze
        from pipeline.lake import Lake

        lake = Lake(session, place)
        try:
            check_bronze(lake)
            yield lake
        except (Py4JJavaError, CapturedException) as error:
            trace = f"{error}\n{getattr(error, '_stackTrace', '')}"
            logging.getLogger("pyspark").info("%s", trace)
            raise LakeError(f"the lake {root} cannot be used: {reason_in(trace)}") from error
        finally:
            session.sparkContext.setLogLevel("OFF")  # what it says while it ends is no news
            session.stop()


@contextlib.contextmanager
def _quiet_stdout() -> Iterator[None]:
    """Nothing that is started inside writes to our stdout: Delta counts there what it removed, and
    stdout is for those who read what the command says."""
    sys.stdout.flush()
    ours = os.dup(1)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        yield
    finally:
        os.dup2(ours, 1)
        os.close(ours)


def _stop_at_signal() -> threading.Event:
    """Set by SIGINT and SIGTERM; the second one ends the process as it is."""
    stop = threading.Event()

    def ask(number: int, _: object) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ask)
    return stop


from cli import audit as _audit  # noqa: E402, F401 - a command of this group, which needs the above
