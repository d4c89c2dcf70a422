"""Prints the state of clusters: once, as JSON, as lines, or as a live table on a terminal."""

import contextlib
import time
from dataclasses import fields

from rich.console import Group
from rich.live import Live
from rich.text import Text

from featurewatch.cli.output import rendering
from featurewatch.cli.output.cluster_states import ClusterStates, staleness
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.outputs import Snapshot

_REFRESH_S = 0.25


def print_state(bus: BusSettings, cluster: str, *, follow: bool, as_json: bool) -> bool:
    """Prints all clusters, or one by its id; returns whether any was known."""
    with contextlib.closing(ClusterStates(bus, cluster)) as states:
        if as_json:
            _json(states, follow=follow)
        elif not follow:
            rendering.console().print(_view(states))
        elif rendering.console().is_terminal:
            _live(states)
        else:
            _lines(states)
        return bool(states.snapshots)


def _json(states: ClusterStates, *, follow: bool) -> None:
    for _, snapshot in sorted(states.snapshots.items()):
        _print_json(snapshot)
    while follow:
        for output in states.poll(1.0):
            if isinstance(output, Snapshot):
                _print_json(output)


def _print_json(snapshot: Snapshot) -> None:
    values = {field.name: getattr(snapshot, field.name) for field in fields(snapshot)}
    rendering.print_json({**values, "learned": rendering.learned(snapshot)})


def _live(states: ClusterStates) -> None:
    with Live(_view(states), console=rendering.console(), auto_refresh=False) as live:
        while True:
            for _ in states.poll(_REFRESH_S):
                pass
            live.update(_view(states), refresh=True)


def _lines(states: ClusterStates) -> None:
    """Without a terminal: prints the whole state after each change of what it shows."""
    console = rendering.console()
    console.print(_view(states))
    shown = _content(states)
    while True:
        for _ in states.poll(1.0):
            if _content(states) != shown:
                shown = _content(states)
                console.print(_view(states))


def _content(states: ClusterStates) -> object:
    snapshots = [
        (
            *(snapshot.digest, snapshot.name, snapshot.ready, snapshot.leader_id),
            tuple(snapshot.sources.items()),
        )
        for _, snapshot in sorted(states.snapshots.items())
    ]
    return snapshots, sorted(alert.id for alert in states.firing())


def _view(states: ClusterStates) -> Group:
    parts = []
    now_ms = int(time.time() * 1000)
    for name, snapshot in sorted(states.snapshots.items()):
        parts.extend(
            rendering.state_view(snapshot, states.firing(name), staleness(snapshot, now_ms))
        )
    if not parts:
        parts.extend(Text(reason) for reason in states.unknown_reasons(now_ms))
    if states.error:
        parts.append(Text(rendering.plain(states.error), style="bold yellow"))
    return Group(*parts)
