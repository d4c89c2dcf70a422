"""``featurewatch alerts``: what fires, and with ``--follow`` what begins and ends."""

import contextlib
from typing import Annotated

import typer

from cli import options, showing
from cli.errors import Exit
from cli.listing import decoded
from cli.options import AsJson, BusServers, ConfigFile, Follow, OnlyCluster, Prefix
from cli.reading import TopicReader
from cli.settings import load
from streams.output_codec import decode_alert
from streams.outputs import Alert, AlertState
from streams.topics import ALERTS


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(alerts)


def alerts(
    config: ConfigFile = None,
    bus: BusServers = "",
    prefix: Prefix = "",
    cluster: OnlyCluster = "",
    follow: Follow = False,
    as_json: AsJson = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Resolved ones too, as far as the topic still has them.")
    ] = False,
    check: Annotated[bool, typer.Option("--check", help="Exit with 3 if any alert fires.")] = False,
) -> None:
    """Show the alerts that fire now."""
    settings = load(config, bus=options.bus_flags(bus, prefix)).bus_settings()
    console = showing.console()

    def show(alert: Alert) -> None:
        if as_json:
            showing.print_json(alert)
        else:
            console.print(showing.alert_line(alert), soft_wrap=True)

    with contextlib.closing(TopicReader(settings, ALERTS)) as reader:
        newest: dict[str, Alert] = {}
        for alert in decoded(reader.present(), decode_alert):
            if cluster in ("", alert.cluster):
                newest[alert.id] = alert
        firing = [alert for alert in newest.values() if alert.state is AlertState.FIRING]
        shown = newest.values() if everything else firing
        for alert in sorted(shown, key=lambda alert: (alert.at_ms, alert.id)):
            show(alert)
        if not shown and not as_json and not follow:
            console.print("no alert fires", style="green")
        while follow:
            for alert in decoded(reader.coming(1.0), decode_alert):
                if cluster in ("", alert.cluster) and newest.get(alert.id) != alert:
                    newest[alert.id] = alert
                    show(alert)
    if check and firing:
        raise typer.Exit(Exit.NO)
