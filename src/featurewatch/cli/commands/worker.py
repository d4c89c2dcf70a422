"""``featurewatch worker``: the agents."""

from typing import Annotated

from featurewatch.cli.command_line import Option, command
from featurewatch.cli.config import options
from featurewatch.cli.config.options import BusServers, ConfigFile, Operations, Prefix


@command()
def worker(
    config: ConfigFile = None,
    bus: BusServers = "",
    prefix: Prefix = "",
    worker_id: Annotated[
        str,
        Option(
            "--id",
            metavar="NAME",
            help="Id of this worker in the consumer group.",
            default="derived from the host name",
        ),
    ] = "",
    store: Annotated[
        str,
        Option(
            metavar="STORE",
            help="Where the worker holds its tables: memory or rocksdb.",
            default="memory",
        ),
    ] = "",
    operations: Operations = False,
) -> None:
    """Run a worker, which keeps the tables and publishes changes and alerts."""
    # Here, so that help needs no settings and no engines.
    from featurewatch.cli.config.settings import Settings, load
    from featurewatch.cli.runtime.services import run_until_signal, run_worker

    given = {"id": worker_id, "store": store}
    flags = {name: value for name, value in given.items() if value}

    def read() -> Settings:
        settings = load(config, bus=options.bus_flags(bus, prefix), worker=flags)
        return settings.with_operations() if operations else settings

    settings = read()
    work = run_worker(settings.worker_settings(), settings.web)
    run_until_signal(work, ("worker",), read)
