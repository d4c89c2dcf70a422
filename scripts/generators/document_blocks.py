"""The parts of the documents that follow from registries, between markers.

A document has ``<!-- generated: NAME -->`` before such a part and ``<!-- end of generated -->``
after it; `BLOCKS` has the text between them.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from typing import Final, TypeVar

import click

from featurewatch.agents import metrics as worker_metrics
from featurewatch.agents.metric_defs import WorkerMetricDef
from featurewatch.cli.app import app
from featurewatch.cli.command_line import LazyGroup
from featurewatch.controller.kraft.releases import releases
from featurewatch.integrations.notify import metrics as notify_metrics
from featurewatch.kafka.releases import package_files
from featurewatch.monitor.readiness import DEFAULT_LIMITS
from featurewatch.monitor.readiness.state_timers import Timer
from featurewatch.monitor.rules import RULES
from featurewatch.monitor.rules.rule import format_duration
from featurewatch.pipeline.gold.tables import AUDIT, GOLD
from featurewatch.pipeline.lake.tables import BRONZE
from featurewatch.pipeline.silver.tables import SILVER
from featurewatch.streams import metrics as source_metrics
from featurewatch.streams.codec.shapes import KINDS
from featurewatch.streams.kraft.observer import states as observer
from featurewatch.streams.topics import ALL, Topic
from featurewatch.streams.zookeeper.watcher import states as watcher
from scripts.generators import ROOT, Texts
from scripts.generators.schemas import kinds_and_meanings
from scripts.generators.summaries import command_of, names, summary_of

_BLOCK: Final = re.compile(
    r"(?<=<!-- generated: )([\w-]+)( -->\n)(.*?)(?=<!-- end of generated -->)", re.DOTALL
)

COMMANDS_PAGE: Final = ROOT / "docs" / "reference" / "commands.md"

State = TypeVar("State", bound=StrEnum)
Trigger = TypeVar("Trigger", bound=StrEnum)


def documents() -> Texts:
    """Yields each document that has generated parts, with these up to date.

    Raises:
        ValueError: A document names a part that `BLOCKS` does not have, or a part is in none.
    """
    unused = set(BLOCKS)
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = path.read_text()
        names = [name for name, _, _ in _BLOCK.findall(text)]
        if unknown := set(names) - BLOCKS.keys():
            raise ValueError(f"{path.name} has unknown generated parts: {', '.join(unknown)}")
        unused -= set(names)
        if names:
            yield path, with_blocks(text)
    if unused:
        raise ValueError(f"no document has the generated parts {', '.join(sorted(unused))}")


def with_blocks(text: str) -> str:
    """Returns a document with its generated parts up to date."""
    return _BLOCK.sub(lambda block: f"{block[1]}{block[2]}{BLOCKS[block[1]]()}", text)


def _table(heading: str, rows: Iterable[Iterable[str]]) -> str:
    columns = heading.count("|") - 1
    cells = ((cell.replace("|", r"\|") for cell in row) for row in rows)
    lines = (f"| {' | '.join(row)} |".replace("|  |", "| |") for row in cells)
    return "\n".join((heading, "|" + "---|" * columns, *lines)) + "\n"


def _topics_with_keys() -> str:
    rows = (
        (f"`{topic.name()}`", topic.about, topic.key, topic.config.get("cleanup.policy", "delete"))
        for topic in ALL
    )
    return _table("| topic | content | key | cleanup |", rows)


def _known_releases() -> str:
    names = [file.release for file in package_files()]
    known = f"It knows Kafka {names[0]} to {names[-1]}"
    return f"{known}, and [learns newer releases](docs/how-to/releases.md) from their jars.\n"


def _kinds(topic: Topic) -> str:
    return _table("| `kind` | meaning |", kinds_and_meanings(topic))


def _rules() -> str:
    rows = ((f"`{rule.name}`", rule.about) for rule in RULES if rule.timer is None)
    return _table("| rule | condition |", rows)


def _delayed_rules() -> str:
    delays = {
        Timer.OFFLINE: DEFAULT_LIMITS.ghost_ms,
        Timer.REFUSED: DEFAULT_LIMITS.refusal_ms,
        Timer.UPGRADE: DEFAULT_LIMITS.upgrade_ms,
    }
    rows = (
        (f"`{rule.name}`", rule.about, format_duration(delays[rule.timer]))
        for rule in RULES
        if rule.timer
    )
    return _table("| rule | condition | default delay |", rows)


def _ends() -> str:
    rules: dict[str, list[str]] = {}
    for rule in RULES:
        rules.setdefault(rule.ends, []).append(f"`{rule.name}`")
    rows = [(", ".join(names), ends) for ends, names in rules.items()]
    return _table("| alert | ends |", [*rows, _FORGOTTEN])


_FORGOTTEN: Final = ("all of a cluster", "when it is forgotten (`featurewatch retire`)")

_PAGES: Final = {
    "web": ("page",),
    "notify": ("alerts",),
    "rules": ("runbooks",),
    "dashboards": ("metrics",),
    "levels": ("readiness",),
    "schemas": ("client", "topics"),
    "topics": ("admin",),
    "cluster": ("admin",),
    "reassign": ("admin",),
    "elect": ("admin",),
    "pipeline": ("pipeline", "audit", "spark-cluster"),
    "stack": ("stack", "controller"),
}
"""The documents about a command, where there is more than the one of its name."""


def _commands() -> str:
    rows = []
    for name in names(app):
        command = command_of(app, name)
        usage = f"featurewatch {name}"
        if isinstance(command, LazyGroup):
            parts = "|".join(names(command))
            usage += f" [{parts}]" if command.invoke_without_command else f" {parts}"
        links = ", ".join(_links(_PAGES.get(name, (name,))))
        rows.append((f"`{usage}`", summary_of(command), links))
    return _table("| command | | more |", rows)


def _links(pages: Iterable[str]) -> Iterator[str]:
    """Yields links from `COMMANDS_PAGE` to the pages of these names that exist."""
    for page in pages:
        if page == "runbooks":
            yield "[runbooks](../runbooks/README.md)"
        for path in sorted((ROOT / "docs").glob(f"*/{page}.md")):
            target = os.path.relpath(path, COMMANDS_PAGE.parent)
            yield f"[{path.name}]({target})"


def _help_of_commands() -> str:
    """Returns the help of every command, a section each."""
    root = _context(app, "featurewatch", None)
    return "\n".join(_sections(app, root))


def _sections(group: LazyGroup, above: click.Context) -> Iterator[str]:
    for name in names(group):
        if command := command_of(group, name):
            context = _context(command, name, above)
            help_text = command.get_help(context).strip()
            yield f"## {context.command_path}\n\n```text\n{help_text}\n```\n"
            if isinstance(command, LazyGroup):
                yield from _sections(command, context)


def _context(command: click.Command, name: str, above: click.Context | None) -> click.Context:
    settings = {**command.context_settings, "terminal_width": 100}
    return command.context_class(command, info_name=name, parent=above, **settings)


def _metrics(rows: Iterable[tuple[str, str, Iterable[str], str]]) -> str:
    cells = ((f"`{name}`", kind, ", ".join(labels), about) for name, kind, labels, about in rows)
    return _table("| metric | kind | labels | meaning |", cells)


def _process_metrics() -> str:
    it = source_metrics
    return _metrics(
        [
            (it.BUILD_INFO, "gauge", it.BUILD_INFO_LABELS, it.BUILD_INFO_HELP),
            (it.TASK_FAILURES, "counter", it.TASK_FAILURES_LABELS, it.TASK_FAILURES_HELP),
            (it.OLD_RULES, "gauge", (), it.OLD_RULES_HELP),
        ]
    )


def _source_metrics() -> str:
    source = source_metrics
    return _metrics(
        [
            *((it.name, it.kind, source.LABELS, it.help) for it in source.METRICS),
            (source.SOURCE_STATE, "gauge", (*source.LABELS, "state"), source.SOURCE_STATE_HELP),
            (source.CLUSTER_INFO, "gauge", source.CLUSTER_INFO_LABELS, source.CLUSTER_INFO_HELP),
        ]
    )


def _registered(metrics: Iterable[WorkerMetricDef]) -> str:
    return _metrics((metric.name, metric.kind, metric.labels, metric.about) for metric in metrics)


def _lake_tables() -> str:
    rows = (
        (f"`{table.path}`", table.about, ", ".join(f"`{name}`" for name in table.key))
        for table in (*BRONZE, *SILVER, *GOLD, AUDIT)
    )
    return _table("| table | content | key |", rows)


def _release_ranges() -> str:
    features = list(dict.fromkeys(name for it in releases().values() for name in it.unstable))
    rows = (
        (
            release.name,
            *(_ranges(release.supported.get(it), release.unstable.get(it)) for it in features),
        )
        for release in releases().values()
    )
    return _table(f"| release | {' | '.join(features)} |", rows)


def _ranges(stable: tuple[int, int] | None, unstable: tuple[int, int] | None) -> str:
    text = f"{stable[0]}-{stable[1]}" if stable else "–"
    return text if stable == unstable or not unstable else f"{text} ({unstable[0]}-{unstable[1]})"


def diagram(start: State, transitions: Mapping[tuple[State, Trigger], State]) -> str:
    """Returns a Mermaid state diagram; triggers with the same two states share an arrow."""
    arrows: dict[tuple[State, State], list[str]] = {}
    for (before, trigger), after in transitions.items():
        arrows.setdefault((before, after), []).append(trigger)

    def lines() -> Iterator[str]:
        yield f"[*] --> {start}"
        for (before, after), triggers in arrows.items():
            yield f"{before} --> {after}: {', '.join(triggers)}"

    body = "".join(f"    {line}\n" for line in lines())
    return f"```mermaid\nstateDiagram-v2\n{body}```\n"


BLOCKS: Final[dict[str, Callable[[], str]]] = {
    "topics-with-keys": _topics_with_keys,
    "known-releases": _known_releases,
    **{
        f"kinds-of-{topic.short_name}": partial(_kinds, topic)
        for topic in ALL
        if len(KINDS.get(topic.short_name, ())) > 1
    },
    "rules": _rules,
    "delayed-rules": _delayed_rules,
    "ends-of-alerts": _ends,
    "commands": _commands,
    "help-of-commands": _help_of_commands,
    "process-metrics": _process_metrics,
    "source-metrics": _source_metrics,
    "worker-metrics": lambda: _registered(worker_metrics.METRICS),
    "notify-metrics": lambda: _registered(notify_metrics.METRICS),
    "lake-tables": _lake_tables,
    "release-ranges": _release_ranges,
    "observer-states": lambda: diagram(observer.ObserverState.SEEKING, observer.TRANSITIONS),
    "watcher-states": lambda: diagram(watcher.WatcherState.OFFLINE, watcher.TRANSITIONS),
}
"""The generated parts of documents, by the names in their markers."""
