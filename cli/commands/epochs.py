"""``featurewatch epochs``: the state of a cluster at each of its feature revisions."""

import typer

from featurewatch.cli.config import options
from featurewatch.cli.config.options import (
    AsJson,
    BusServers,
    ConfigFile,
    Follow,
    OnlyCluster,
    Prefix,
)
from featurewatch.cli.config.settings import load
from featurewatch.cli.output import rendering as showing
from featurewatch.cli.output import topic_printer as listing
from featurewatch.streams.codec.outputs import decode_snapshot
from featurewatch.streams.topics import EPOCHS


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(epochs)


def epochs(
    config: ConfigFile = None,
    bus: BusServers = "",
    prefix: Prefix = "",
    cluster: OnlyCluster = "",
    follow: Follow = False,
    as_json: AsJson = False,
) -> None:
    """Show the state at each feature revision, oldest first."""
    settings = load(config, bus=options.bus_flags(bus, prefix)).bus_settings()
    listing.print_topic(
        settings,
        EPOCHS,
        decode_snapshot,
        showing.snapshot_line,
        lambda snapshot: (snapshot.at_ms, snapshot.revision),
        cluster=cluster,
        follow=follow,
        as_json=as_json,
    )
