"""``featurewatch changes``: every change of a finalized level."""

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
def changes(
    config: ConfigFile = None,
    bus: BusServers = "",
    prefix: Prefix = "",
    cluster: OnlyCluster = "",
    follow: Follow = False,
    as_json: AsJson = False,
) -> None:
    """Show every change of a finalized level, oldest first."""
    # Here, so that help needs no settings and no engines.
    from featurewatch.cli.config.bus import load_bus
    from featurewatch.cli.output import rendering, topic_printer
    from featurewatch.cli.output.cluster_lookup import find_cluster
    from featurewatch.streams.codec.outputs import decode_change
    from featurewatch.streams.topics import FEATURE_CHANGES

    settings = load_bus(config, bus, prefix)
    topic_printer.print_topic(
        settings,
        FEATURE_CHANGES,
        decode_change,
        rendering.change_line,
        lambda change: (change.append_ms, change.revision),
        cluster=find_cluster(settings, cluster),
        follow=follow,
        as_json=as_json,
    )
