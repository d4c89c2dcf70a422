"""``featurewatch operations``: what the controllers of clusters did, and why."""

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
def operations(
    config: ConfigFile = None,
    bus: BusServers = "",
    prefix: Prefix = "",
    cluster: OnlyCluster = "",
    follow: Follow = False,
    as_json: AsJson = False,
) -> None:
    """Show what controllers did with topics and partitions, and why, oldest first.

    They are published while `watch` and `worker`, or `up`, run with --operations.
    """
    # Here, so that help needs no settings and no engines.
    from featurewatch.cli.config.bus import load_bus
    from featurewatch.cli.output import rendering, topic_printer
    from featurewatch.cli.output.cluster_lookup import find_cluster
    from featurewatch.streams.codec.outputs import decode_operation
    from featurewatch.streams.topics import OPERATIONS

    settings = load_bus(config, bus, prefix)
    topic_printer.print_topic(
        settings,
        OPERATIONS,
        decode_operation,
        rendering.operation_line,
        lambda step: (step.append_ms, step.cluster, step.offset),
        cluster=find_cluster(settings, cluster),
        follow=follow,
        as_json=as_json,
    )
