"""``featurewatch up``: everything in one process."""

from featurewatch.cli.command_line import command
from featurewatch.cli.config import options
from featurewatch.cli.config.options import (
    AsJson,
    BusServers,
    ClusterIdOption,
    CommandConfig,
    ConfigFile,
    Controllers,
    ControllersConfig,
    LogDirectory,
    MaxSnapshotBytes,
    MaxZookeeperFrameBytes,
    Operations,
    PolledControllers,
    Prefix,
    Servers,
    Zookeeper,
    ZookeeperConfig,
)
from featurewatch.cli.output.terminal import print_error


@command()
def up(
    config: ConfigFile = None,
    bus: BusServers = "",
    prefix: Prefix = "",
    controllers: Controllers = "",
    servers: Servers = "",
    polled_controllers: PolledControllers = "",
    log_directory: LogDirectory = None,
    zookeeper: Zookeeper = "",
    cluster_id: ClusterIdOption = "",
    command_config: CommandConfig = None,
    controllers_config: ControllersConfig = None,
    zookeeper_config: ZookeeperConfig = None,
    max_snapshot_bytes: MaxSnapshotBytes = None,
    max_zookeeper_frame_bytes: MaxZookeeperFrameBytes = None,
    operations: Operations = False,
    as_json: AsJson = False,
) -> None:
    """Run everything here: the sources, a worker, the page, and a bus of its own if none is named.

    Prints the alerts that fire, then changes and alerts as they come.
    """
    # Here, so that help needs no settings and no engines.
    from featurewatch.cli.config.settings import load
    from featurewatch.cli.runtime.embedded_bus import run_embedded_bus
    from featurewatch.cli.runtime.services import run_everything, run_until_signal
    from featurewatch.cli.runtime.sources import SourceRunner

    clusters = options.cluster_flags(
        controllers=controllers,
        servers=servers,
        polled_controllers=polled_controllers,
        log_directory=log_directory,
        zookeeper=zookeeper,
        cluster_id=cluster_id,
        command_config=command_config,
        controllers_config=controllers_config,
        zookeeper_config=zookeeper_config,
        max_snapshot_bytes=max_snapshot_bytes,
        max_zookeeper_frame_bytes=max_zookeeper_frame_bytes,
    )
    settings = load(config, bus=options.bus_flags(bus, prefix), clusters=clusters)
    if operations:
        settings = settings.with_operations()
    watch = SourceRunner(settings)
    with run_embedded_bus(settings):
        print_error(
            f"the bus is {settings.bus.bootstrap_servers}; "
            "`featurewatch state --follow` shows the clusters, Ctrl-C ends"
        )
        run_until_signal(run_everything(watch, settings, as_json=as_json))
