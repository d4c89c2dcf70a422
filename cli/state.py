"""``featurewatch state``: each cluster now, nodes × features; with ``--follow`` a live table."""

import contextlib

import typer
from rich.console import Group
from rich.live import Live

from cli import options, showing
from cli.errors import Exit
from cli.listing import decoded
from cli.options import AsJson, BusServers, ConfigFile, Follow, OnlyCluster, Prefix
from cli.reading import TopicReader
from cli.settings import load
from streams.output_codec import decode_alert, decode_snapshot
from streams.outputs import Alert, AlertState, Snapshot
from streams.topics import ALERTS, STATE

_REFRESH_S = 0.25


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(state)


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
    settings = load(config, bus=options.bus_flags(bus, prefix)).bus_settings()
    snapshots: dict[str, Snapshot] = {}
    alerts: dict[str, Alert] = {}
    with (
        contextlib.closing(TopicReader(settings, STATE)) as states,
        contextlib.closing(TopicReader(settings, ALERTS)) as alert_reader,
    ):
        for snapshot in decoded(states.present(), decode_snapshot):
            if cluster in ("", snapshot.cluster):
                snapshots[snapshot.cluster] = snapshot
        alerts.update((each.id, each) for each in decoded(alert_reader.present(), decode_alert))
        if as_json:
            for snapshot in snapshots.values():
                showing.print_json(snapshot)
        elif not follow:
            showing.console().print(_view(snapshots, alerts))
        while follow and as_json:
            for snapshot in decoded(states.coming(1.0), decode_snapshot):
                if cluster in ("", snapshot.cluster):
                    showing.print_json(snapshot)
        if follow:
            _live(states, alert_reader, snapshots, alerts, cluster)
    if not snapshots:
        raise typer.Exit(Exit.UNKNOWN)


def _live(
    states: TopicReader,
    alert_reader: TopicReader,
    snapshots: dict[str, Snapshot],
    alerts: dict[str, Alert],
    cluster: str,
) -> None:
    with Live(_view(snapshots, alerts), console=showing.console(), auto_refresh=False) as live:
        while True:
            for snapshot in decoded(states.coming(_REFRESH_S), decode_snapshot):
                if cluster in ("", snapshot.cluster):
                    snapshots[snapshot.cluster] = snapshot
            for alert in decoded(alert_reader.coming(0.01), decode_alert):
                alerts[alert.id] = alert
            live.update(_view(snapshots, alerts), refresh=True)


def _view(snapshots: dict[str, Snapshot], alerts: dict[str, Alert]) -> Group:
    if not snapshots:
        return Group("nothing is known of any cluster yet")
    parts = []
    for name, snapshot in sorted(snapshots.items()):
        firing = [
            alert
            for alert in alerts.values()
            if alert.cluster == name and alert.state is AlertState.FIRING
        ]
        parts.extend(showing.state_view(snapshot, firing))
    return Group(*parts)
