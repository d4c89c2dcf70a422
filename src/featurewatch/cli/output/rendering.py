"""Renders results: tables and colour for people at a terminal, JSON for programs."""

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from featurewatch.cli.output import terminal
from featurewatch.common.id_runs import format_ids
from featurewatch.common.text import plain as plain
from featurewatch.controller.levels import finalized_name
from featurewatch.kafka.releases import learned_notes
from featurewatch.streams.outputs import (
    Alert,
    AlertState,
    CapabilityClass,
    FeatureChange,
    Migration,
    Operation,
    Severity,
    Snapshot,
)
from featurewatch.streams.types import NodeId, Role

MAX_COLUMNS = 6
"""The number of classes of nodes that are shown side by side."""

MAX_ALERTS = 20

_MIGRATED = "post-migration"
"""From then on the znodes, including that of the controller, are leftovers."""

STYLES = {
    Severity.CRITICAL: "bold red",
    Severity.WARNING: "yellow",
}


def console() -> Console:
    """The standard output; wide unless it is a terminal, so that lines are not broken."""
    return terminal.console()


def print_json(value: Any) -> None:
    """One JSON document on one line."""
    terminal.print_json_text(json_line(value))


def json_line(value: Any) -> str:
    """A JSON document as one line."""
    return orjson.dumps(value, default=list).decode()


def clock(time_ms: int) -> str:
    """A time in UTC, to the millisecond; a dash where it is not known."""
    if time_ms < 0:
        return "-"
    moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{time_ms % 1000:03d}"


def called(cluster: str, name: str) -> str:
    """A cluster for people: its name, if it has one, and its id."""
    return plain(f"{name} ({cluster})" if name else cluster)


def change_line(change: FeatureChange) -> Text:
    """A feature change on one line."""
    before = finalized_name(change.feature, change.finalized_before)
    after = finalized_name(change.feature, change.finalized_after)
    when = clock(change.append_ms if change.append_ms >= 0 else change.seen_ms)
    line = Text(f"{when}  {plain(change.cluster)}  ")
    line.append(plain(change.feature), style="bold")
    line.append(f" {change.kind}: {before} → {after}", style="green")
    line.append(f"  (epoch {change.epoch}, revision {change.revision}")
    line.append(", found in a snapshot)" if change.from_snapshot else ")")
    return line


def operation_line(step: Operation) -> Text:
    """A step of an operation on one line."""
    when = clock(step.append_ms if step.append_ms >= 0 else step.seen_ms)
    line = Text(f"{when}  {plain(step.cluster)}  ")
    line.append(f"{step.kind} {step.phase}", style="bold")
    line.append(f": {plain(step.summary)}")
    line.append(f"  (offset {step.offset})", style="dim")
    return line


def alert_line(alert: Alert) -> Text:
    """An alert on one line."""
    line = Text(f"{clock(alert.at_ms)}  {called(alert.cluster, alert.name)}  ")
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
        f"{plain(name)} {finalized_name(name, level)}" for name, level in snapshot.finalized.items()
    )
    nodes = sum(len(node_class.nodes) for node_class in snapshot.classes)
    line = Text(f"{clock(snapshot.at_ms)}  {called(snapshot.cluster, snapshot.name)}  ")
    line.append(f"revision {snapshot.revision}", style="bold")
    line.append(f", epoch {snapshot.epoch}: {levels or 'nothing finalized'}; {nodes} nodes in ")
    line.append(f"{len(snapshot.classes)} classes, {len(snapshot.incompatible)} incompatible; ")
    line.append(f"digest {snapshot.digest[:12]}")
    return line


def state_view(
    snapshot: Snapshot, alerts: Iterable[Alert], doubt: str | None = None
) -> list[Table | Text]:
    """A cluster on one screen: features × classes of nodes, its status, what is wrong.

    ``doubt``: why the state may be out of date; then nothing is shown as healthy.
    """
    head = Text(called(snapshot.cluster, snapshot.name), style="bold")
    leader = "" if snapshot.leader_id < 0 else f", leader {snapshot.leader_id}"
    if snapshot.controller.node_id >= 0 and snapshot.migration.state != _MIGRATED:
        leader += f", ZooKeeper's controller {snapshot.controller.node_id}"
    head.append(f"  epoch {snapshot.epoch}, revision {snapshot.revision}{leader}", style="not bold")
    sources = ", ".join(f"{name} {state}" for name, state in snapshot.sources.items())
    head.append(f"  {sources}", style="green" if snapshot.ready and not doubt else "yellow")
    firing = sorted(alerts, key=lambda alert: (alert.severity, alert.id))
    parts: list[Table | Text] = [head, *_migration(snapshot.migration), *_matrix(snapshot)]
    for alert in firing[:MAX_ALERTS]:
        line = Text("  ")
        line.append(str(alert.severity), style=STYLES[alert.severity])
        line.append(f"  {plain(alert.summary)}")
        parts.append(line)
    if len(firing) > MAX_ALERTS:
        hidden_count = len(firing) - MAX_ALERTS
        parts.append(
            Text(f"  and {hidden_count:,} more alerts: featurewatch alerts", style="bold red")
        )
    parts += [Text(f"  {plain(note)}", style="dim") for note in learned(snapshot)]
    if doubt:
        parts.append(Text(f"  {plain(doubt)}", style="bold yellow"))
    elif not firing:
        parts.append(Text("  no alert fires", style="green"))
    return parts


