"""``featurewatch state``: each cluster now, nodes × features; with ``--follow`` a live table."""

import contextlib
import time

import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

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
from featurewatch.cli.output.cluster_states import ClusterStates, staleness
from featurewatch.streams.outputs import Snapshot

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
    with contextlib.closing(ClusterStates(settings, cluster)) as board:
        if as_json:
            _json(board, follow=follow)
        elif not follow:
            rendering.console().print(_view(board))
        elif rendering.console().is_terminal:
            _live(board)
        else:
            _lines(board)
        if not board.snapshots:
            raise typer.Exit(ExitCode.UNKNOWN)


def _json(board: ClusterStates, *, follow: bool) -> None:
    for _, snapshot in sorted(board.snapshots.items()):
        rendering.print_json(snapshot)
    while follow:
        for output in board.poll(1.0):
            if isinstance(output, Snapshot):
                rendering.print_json(output)


def _live(board: ClusterStates) -> None:
    with Live(_view(board), console=rendering.console(), auto_refresh=False) as live:
        while True:
            for _ in board.poll(_REFRESH_S):
                pass
            live.update(_view(board), refresh=True)


def _lines(board: ClusterStates) -> None:
    """Where there is no terminal: the whole state after each change of what it shows."""
    console = rendering.console()
    console.print(_view(board))
    shown = _content(board)
    while True:
        for _ in board.poll(1.0):
            if _content(board) != shown:
                shown = _content(board)
                console.print(_view(board))


def _content(board: ClusterStates) -> object:
    snapshots = [
        (each.digest, each.ready, each.leader_id, tuple(each.sources.items()))
        for _, each in sorted(board.snapshots.items())
    ]
    return snapshots, sorted(alert.id for alert in board.firing())


def _view(board: ClusterStates) -> Group:
    parts = []
    now_ms = int(time.time() * 1000)
    for name, snapshot in sorted(board.snapshots.items()):
        parts.extend(
            rendering.state_view(snapshot, board.firing(name), staleness(snapshot, now_ms))
        )
    if not parts:
        parts.extend(Text(reason) for reason in board.unknown_reasons(now_ms))
    if board.error:
        parts.append(Text(rendering.plain(board.error), style="bold yellow"))
    return Group(*parts)
