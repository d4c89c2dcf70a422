"""``featurewatch watch``: the sources."""

from featurewatch.cli.command_line import command
from featurewatch.cli.config import options
from featurewatch.cli.config.options import (
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


@command()
def watch(
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
) -> None:
    """Follow clusters and publish what happens to them; reads only."""
    # Here, so that help needs no settings and no engines.
    from featurewatch.cli.config.settings import load
    from featurewatch.cli.runtime.services import run_until_signal, run_watch
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
    run_until_signal(run_watch(SourceRunner(settings)))
