"""``featurewatch pipeline run``: fills the lake."""

import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Final

from featurewatch.cli.command_line import Option, command
from featurewatch.cli.config import options
from featurewatch.cli.config.lake import Master, finite
from featurewatch.cli.config.options import (
    AsJson,
    BusServers,
    ConfigFile,
    LakeRoot,
    Prefix,
    WorkerOperations,
)

if TYPE_CHECKING:
    from featurewatch.streams.bus.settings import BusSettings

LOG: Final = logging.getLogger("featurewatch.pipeline")


@command()
def run(
    config: ConfigFile = None,
    bus: BusServers = "",
    prefix: Prefix = "",
    lake: LakeRoot = "",
    master: Master = "local[*]",
    once: Annotated[
        bool, Option("--once", help="Ingest the current content of the topics, then exit.")
    ] = False,
    every: Annotated[
        float,
        Option(
            "--every",
            metavar="SECONDS",
            min=0.1,
            max=86_400,
            check=finite,
            help="Seconds between batches.",
        ),
    ] = 1.0,
    operations: WorkerOperations = False,
    as_json: AsJson = False,
) -> None:
    """Fill the lake from the topics, until Ctrl-C or with `--once` up to their current end."""
    # Here, so that help needs no settings and no engines.
    from featurewatch.cli.config.settings import load
    from featurewatch.cli.output.progress import ProgressPrinter
    from featurewatch.cli.runtime.lake import open_lake, stop_at_signal
    from featurewatch.cli.runtime.lake_reader import default_lake

    progress = ProgressPrinter(as_json=as_json).progress()
    settings = load(config, bus=options.bus_flags(bus, prefix))
    if operations:
        settings = settings.with_operations()
    bus_settings = settings.bus_settings()
    root = lake or default_lake(settings)
    if once and _has_nothing_to_do(root, bus_settings):
        return
    with open_lake(root, master) as opened:
        # Here, since it needs Spark.
        from featurewatch.pipeline.run import run_on, run_once, stages

        filling = stages(opened, bus_settings, settings.limits(), progress)
        if once:
            run_once(opened, filling, progress)
        else:
            run_on(opened, filling, every, stop_at_signal())


def _has_nothing_to_do(root: str, bus: "BusSettings") -> bool:
    """Whether the lake has everything already; found out without Spark, which takes long to
    start."""
    if find_spec("deltalake") is None:
        return False  # `open_lake` names what is missing
    from featurewatch.pipeline.idle import is_up_to_date
    from featurewatch.pipeline.lake.root import local_directory

    directory = local_directory(root)
    if directory is None or not is_up_to_date(directory, bus):
        return False
    LOG.info("nothing to do: the lake has all messages of the topics, and its tables follow")
    return True
