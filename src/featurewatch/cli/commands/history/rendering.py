"""Renders the history for people."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from rich.table import Table
from rich.text import Text

from featurewatch.cli.output.rendering import MAX_ALERTS, MAX_COLUMNS, STYLES, plain
from featurewatch.common.id_runs import format_ids
from featurewatch.controller.levels import finalized_name
from featurewatch.pipeline.history.differences import Diff, NodesDiff
from featurewatch.pipeline.history.moments import format_time
from featurewatch.pipeline.history.point_in_time import HistoricalState, NodeClass
from featurewatch.pipeline.lake.reader import Row
from featurewatch.streams.outputs import Severity


def state_parts(state: HistoricalState) -> Iterator[Table | Text]:
    """A cluster at a moment, on one screen."""
    head = Text(plain(state.cluster), style="bold")
    head.append(f"  at {format_time(state.at)} UTC", style="not bold")
    if not state.moment[:1].isdigit():
        head.append(f" ({state.moment})", style="not bold")
    since = f" since {format_time(state.since)}" if state.since else ""
    head.append(f"  revision {state.revision}{since}", style="not bold")
    for name, value in (("epoch", state.epoch), ("leader", state.leader_id)):
        head.append("" if value is None else f", {name} {value}", style="not bold")
    yield head
    yield from _matrix(state)
    for row in state.incompatible[:MAX_ALERTS]:
        since = f"  (since {format_time(row['since'])})"
        yield Text(f"  incompatible: {plain(row['reason'])}{since}", style="bold red")
    yield from _more(len(state.incompatible), "incompatible nodes")
    for row in state.alerts[:MAX_ALERTS]:
        yield _alert("  ", row)
    yield from _more(len(state.alerts), "alerts")
    if not state.alerts and not state.uncertainty:
        yield Text("  no alert fired", style="green")
    if state.digest:
        place = ", ".join(f"{name} {value}" for name, value in state.provenance.items())
        yield Text(f"  revision {state.revision} by {plain(place)}; digest {state.digest}", "dim")
    if state.uncertainty:
        yield Text(f"  {state.uncertainty}", style="bold yellow")


def _more(count: int, what: str) -> Iterator[Text]:
    if count > MAX_ALERTS:
        yield Text(f"  and {count - MAX_ALERTS:,} more {what}: --json", style="bold red")


def _alert(indent: str, row: Row) -> Text:
    line = Text(indent)
    line.append(str(row["severity"]), style=STYLES.get(Severity(row["severity"]), ""))
    line.append(f"  {plain(row['summary'])}  (since {format_time(row['since'])})")
    return line


def _matrix(state: HistoricalState) -> Iterator[Table | Text]:
    bad = {(row["role"], row["node_id"], row["feature"]) for row in state.incompatible}
    columns = _columns(state.classes, {(role, node_id) for role, node_id, _ in bad})
    shown_ones = columns[:MAX_COLUMNS]
    names = sorted(
        {*state.levels, *(name for node_class in state.classes for name in node_class.ranges)}
    )
    table = Table(box=None, padding=(0, 2), header_style="dim")
    table.add_column("feature", min_width=max(map(len, names), default=0))
    for title in ("finalized", *(title for title, _ in shown_ones)):
        table.add_column(Text(title))
    for name in names:
        cells = [
            _cell(node_class.ranges.get(name), (node_class.role, node_class.nodes[0], name) in bad)
            for _, node_class in shown_ones
        ]
        table.add_row(Text(plain(name)), finalized_name(name, state.levels.get(name)), *cells)
    yield table
    if hidden := columns[MAX_COLUMNS:]:
        nodes = sum(len(node_class.nodes) for _, node_class in hidden)
        yield Text(f"  and {len(hidden):,} more classes with {nodes:,} nodes: --json", "yellow")


def _columns(
    classes: Iterable[NodeClass], bad: Collection[tuple[str, int]]
) -> list[tuple[str, NodeClass]]:
    """A title and the class: combined nodes, alike in both roles, share a column.

    Those with incompatible nodes come first, since not all may be shown, and then the large ones.
    """

    def order(item: tuple[list[str], NodeClass]) -> tuple[bool, int]:
        _, node_class = item
        return not any((node_class.role, node_id) in bad for node_id in node_class.nodes), -len(
            node_class.nodes
        )

    columns: dict[Any, tuple[list[str], NodeClass]] = {}
    for each in classes:
        key = (each.nodes, each.release, each.complete, str(sorted(each.ranges.items())))
        columns.setdefault(key, ([], each))[0].append(f"{each.role}s")
    return [
        (f"{' and '.join(roles)} {format_ids(each.nodes)} ({_software(each.release)})", each)
        for roles, each in sorted(columns.values(), key=order)
    ]


def _software(release: str | None) -> str:
    return plain(release) if release else "release unknown"


def _cell(bounds: Sequence[int] | None, is_bad: bool) -> Text:
    text = "-" if bounds is None else f"{bounds[0]}-{bounds[1]}"
    return Text(f"{text} ✗" if is_bad else text, style="bold red" if is_bad else "")


def diff_lines(diff: Diff) -> Iterator[Text]:
    """Yields one line for each difference."""
    ends = [f"{end['moment']} (revision {end['revision']})" for end in (diff.before, diff.after)]
    head = Text(plain(diff.cluster), style="bold")
    head.append(f"  {ends[0]} → {ends[1]}", style="not bold")
    yield head
    for change in diff.levels:
        line = Text("  level   ")
        line.append(plain(change.feature), style="bold")
        before = finalized_name(change.feature, change.before)
        after = finalized_name(change.feature, change.after)
        yield line.append(f" {before} → {after}", style="green")
    for nodes in diff.nodes:
        yield Text(f"  nodes   {nodes.role} {format_ids(nodes.nodes)}: {_change(nodes)}")
    groups = ((diff.incompatible_began, "incompatible"), (diff.incompatible_ended, "compatible"))
    for rows, verb in groups:
        for row in rows[:MAX_ALERTS]:
            text = f"{row['role']} {row['node_id']}, {row['feature']} {row['level']}"
            yield Text(f"  {verb}: {plain(text)}")
        yield from _more(len(rows), f"{verb} nodes")
    for rows, sign in ((diff.alerts_began, "+"), (diff.alerts_ended, "-")):
        for row in rows[:MAX_ALERTS]:
            yield _alert(f"  alert {sign} ", row)
        yield from _more(len(rows), "alerts")
    if diff.empty:
        yield Text("  nothing differs", style="green")
    for end in (diff.before, diff.after):
        if end["uncertainty"]:
            yield Text(f"  {end['uncertainty']}", style="bold yellow")


def _change(nodes: NodesDiff) -> str:
    if nodes.before is None:
        return f"joined with {_described(nodes.after)}"
    if nodes.after is None:
        return f"left, had {_described(nodes.before)}"
    return f"{_described(nodes.before)} → {_described(nodes.after)}"


def _described(software: Mapping[str, Any] | None) -> str:
    """The release, or else the ranges."""
    software = software or {}
    if software.get("release"):
        return plain(software["release"])
    ranges = ", ".join(f"{name} {low}-{high}" for name, (low, high) in software["ranges"].items())
    return plain(ranges) or "no features"


def roll_lines(roll: Row, *, nodes: bool) -> Iterator[Text]:
    """A roll: what, when, how long, which levels, the downgrade path, and its nodes."""
    line = Text(f"{format_time(roll['started'])}  {plain(roll['cluster'])}  ")
    line.append(f"{roll['direction']} ", style="bold")
    releases = (", ".join(roll[name] or ["?"]) for name in ("from_releases", "to_releases"))
    line.append(plain(" → ".join(releases)))
    line.append(f"  {roll['state']}", style=_ROLL_STYLES.get(roll["state"], ""))
    count = len({(node["role"], node["node_id"]) for node in roll["nodes"] or ()})
    line.append(f"  {count} nodes")
    if roll["duration_s"] is not None:
        line.append(f"  in {timedelta(seconds=roll['duration_s'])}")
    yield line
    for name in ("rolled", "finalized"):
        if roll[name]:
            yield Text(f"    {name:<10}{format_time(roll[name])}")
    for name, (before, after) in sorted((roll["levels"] or {}).items()):
        old, new = finalized_name(name, before or None), finalized_name(name, after or None)
        yield Text(f"    level     {plain(name)} {old} → {new}")
    if way := roll["rollback_path"]:
        yield Text(f"    way back  {_way_back(way)}", style="" if way["lossless"] else "yellow")
    if nodes:
        for node in sorted(roll["nodes"] or (), key=_when):
            text = f"{node['role']} {node['node_id']} on {_software(node['release'])}"
            yield Text(f"    {format_time(node['at'])}  {text}")


_ROLL_STYLES = {"finalized": "green", "rolling": "yellow", "abandoned": "red"}


def _when(node: Mapping[str, Any]) -> datetime:
    at: datetime = node["at"]
    return at


def _way_back(way: Mapping[str, Any]) -> str:
    to = f" to {plain(way['to'])}" if way["to"] else ""
    reason = f": {plain(way['reason'])}" if way["reason"] else ""
    return f"{'without loss' if way['lossless'] else 'not without loss'}{to}{reason}"
