"""``featurewatch state``: each cluster now, nodes × features; with ``--follow`` a live table."""

from featurewatch.cli.command_line import Exit, command
from featurewatch.cli.config.options import (
    AsJson,
    BusServers,
    ConfigFile,
    Follow,
    OnlyCluster,
    Prefix,
)
from featurewatch.cli.errors import ExitCode


@command()
def state(
    config: ConfigFile = None,
    bus: BusServers = "",
    prefix: Prefix = "",
    cluster: OnlyCluster = "",
    follow: Follow = False,
    as_json: AsJson = False,
) -> None:
    """Show each cluster: supported ranges by node, finalized levels, epoch, revision, alerts.

    Exits with 4 if nothing is known of any cluster.
    """
    # Here, so that help needs no settings and no engines.
    from featurewatch.cli.config.bus import load_bus
    from featurewatch.cli.output.cluster_lookup import find_cluster
    from featurewatch.cli.output.state_view import print_state

    settings = load_bus(config, bus, prefix)
    cluster = find_cluster(settings, cluster)
    if not print_state(settings, cluster, follow=follow, as_json=as_json):
        raise Exit(ExitCode.UNKNOWN)
