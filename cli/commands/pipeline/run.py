"""``featurewatch pipeline run``: fills the lake."""

from typing import Annotated

from featurewatch.cli.command_line import Option, command
from featurewatch.cli.config import options
from featurewatch.cli.config.lake import Master, finite
from featurewatch.cli.config.options import BusServers, ConfigFile, LakeRoot, Prefix


@command()
def run(
    config: ConfigFile = None,
    bus: BusServers = "",
    prefix: Prefix = "",
    lake: LakeRoot = "",
    master: Master = "local[*]",
    once: Annotated[
        bool, Option("--once", help="Ingest what the topics have now, and end.")
    ] = False,
    every: Annotated[
        float,
        Option(
            "--every",
            metavar="SECONDS",
            min=0.1,
            max=86_400,
            check=finite,
            help="From one batch to the next.",
        ),
    ] = 1.0,
) -> None:
    """Fill the lake from the topics, until Ctrl-C or with `--once` up to the present end."""
    # Here, so that help needs no settings and no engines.
    from featurewatch.cli.config.settings import load
    from featurewatch.cli.runtime.lake import default_lake, open_lake, stop_at_signal

    settings = load(config, bus=options.bus_flags(bus, prefix))
    bus_settings = settings.bus_settings()
    with open_lake(lake or default_lake(settings), master) as opened:
        # Here, since Spark has to be there for it.
        from featurewatch.pipeline.run import run_on, run_once, stages

        filling = stages(opened, bus_settings, settings.limits())
        if once:
            run_once(opened, filling)
        else:
            run_on(opened, filling, every, stop_at_signal())
