"""A verdict on one screen: the response, the blockers, the downgrade path, the consequences."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from featurewatch.cli.output.rendering import clock, plain
from featurewatch.common.id_runs import format_ids
from featurewatch.controller.compatibility import Verdict
from featurewatch.controller.levels import finalized_name, level_name
from featurewatch.monitor.readiness import (
    Advisory,
    Blocker,
    ControllerResponse,
    DowngradePath,
    FeatureReadiness,
    NodeCondition,
    ReadinessReport,
    format_releases,
)

_WORDS: Final = {
    Verdict.YES: ("READY", "bold green"),
    Verdict.NO: ("NOT READY", "bold red"),
    Verdict.UNKNOWN: ("UNKNOWN", "bold yellow"),
}
_MARKS: Final = {Verdict.YES: "✓", Verdict.NO: "✗", Verdict.UNKNOWN: "?"}
_STYLES: Final = {verdict: style for verdict, (_, style) in _WORDS.items()}
_GROUPS: Final = 8
"""The number of groups of similar nodes that are shown."""

_VIEWS: Final = 5
_TOPICS: Final = 5


def view(report: ReadinessReport) -> Group:
    """The whole report, for people."""
    parts: list[RenderableType] = [_headline(report), *_reasons(report), Text()]
    parts += _section("In the way", _blockers(report))
    ahead = [item for item in report.advisories if item.remains]
    parts += _section("Known faults on the way", _advisories(ahead))
    left = [item for item in report.advisories if not item.remains]
    parts += _section("Known faults that this leaves behind", _advisories(left, advised=False))
    parts += _section("Levels", [_levels(report.features)])
    if report.changes and report.downgrade_path is not None:
        parts += _section("The way back", _way_back(report.downgrade_path))
    parts += _section("What it changes", _consequences(report.features))
    parts += _section("min.insync.replicas with eligible leader replicas", _elr(report))
    parts += _section("Registered without a living node", _ghosts(report))
    parts += _section("Nodes that see it differently", _views(report))
    return Group(*parts)


def essence(report: ReadinessReport) -> list[RenderableType]:
    """The verdict, what is to be done about each node, and the downgrade path."""
    parts: list[RenderableType] = [_headline(report), *_section("In the way", _blockers(report))]
    if report.changes and report.downgrade_path is not None:
        parts += _section("The way back", _way_back(report.downgrade_path))
    return parts


def _headline(report: ReadinessReport) -> Text:
    verdict, style = _WORDS[report.verdict]
    line = Text(verdict, style=style)
    line.append(f" {_for(report)}", style="bold")
    line.append(f"  cluster {plain(report.cluster)}, {report.state}", style="not bold dim")
    if report.since_ms >= 0:
        line.append(f" for {_age(report.at_ms - report.since_ms)}", style="not bold dim")
    return line


def _for(report: ReadinessReport) -> str:
    if report.target is not None:
        return f"for Kafka {report.target}"
    targets = [
        f"{feature.feature} {feature.target}"
        for feature in report.features
        if feature.target is not None
    ]
    return f"for {', '.join(map(plain, targets))}" if targets else "for the newest release"


def _reasons(report: ReadinessReport) -> Iterator[RenderableType]:
    yield from (_indented(line, 2) for line in _answers(report))
    yield from (_indented(Text(plain(note), style="dim"), 2) for note in report.learned)


def _answers(report: ReadinessReport) -> Iterator[Text]:
    for text in report.reasons:
        line = plain(text)
        if (
            report.controller_response is not None
            and report.controller_response.refusals
            and line.endswith(plain(report.controller_response.refusals[0]))
        ):
            continue
        yield Text(line, style="yellow")
    if report.controller_response is not None and not report.controller_response.accepted:
        yield from _controller_response(report.controller_response)
    elif report.verdict is Verdict.YES and not report.changes:
        yield Text("All levels are up to date.", style="green")
    elif report.verdict is Verdict.YES and report.controller_response is not None:
        yield Text(
            f"{_controller_name(report.controller_response)} would accept it.", style="green"
        )
    elif report.verdict is Verdict.UNKNOWN and report.controller_response is not None:
        yield Text(
            f"{_controller_name(report.controller_response)} would accept it, by what is known."
        )


def _controller_response(response: ControllerResponse) -> Iterator[Text]:
    scope = (
        "the first obstacle only" if len(response.refusals) == 1 else "one obstacle of each feature"
    )
    yield Text(f"{_controller_name(response)} would refuse, and names {scope}:")
    for text in response.refusals:
        yield Text(plain(text), style="italic")


def _controller_name(response: ControllerResponse) -> str:
    controller = (
        f"Controller {response.controller}" if response.controller >= 0 else "The active controller"
    )
    sure = "" if response.exact else ", in words that may differ"
    runs = f"assumed to run {response.release}" if response.assumed else f"Kafka {response.release}"
    return f"{controller} ({runs}{sure})"


def _section(title: str, lines: Iterable[RenderableType]) -> list[RenderableType]:
    rows = list(lines)
    if not rows:
        return []
    return [Text(title, style="bold"), *(_indented(line, 2) for line in rows), Text()]


def _indented(line: RenderableType, columns: int) -> Padding:
    return Padding(line, (0, 0, 0, columns), expand=False)


def _blockers(report: ReadinessReport) -> Iterator[RenderableType]:
    groups: dict[tuple[object, ...], list[Blocker]] = {}
    for blocker in report.blockers:
        key = (blocker.role, blocker.software, blocker.condition, blocker.verdict, blocker.levels)
        groups.setdefault(key, []).append(blocker)
    # Few nodes of which something special is to be done come before many that are to be rolled.
    ordered = sorted(groups.values(), key=lambda group: (group[0].verdict, len(group)))
    for group in ordered[:_GROUPS]:
        yield from _group(group, report.at_ms)
    hidden = sum(len(group) for group in ordered[_GROUPS:])
    if hidden:
        yield Text(f"and {hidden:,} more nodes: --json names all of them", style="yellow")


def _group(group: Sequence[Blocker], now_ms: int) -> Iterator[RenderableType]:
    first, many = group[0], len(group) > 1
    line = Text(f"{_MARKS[first.verdict]} ", style=_STYLES[first.verdict])
    line.append(
        f"{first.role}{'s' if many else ''} {format_ids([blocker.node_id for blocker in group])}",
        "bold",
    )
    notes = [f"Kafka {first.software}" if first.software else "release not known"]
    if first.condition is not NodeCondition.RUNNING:
        notes.append(str(first.condition))
    line.append(f"  {', '.join(notes)}", style="not bold")
    line.append(f"  {_lacks(first)}", style="not bold")
    yield line
    when = _when(group, now_ms)
    if when:
        yield Text(f"    {when}", style="dim")
    remedy = first.remedy
    if many:
        remedy = re.sub(rf"(id ){first.node_id}\b", r"\1N", remedy).replace(
            "start it", "start them"
        )
    yield _indented(Text(f"→ {plain(remedy)}", style="cyan"), 4)


def _lacks(blocker: Blocker) -> str:
    """The levels that a node does not support, the first of them spelled out."""
    lacks = [
        f"{plain(item.feature)} "
        + ("not at all" if item.range is None else f"{item.range[0]}-{item.range[1]} only")
        for item in blocker.levels
    ]
    if not lacks:
        return "it is not known what it supports"
    order = sorted(lacks, key=lambda text: "only" not in text)
    return order[0] + (f", and lacks {len(order) - 1} more" if len(order) > 1 else "")


def _when(group: Sequence[Blocker], now_ms: int) -> str:
    """Since when it is offline, and when it last registered; of many nodes without the span."""
    blocker = group[0]
    if len(group) > 1 or blocker.condition is NodeCondition.RUNNING:
        return ""
    away = (
        f"no sign of life for {_age(now_ms - blocker.offline_ms)}"
        if blocker.offline_ms >= 0
        else ""
    )
    registered = (
        f"registered {clock(blocker.registered_ms)[:16]}" if blocker.registered_ms >= 0 else ""
    )
    return ", ".join(filter(None, (away, registered)))


_SEVERITY_STYLES: Final = {"critical": "bold red", "warning": "yellow", "info": "dim"}


def _advisories(
    advisories: Sequence[Advisory], *, advised: bool = True
) -> Iterator[RenderableType]:
    """Each known fault: what has it, the date of its source, what happens, and what to do."""
    for item in advisories:
        line = Text(item.severity, style=_SEVERITY_STYLES[item.severity])
        line.append(f"  {item.subject} {item.affected}  ", style="not bold not dim default")
        line.append(
            f"{item.id}, {'read ' if item.undated else ''}{item.date}", style="not bold dim"
        )
        yield line
        yield _indented(Text(item.fault), 4)
        if advised:
            yield _indented(Text(f"→ {item.advice}"), 4)


def _levels(features: Sequence[FeatureReadiness]) -> Table:
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    for title in ("feature", "finalized", "target", "all nodes", "state", ""):
        table.add_column(title)
    for feature in features:
        reach = (
            "?"
            if feature.supported_by_all is None
            else level_name(feature.feature, feature.supported_by_all)
        )
        target = "-" if feature.target is None else level_name(feature.feature, feature.target)
        table.add_row(
            Text(plain(feature.feature)),
            finalized_name(feature.feature, feature.finalized if feature.is_finalized else None),
            Text(target, style="" if feature.target in (None, feature.finalized) else "bold"),
            reach,
            str(feature.state),
            Text(
                _MARKS[feature.verdict] if feature.target is not None else "",
                style=_STYLES[feature.verdict],
            ),
        )
    return table


def _way_back(way: DowngradePath) -> Iterator[Text]:
    style = "yellow" if way.lossless is None else "green" if way.lossless else "red"
    yield Text(plain(way.reason), style=style)
    now, then = format_releases(way.before), format_releases(way.after)
    if now == then:
        yield Text(f"Releases that can start, now and afterwards: {now}")
    else:
        yield Text(f"Releases that can start: now {now}, afterwards {then}")


def _consequences(features: Sequence[FeatureReadiness]) -> Iterator[Text]:
    for feature in features:
        levels_and_changes = [
            (item.level, text) for item in feature.consequences if (text := item.change_in_existing)
        ]
        alone = len(feature.consequences) == 1
        changes = "; ".join(
            f"{'' if alone else f'{level}: '}{_lower(text)}" for level, text in levels_and_changes
        )
        costs = [(item.level, cost) for item in feature.consequences for cost in item.costs]
        if not (changes or costs):
            continue
        down = feature.target is not None and feature.target < feature.finalized
        line = Text(plain(feature.feature), style="bold")
        line.append(f"  {'taken back: ' if down else ''}{changes}", style="not bold")
        yield line
        for level, cost in costs:
            yield Text(f"! {cost}" if alone else f"! {level}: {_lower(cost)}", style="yellow")


def _elr(report: ReadinessReport) -> Iterator[Text]:
    """What becomes of the settings when eligible.leader.replicas.version is finalized."""
    if report.elr_unread:
        yield Text(
            "Where it is set was not read: add --bootstrap-controller or --log-directory, or let "
            "the worker follow operations.",
            style="yellow",
        )
    if (elr := report.elr) is None:
        return
    file = f"what the file of the active controller {elr.controller} says"
    after = file if elr.cluster_after is None else str(elr.cluster_after)
    if elr.cluster_before is None:
        source = "" if elr.cluster_after is None else f", {file}"
        yield Text(f"of the cluster: not set -> {after}{source}", style="yellow")
    else:
        yield Text(f"of the cluster: stays {elr.cluster_before}")
    groups: dict[tuple[int, bool], list[int]] = {}
    for item in elr.brokers:
        groups.setdefault((item.before, item.removed), []).append(item.broker)
    for (before, removed), brokers in groups.items():
        what = "its setting is removed" if removed else "its file no longer counts"
        many = "s" if len(brokers) > 1 else ""
        yield Text(
            f"broker{many} {format_ids(brokers)}: {before} -> {after}, {what}", style="yellow"
        )
    if elr.unread_brokers:
        many = "s" if len(elr.unread_brokers) > 1 else ""
        yield Text(
            f"broker{many} {format_ids(elr.unread_brokers)}: the value in the file was not read "
            "(add --bootstrap-server), and no longer counts"
        )
    shown = ", ".join(map(plain, elr.topics[:_TOPICS]))
    more = ", …" if elr.topic_count > _TOPICS else ""
    if elr.topic_count and (elr.brokers or elr.unread_brokers):
        yield Text(f"topics that follow these brokers: {elr.topic_count:,} ({shown}{more})")
    yield Text(f"topics that keep their own setting: {elr.topics_with_own:,}")


def _lower(text: str) -> str:
    first = text.split(" ")[0]
    plain_word = len(first) == 1 or first[1:].islower()
    return text[0].lower() + text[1:] if plain_word else text


def _ghosts(report: ReadinessReport) -> Iterator[Text]:
    named = {(node.role, node.node_id) for node in report.blockers}
    rest = [node for node in report.ghosts if (node.role, node.node_id) not in named]
    for role in dict.fromkeys(node.role for node in rest):
        of_role = [node.node_id for node in rest if node.role is role]
        many = "s" if len(of_role) > 1 else ""
        yield Text(
            f"{role}{many} {format_ids(of_role)}: not in the way of this, and perhaps of the next"
        )


def _views(report: ReadinessReport) -> Iterator[Text]:
    for divergence in report.divergences[:_VIEWS]:
        yield Text(f"{divergence.role} {divergence.node_id} {plain(divergence.difference)}")
    if len(report.divergences) > _VIEWS:
        yield Text(f"and {len(report.divergences) - _VIEWS:,} more: --json names all of them")


def _age(span_ms: int) -> str:
    """A time span for people: its largest unit, and the next."""
    left = max(span_ms, 0) // 1000
    parts: list[str] = []
    for unit_s, name in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, left = divmod(left, unit_s)
        if count or (unit_s == 1 and not parts):
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])
