"""``featurewatch worker``: the agents."""

from typing import Annotated

import typer

from featurewatch.cli.config import options
from featurewatch.cli.config.options import BusServers, ConfigFile, Prefix
from featurewatch.cli.config.settings import load


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(worker)


def worker(
    config: ConfigFile = None,
    bus: BusServers = "",
    prefix: Prefix = "",
    worker_id: Annotated[
        str, typer.Option("--id", help="Static member id; each running worker has its own.")
    ] = "",
    store: Annotated[str, typer.Option(help="memory or rocksdb.")] = "",
) -> None:
    """Run a worker: it keeps the tables and says what changed and what is wrong."""
    # Here, so that the other commands start without the engines.
    from featurewatch.cli.runtime.services import run_until_signal, run_worker

    given = {"id": worker_id, "store": store}
    flags = {name: value for name, value in given.items() if value}
    settings = load(config, bus=options.bus_flags(bus, prefix), worker=flags)
    run_until_signal(run_worker(settings.worker_settings(), settings.web))
