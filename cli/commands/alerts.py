"""``featurewatch alerts``: what fires, and with ``--follow`` what begins and ends."""

import contextlib
import sys
import time
from typing import Annotated

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
from featurewatch.cli.errors import ExitCode
from featurewatch.cli.output import rendering
from featurewatch.cli.output.cluster_states import ClusterStates
from featurewatch.streams.outputs import Alert


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
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Exit with 3 if any alert fires, with 4 if it cannot be known: a cluster (of the "
            "configuration, if one is given) was not heard of for a minute, or its source has not "
            "caught up.",
        ),
    ] = False,
) -> None:
    """Show the alerts that fire now."""
    settings = load(config, bus=options.bus_flags(bus, prefix))
    console = rendering.console()

    def show(alert: Alert) -> None:
        if as_json:
            rendering.print_json(alert)
        else:
            console.print(rendering.alert_line(alert), soft_wrap=True)

    with contextlib.closing(ClusterStates(settings.bus_settings(), cluster)) as board:
        firing = board.firing()
        shown = list(board.alerts.values()) if everything else firing
        for alert in sorted(shown, key=lambda alert: (alert.at_ms, alert.id)):
            show(alert)
        unknown = board.unknown_reasons(int(time.time() * 1000))
        unheard = len(settings.clusters) - len(board.snapshots)
        if not cluster and board.snapshots and unheard > 0:
            unknown.append(f"{unheard} of {len(settings.clusters)} clusters were never heard of")
        for reason in unknown:
            sys.stderr.write(f"featurewatch: {rendering.plain(reason)}\n")
        if not firing and not unknown and not as_json and not follow:
            console.print("no alert fires", style="green")
        while follow:
            for output in board.poll(1.0):
                if isinstance(output, Alert):
                    show(output)
    if check and firing:
        raise typer.Exit(ExitCode.NO)
    if check and unknown:
        raise typer.Exit(ExitCode.UNKNOWN)
