"""``featurewatch epochs``: the state of a cluster at each of its feature revisions."""

from featurewatch.cli.command_line import command
from featurewatch.cli.config.options import (
    AsJson,
    BusServers,
    ConfigFile,
    Follow,
    OnlyCluster,
    Prefix,
)


@command()
def epochs(
    config: ConfigFile = None,
    bus: BusServers = "",
    prefix: Prefix = "",
    cluster: OnlyCluster = "",
    follow: Follow = False,
    as_json: AsJson = False,
) -> None:
    """Show the state at each feature revision, oldest first."""
    # Here, so that help needs no settings and no engines.
    from featurewatch.cli.config.bus import load_bus
    from featurewatch.cli.output import rendering, topic_printer
    from featurewatch.cli.output.cluster_lookup import find_cluster
    from featurewatch.streams.codec.outputs import decode_snapshot
    from featurewatch.streams.topics import EPOCHS

    settings = load_bus(config, bus, prefix)
    topic_printer.print_topic(
        settings,
        EPOCHS,
        decode_snapshot,
        rendering.snapshot_line,
        lambda snapshot: (snapshot.at_ms, snapshot.revision),
        cluster=find_cluster(settings, cluster),
        follow=follow,
        as_json=as_json,
    )
