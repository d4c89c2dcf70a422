"""``featurewatch resync``: requests that the sources of a cluster republish its state."""

from typing import Annotated

from featurewatch.cli.command_line import Option, command
from featurewatch.cli.config.options import BusServers, ConfigFile, Prefix
from featurewatch.cli.output.terminal import print_error


@command()
def resync(
    cluster: Annotated[str, Option("--cluster", metavar="ID", help="The cluster's id or name.")],
    source: Annotated[
        str,
        Option(
            "--source",
            metavar="NAME",
            help="kraft, zookeeper or api-versions, as `state` shows it (default: all).",
        ),
    ] = "",
    config: ConfigFile = None,
    bus: BusServers = "",
    prefix: Prefix = "",
) -> None:
    """Request that the sources of a cluster republish its whole state.

    The worker requests this automatically when messages were lost. A running `watch` or `up` that
    follows the cluster begins within a second or two, and at most once in 10 s.
    """
    # Here, so that help needs no settings and no engines.
    from featurewatch.cli.config.bus import load_bus
    from featurewatch.cli.output.cluster_lookup import find_cluster
    from featurewatch.cli.runtime.resync import publish_request

    settings = load_bus(config, bus, prefix)
    cluster = find_cluster(settings, cluster)
    publish_request(settings, cluster, source, "a person has requested it")
    print_error(f"requested: {source or 'every source'} of {cluster} republishes its state")