def learned(snapshot: Snapshot) -> tuple[str, ...]:
    """The origins of the learned tables that the state depends on, as this process knows them."""
    if not learned_notes():
        return ()
    # Here, since few have learned tables.
    from featurewatch.monitor.snapshot import notes_of_snapshot

    return notes_of_snapshot(snapshot)


def _migration(migration: Migration) -> list[Text]:
    if not migration.in_progress:
        return []
    line = Text("  migration to KRaft: ", style="yellow")
    count = migration.brokers_in_zookeeper
    line.append(f"{migration.state}; {count} broker{'' if count == 1 else 's'} in ZooKeeper")
    if migration.missing:
        line.append(f", not registered with the KRaft controllers: {format_ids(migration.missing)}")
    return [line]


def _matrix(snapshot: Snapshot) -> list[Table | Text]:
    table = Table(box=None, padding=(0, 2), header_style="dim")
    table.add_column("feature")
    table.add_column("finalized")
    bad = {(item.role, item.node_id, item.feature) for item in snapshot.incompatible}
    columns = _columns(snapshot.classes, {(role, node) for role, node, _ in bad})
    shown = columns[:MAX_COLUMNS]
    for title, _ in shown:
        table.add_column(title)
    features = {name for node_class in snapshot.classes for name in node_class.ranges}
    for name in sorted(features | set(snapshot.finalized)):
        level = finalized_name(name, snapshot.finalized.get(name))
        cells = [
            _cell(node_class.ranges.get(name), (node_class.role, node_class.nodes[0], name) in bad)
            for _, node_class in shown
        ]
        # Text, since a plain string could hold marks that the table would obey.
        table.add_row(Text(plain(name)), level, *cells)
    hidden = columns[MAX_COLUMNS:]
    if not hidden:
        return [table]
    nodes = sum(len(node_class.nodes) for _, node_class in hidden)
    return [table, Text(f"  and {len(hidden):,} more classes with {nodes:,} nodes", style="yellow")]


def _columns(
    classes: Iterable[CapabilityClass], bad: Collection[tuple[Role, NodeId]]
) -> list[tuple[str, CapabilityClass]]:
    """One column a class; combined nodes, alike in both roles, share one.

    Where not all can be shown, those with incompatible nodes and then the large ones come first.
    """
    columns: dict[tuple[Any, ...], tuple[list[str], CapabilityClass]] = {}
    for node_class in classes:
        key = (node_class.nodes, tuple(sorted(node_class.ranges.items())), node_class.complete)
        roles, _ = columns.setdefault(key, ([], node_class))
        roles.append(f"{node_class.role}s{_notes(node_class.fenced, node_class.silent)}")
    titled = [
        (f"{' and '.join(roles)} {format_ids(node_class.nodes)}", node_class)
        for roles, node_class in columns.values()
    ]
    if len(titled) > MAX_COLUMNS:
        titled.sort(key=lambda item: (not _has(bad, item[1]), -len(item[1].nodes)))
    return titled


def _has(bad: Collection[tuple[Role, NodeId]], node_class: CapabilityClass) -> bool:
    return any((node_class.role, node) in bad for node in node_class.nodes)


def _cell(bounds: Sequence[int] | None, is_bad: bool) -> Text:
    text = "-" if bounds is None else f"{bounds[0]}-{bounds[1]}"
    return Text(f"{text} ✗" if is_bad else text, style="bold red" if is_bad else "")


def _notes(fenced: Sequence[NodeId], silent: Sequence[NodeId]) -> str:
    groups = ((fenced, "fenced"), (silent, "silent"))
    notes = [f"{format_ids(group)} {note}" for group, note in groups if group]
    return f" ({', '.join(notes)})" if notes else ""
