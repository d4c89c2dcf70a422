"""How things are shown: tables and colour for people on a terminal, JSON for programs."""

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from controller.levels import level_name
from streams.outputs import Alert, AlertState, CapabilityClass, FeatureChange, Severity, Snapshot
from streams.types import FeatureLevel, NodeId

STYLES = {
    Severity.CRITICAL: "bold red",
    Severity.WARNING: "yellow",
}


def console() -> Console:
    """The standard output; wide where it is no terminal, so that lines are not broken."""
    return Console(width=None if sys.stdout.isatty() else 160, highlight=False)


def print_json(value: Any) -> None:
    """One JSON document on one line."""
    sys.stdout.write(orjson.dumps(value).decode() + "\n")
    sys.stdout.flush()


def plain(text: object) -> str:
    """Text from a cluster without what a terminal would obey."""
    return "".join(
        sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in str(text)
    )


def clock(time_ms: int) -> str:
    """A time in UTC, to the millisecond; a dash where it is not known."""
    if time_ms < 0:
        return "-"
    moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{time_ms % 1000:03d}"


def change_line(change: FeatureChange) -> Text:
    """A feature change on one line."""
    before = level_name(change.feature, change.before)
    after = level_name(change.feature, change.after)
    when = clock(change.append_ms if change.append_ms >= 0 else change.seen_ms)
    line = Text(f"{when}  {plain(change.cluster)}  ")
    line.append(plain(change.feature), style="bold")
    line.append(f" {change.kind}: {before} → {after}", style="green")
    line.append(f"  (epoch {change.epoch}, revision {change.revision}")
    line.append(", found in a snapshot)" if change.from_snapshot else ")")
    return line


def alert_line(alert: Alert) -> Text:
    """An alert on one line."""
    line = Text(f"{clock(alert.at_ms)}  {plain(alert.cluster)}  ")
    if alert.state is AlertState.RESOLVED:
        line.append("resolved", style="green")
    else:
        line.append(str(alert.severity), style=STYLES[alert.severity])
    line.append(f"  {alert.rule}: ", style="bold")
    line.append(plain(alert.summary))
    return line


def snapshot_line(snapshot: Snapshot) -> Text:
    """A snapshot on one line."""
    levels = ", ".join(
        f"{plain(name)} {level_name(name, level)}" for name, level in snapshot.finalized.items()
    )
    nodes = sum(len(each.nodes) for each in snapshot.classes)
    line = Text(f"{clock(snapshot.at_ms)}  {plain(snapshot.cluster)}  ")
    line.append(f"revision {snapshot.revision}", style="bold")
    line.append(f", epoch {snapshot.epoch}: {levels or 'nothing finalized'}; {nodes} nodes in ")
    line.append(f"{len(snapshot.classes)} classes, {len(snapshot.incompatible)} incompatible; ")
    line.append(f"digest {snapshot.digest[:12]}")
    return line


def state_view(snapshot: Snapshot, alerts: Iterable[Alert]) -> list[Table | Text]:
    """A cluster on one screen: features × classes of nodes, where it stands, what is wrong."""
    head = Text(plain(snapshot.cluster), style="bold")
    leader = "" if snapshot.leader_id < 0 else f", leader {snapshot.leader_id}"
    head.append(f"  epoch {snapshot.epoch}, revision {snapshot.revision}{leader}", style="not bold")
    sources = ", ".join(f"{name} {state}" for name, state in snapshot.sources.items())
    head.append(f"  {sources}", style="green" if snapshot.ready else "yellow")
    firing = sorted(alerts, key=lambda alert: (alert.severity, alert.id))
    parts: list[Table | Text] = [head, _matrix(snapshot)]
    for alert in firing:
        line = Text("  ")
        line.append(str(alert.severity), style=STYLES[alert.severity])
        line.append(f"  {plain(alert.summary)}")
        parts.append(line)
    if not firing:
        parts.append(Text("  no alert fires", style="green"))
    return parts


def _matrix(snapshot: Snapshot) -> Table:
    table = Table(box=None, padding=(0, 2), header_style="dim")
    table.add_column("feature")
    table.add_column("finalized")
    columns = _columns(snapshot.classes)
    for title, _ in columns:
        table.add_column(title)
    features = {name for each in snapshot.classes for name in each.ranges}
    bad = {(item.role, item.node_id, item.feature) for item in snapshot.incompatible}
    for name in sorted(features | set(snapshot.finalized)):
        level = snapshot.finalized.get(name, FeatureLevel(0))
        cells = [
            _cell(each.ranges.get(name), (each.role, each.nodes[0], name) in bad)
            for _, each in columns
        ]
        table.add_row(plain(name), level_name(name, level), *cells)
    return table


def _columns(classes: Iterable[CapabilityClass]) -> list[tuple[str, CapabilityClass]]:
    """One column a class; combined nodes, alike in both roles, share one."""
    columns: dict[tuple[Any, ...], tuple[list[str], CapabilityClass]] = {}
    for each in classes:
        key = (each.nodes, tuple(sorted(each.ranges.items())), each.complete)
        roles, _ = columns.setdefault(key, ([], each))
        roles.append(f"{each.role}s{_notes(each.fenced, each.silent)}")
    return [(f"{' and '.join(roles)} {ids(each.nodes)}", each) for roles, each in columns.values()]


def _cell(bounds: Sequence[int] | None, is_bad: bool) -> Text:
    text = "-" if bounds is None else f"{bounds[0]}-{bounds[1]}"
    return Text(f"{text} ✗" if is_bad else text, style="bold red" if is_bad else "")


def _notes(fenced: Sequence[NodeId], silent: Sequence[NodeId]) -> str:
    groups = ((fenced, "fenced"), (silent, "silent"))
    notes = [f"{ids(group)} {word}" for group, word in groups if group]
    return f" ({', '.join(notes)})" if notes else ""


def ids(nodes: Sequence[int]) -> str:
    """Ids with runs drawn together: ``1-3, 7``."""
    runs: list[list[int]] = []
    for node in sorted(nodes):
        if runs and node == runs[-1][1] + 1:
            runs[-1][1] = node
        else:
            runs.append([node, node])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
