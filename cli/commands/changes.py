"""``featurewatch changes``: every change of a finalized level."""

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
from featurewatch.streams.codec.outputs import decode_change
from featurewatch.streams.topics import FEATURE_CHANGES


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(changes)


def changes(
    config: ConfigFile = None,
    bus: BusServers = "",
    prefix: Prefix = "",
    cluster: OnlyCluster = "",
    follow: Follow = False,
    as_json: AsJson = False,
) -> None:
    """Show every change of a finalized level, oldest first."""
    settings = load(config, bus=options.bus_flags(bus, prefix)).bus_settings()
    listing.print_topic(
        settings,
        FEATURE_CHANGES,
        decode_change,
        showing.change_line,
        lambda change: (change.append_ms, change.revision),
        cluster=cluster,
        follow=follow,
        as_json=as_json,
    )
