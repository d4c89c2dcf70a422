"""``featurewatch readiness``: can a cluster be upgraded, and is there a downgrade path."""

from typing import Annotated

from featurewatch.cli.command_line import Exit, Option, command
from featurewatch.cli.config import options
from featurewatch.cli.config.options import (
    ADDRESSES,
    AsJson,
    BootstrapController,
    BusServers,
    ClusterIdOption,
    CommandConfig,
    ConfigFile,
    ControllersConfig,
    LogDirectory,
    OnlyCluster,
    Prefix,
    Zookeeper,
    ZookeeperConfig,
)
from featurewatch.kafka.releases import newest_release


@command()
def readiness(
    target: Annotated[
        str,
        Option(
            "--target",
            "-t",
            metavar="RELEASE",
            help=f"Kafka release to assess with all its levels, as in {newest_release()}.",
            default="the newest release that some node runs",
        ),
    ] = "",
    feature: Annotated[
        list[str] | None,
        Option(
            "--feature",
            "-f",
            metavar="NAME=LEVEL",
            help="Level to assess instead of those of a release. Repeatable.",
        ),
    ] = None,
    cluster: OnlyCluster = "",
    as_json: AsJson = False,
    config: ConfigFile = None,
    bus: BusServers = "",
    prefix: Prefix = "",
    bootstrap_controller: BootstrapController = "",
    bootstrap_server: Annotated[
        str,
        Option(
            metavar=ADDRESSES, help="Brokers to read the nodes from; never enough on their own."
        ),
    ] = "",
    log_directory: LogDirectory = None,
    zookeeper: Zookeeper = "",
    cluster_id: ClusterIdOption = "",
    command_config: CommandConfig = None,
    controllers_config: ControllersConfig = None,
    zookeeper_config: ZookeeperConfig = None,
) -> None:
    """Assess whether a cluster can go to a release: all blockers, the downgrade path, the cost.

    It reads the worker's state, or with --bootstrap-controller, --log-directory or
    --bootstrap-server the cluster itself. Exits with 0 if the cluster is ready, with 3 if not, with
    4 if that is unknown.
    """
    # Here, so that help needs no settings and no engines.
    from featurewatch.cli.commands.readiness.assess import run

    sources = options.cluster_flags(
        controllers=bootstrap_controller,
        servers=bootstrap_server,
        log_directory=log_directory,
        zookeeper=zookeeper,
        command_config=command_config,
        controllers_config=controllers_config,
        zookeeper_config=zookeeper_config,
    )
    if sources and (cluster_id or cluster):
        sources[0]["cluster_id"] = cluster_id or cluster
    code = run(
        target,
        feature or [],
        cluster=cluster or cluster_id,
        as_json=as_json,
        config=config,
        bus=options.bus_flags(bus, prefix),
        sources=sources,
    )
    raise Exit(code)
