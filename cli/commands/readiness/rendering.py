"""A verdict on one screen: the answer, who stands in the way, the way back, what it changes."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from featurewatch.cli.output.rendering import clock, ids, plain
from featurewatch.controller.compatibility import Verdict
from featurewatch.controller.levels import level_name
from featurewatch.controller.readiness import (
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
"""Groups of nodes that are alike and are shown."""

_VIEWS: Final = 5


def view(found: ReadinessReport) -> Group:
    """Everything that the verdict says, for people."""
    parts: list[RenderableType] = [_headline(found), *_reasons(found), Text()]
    parts += _section("In the way", _blockers(found))
    parts += _section("Levels", [_levels(found.features)])
    if found.changes and found.way_back is not None:
        parts += _section("The way back", _way_back(found.way_back))
    parts += _section("What it changes", _consequences(found.features))
    parts += _section("Registered without a living node", _ghosts(found))
    parts += _section("Nodes that see it differently", _views(found))
    return Group(*parts)


def essence(found: ReadinessReport) -> list[RenderableType]:
    """The answer, what is to be done about each node, and the way back."""
    parts: list[RenderableType] = [_headline(found), *_section("In the way", _blockers(found))]
    if found.changes and found.way_back is not None:
        parts += _section("The way back", _way_back(found.way_back))
    return parts


def _headline(found: ReadinessReport) -> Text:
    word, style = _WORDS[found.verdict]
    line = Text(word, style=style)
    line.append(f" {_for(found)}", style="bold")
    line.append(f"  cluster {plain(found.cluster)}, {found.state}", style="not bold dim")
    if found.since_ms >= 0:
        line.append(f" for {_age(found.at_ms - found.since_ms)}", style="not bold dim")
    return line


def _for(found: ReadinessReport) -> str:
    if found.target is not None:
        return f"for Kafka {found.target}"
    asked = [f"{one.feature} {one.target}" for one in found.features if one.target is not None]
    return f"for {', '.join(map(plain, asked))}" if asked else "for the newest release"


def _reasons(found: ReadinessReport) -> Iterator[RenderableType]:
    return (_indented(line, 2) for line in _answers(found))


def _answers(found: ReadinessReport) -> Iterator[Text]:
    for text in found.reasons:
        line = plain(text)
        if (
            found.said is not None
            and found.said.refusals
            and line.endswith(plain(found.said.refusals[0]))
        ):
            continue
        yield Text(line, style="yellow")
    if found.said is not None and not found.said.accepted:
        yield from _said(found.said)
    elif found.verdict is Verdict.YES and not found.changes:
        yield Text("Every level is where it shall be.", style="green")
    elif found.verdict is Verdict.YES and found.said is not None:
        yield Text(f"{_who(found.said)} would accept it.", style="green")
    elif found.verdict is Verdict.UNKNOWN and found.said is not None:
        yield Text(f"{_who(found.said)} would accept it, by what is known.")


def _said(said: ControllerResponse) -> Iterator[Text]:
    which = "the first obstacle only" if len(said.refusals) == 1 else "one obstacle of each feature"
    yield Text(f"{_who(said)} would refuse, and names {which}:")
    for text in said.refusals:
        yield Text(plain(text), style="italic")


def _who(said: ControllerResponse) -> str:
    who = f"Controller {said.controller}" if said.controller >= 0 else "The active controller"
    sure = "" if said.exact else ", in words that may differ"
    runs = f"assumed to run {said.release}" if said.assumed else f"Kafka {said.release}"
    return f"{who} ({runs}{sure})"


def _section(title: str, lines: Iterable[RenderableType]) -> list[RenderableType]:
    found = list(lines)
    if not found:
        return []
    return [Text(title, style="bold"), *(_indented(line, 2) for line in found), Text()]


def _indented(line: RenderableType, columns: int) -> Padding:
    return Padding(line, (0, 0, 0, columns), expand=False)


def _blockers(found: ReadinessReport) -> Iterator[RenderableType]:
    groups: dict[tuple[object, ...], list[Blocker]] = {}
    for one in found.blockers:
        key = (one.role, one.software, one.condition, one.verdict, one.levels)
        groups.setdefault(key, []).append(one)
    # Few nodes of which something special is to be done come before many that are to be rolled.
    ordered = sorted(groups.values(), key=lambda group: (group[0].verdict, len(group)))
    for group in ordered[:_GROUPS]:
        yield from _group(group, found.at_ms)
    hidden = sum(len(group) for group in ordered[_GROUPS:])
    if hidden:
        yield Text(f"and {hidden:,} more nodes: --json names all of them", style="yellow")


def _group(group: Sequence[Blocker], now_ms: int) -> Iterator[RenderableType]:
    first, many = group[0], len(group) > 1
    line = Text(f"{_MARKS[first.verdict]} ", style=_STYLES[first.verdict])
    line.append(f"{first.role}{'s' if many else ''} {ids([one.node_id for one in group])}", "bold")
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


def _lacks(one: Blocker) -> str:
    """The levels that a node does not support, the first of them spelled out."""
    told = [
        f"{plain(item.feature)} "
        + ("not at all" if item.range is None else f"{item.range[0]}-{item.range[1]} only")
        for item in one.levels
    ]
    if not told:
        return "it is not known what it supports"
    order = sorted(told, key=lambda text: "only" not in text)
    return order[0] + (f", and lacks {len(order) - 1} more" if len(order) > 1 else "")


def _when(group: Sequence[Blocker], now_ms: int) -> str:
    """Since when it is away, and when it last registered; of many nodes the span is not told."""
    one = group[0]
    if len(group) > 1 or one.condition is NodeCondition.RUNNING:
        return ""
    away = f"no sign of life for {_age(now_ms - one.away_ms)}" if one.away_ms >= 0 else ""
    heard = f"registered {clock(one.registered_ms)[:16]}" if one.registered_ms >= 0 else ""
    return ", ".join(filter(None, (away, heard)))


def _levels(features: Sequence[FeatureReadiness]) -> Table:
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    for title in ("feature", "finalized", "target", "all nodes", "state", ""):
        table.add_column(title)
    for one in features:
        reach = "?" if one.reach is None else level_name(one.feature, one.reach)
        target = "-" if one.target is None else level_name(one.feature, one.target)
        table.add_row(
            Text(plain(one.feature)),
            level_name(one.feature, one.finalized),
            Text(target, style="" if one.target in (None, one.finalized) else "bold"),
            reach,
            str(one.state),
            Text(_MARKS[one.verdict] if one.target is not None else "", style=_STYLES[one.verdict]),
        )
    return table


def _way_back(way: DowngradePath) -> Iterator[Text]:
    yield Text(plain(way.why), style="green" if way.lossless else "red")
    now, then = format_releases(way.before), format_releases(way.after)
    if now == then:
        yield Text(f"Releases that can start, now and afterwards: {now}")
    else:
        yield Text(f"Releases that can start: now {now}, afterwards {then}")


def _consequences(features: Sequence[FeatureReadiness]) -> Iterator[Text]:
    for one in features:
        told = [(item.level, text) for item in one.consequences if (text := _change(item.change))]
        alone = len(one.consequences) == 1
        changes = "; ".join(
            f"{'' if alone else f'{level}: '}{_lower(text)}" for level, text in told
        )
        costs = [(item.level, cost) for item in one.consequences for cost in item.costs]
        if not (told or costs):
            continue
        down = one.target is not None and one.target < one.finalized
        line = Text(plain(one.feature), style="bold")
        line.append(f"  {'taken back: ' if down else ''}{changes}", style="not bold")
        yield line
        for level, cost in costs:
            yield Text(f"! {cost}" if alone else f"! {level}: {_lower(cost)}", style="yellow")


def _change(text: str) -> str:
    """What a level changes in a cluster that is there; what new ones get by it does not."""
    if text.startswith("Nothing"):
        return ""
    return text.partition("; ")[2] if text.startswith("New clusters get") else text


def _lower(text: str) -> str:
    first = text.split(" ")[0]
    plain_word = len(first) == 1 or first[1:].islower()
    return text[0].lower() + text[1:] if plain_word else text


def _ghosts(found: ReadinessReport) -> Iterator[Text]:
    named = {(one.role, one.node_id) for one in found.blockers}
    rest = [one for one in found.ghosts if (one.role, one.node_id) not in named]
    for role in dict.fromkeys(one.role for one in rest):
        of_role = [one.node_id for one in rest if one.role is role]
        many = "s" if len(of_role) > 1 else ""
        yield Text(f"{role}{many} {ids(of_role)}: not in the way of this, and perhaps of the next")


def _views(found: ReadinessReport) -> Iterator[Text]:
    for one in found.views[:_VIEWS]:
        yield Text(f"{one.role} {one.node_id} {plain(one.what)}")
    if len(found.views) > _VIEWS:
        yield Text(f"and {len(found.views) - _VIEWS:,} more: --json names all of them")


def _age(span_ms: int) -> str:
    """A time span for people: its largest unit, and the next."""
    left = max(span_ms, 0) // 1000
    parts: list[str] = []
    for unit_s, name in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, left = divmod(left, unit_s)
        if count or (unit_s == 1 and not parts):
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])
