"""Renders a rehearsal: a paragraph per step for people, one JSON document for programs."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from rich.text import Text

from featurewatch.cli.commands.rehearse.real_controller import ComparedStep, RealRehearsal
from featurewatch.cli.output.rendering import plain
from featurewatch.common.id_runs import format_ids
from featurewatch.common.text import enumeration
from featurewatch.controller.kraft import Consequence, ControllerState, rules_of
from featurewatch.controller.levels import level_name
from featurewatch.controller.rehearsal.documents import overall, rehearsal_document, step_document
from featurewatch.controller.rehearsal.rehearse import StepOutcome, StepVerdict
from featurewatch.controller.rehearsal.steps import RegisterNode, StopNode
from featurewatch.controller.software import notes_of_learned
from featurewatch.streams.types import METADATA_VERSION, Role
from featurewatch.tables.image.cluster import ClusterImage

_STYLES = {
    StepVerdict.ACCEPTED: "green",
    StepVerdict.REFUSED: "bold red",
    StepVerdict.UNKNOWN: "yellow",
}
_INDENT = "   "

_LEAD = re.compile("becomes active|no majority")
LONG_RUN = 12
"""Runs of restart steps of at least this length are drawn together."""


def head(release: str, state: ControllerState) -> list[Text]:
    """The initial state: the cluster, the controller, levels (metadata.version first), nodes."""
    names = sorted(state.levels, key=lambda name: (name != METADATA_VERSION, name))
    levels = ", ".join(f"{name} {level_name(name, state.levels[name])}" for name in names)
    fenced = [broker.id for broker in state.brokers if broker.fenced]
    nodes = f"brokers {format_ids([broker.id for broker in state.brokers]) or 'none'}"
    nodes += f" (fenced {format_ids(fenced)})" if fenced else ""
    registered = format_ids([controller.id for controller in state.controllers]) or "none"
    lines = [
        f"cluster {state.cluster}, asked as controller {state.id} of Kafka {release}",
        f"levels  {levels or 'none'}",
        f"nodes   {nodes}, registered controllers {registered}",
    ]
    if not rules_of(release).compared:
        lines.append(
            f"Kafka {release} is answered as the nearest release would: "
            "its words may differ (docs/reference/levels.md)"
        )
    lines += notes_of_learned(names=[release])
    return [Text(plain(line), style="dim") for line in lines]


def zookeeper_head(image: ClusterImage, outcomes: Sequence[StepOutcome]) -> list[Text]:
    """The initial state in ZooKeeper mode: the cluster, its controller and brokers."""
    controller = image.zookeeper.controller
    partitions = outcomes[0].before.partitions if outcomes else None
    brokers = format_ids(partitions.brokers) if partitions else ""
    lines = (
        f"cluster {image.cluster}, in ZooKeeper mode, controller "
        f"{controller.node_id if controller else 'none'}",
        f"brokers {brokers or 'none'}",
    )
    return [Text(plain(line), style="dim") for line in lines]


def zookeeper_document(image: ClusterImage, outcomes: Sequence[StepOutcome]) -> dict[str, Any]:
    """A rehearsal in ZooKeeper mode as one JSON document: without a release and levels."""
    controller = image.zookeeper.controller
    return {
        "cluster": image.cluster,
        "controller": controller.node_id if controller else -1,
        "release": None,
        "exact": True,
        "learned": [],
        "levels": {},
        "verdict": str(overall(outcomes)),
        "steps": [step_document(outcome) for outcome in outcomes],
    }


def runs(outcomes: Sequence[StepOutcome]) -> Iterator[tuple[int, Sequence[StepOutcome]]]:
    """The steps with the number of the first: long runs of restarts together, others each alone."""
    number = 1
    for plain_restart, some in groupby(outcomes, key=_is_restart):
        run = list(some)
        together = plain_restart and len(run) >= LONG_RUN
        for part in [run] if together else [[outcome] for outcome in run]:
            yield number, part
            number += len(part)


def _is_restart(outcome: StepOutcome) -> bool:
    """Whether a node is stopped or started, without anything else to report."""
    silent = outcome.verdict is StepVerdict.ACCEPTED and not (
        outcome.messages or outcome.notes or outcome.partitions
    )
    return silent and isinstance(outcome.step, StopNode | RegisterNode)


def restarts(number: int, run: Sequence[StepOutcome]) -> list[Text]:
    """A paragraph about many nodes that are lost and started."""
    nodes: dict[Role, set[int]] = {}
    for outcome in run:
        if isinstance(outcome.step, RegisterNode):
            nodes.setdefault(outcome.step.node.role, set()).add(outcome.step.node.node_id)
    named = enumeration(f"{role}s {format_ids(sorted(some))}" for role, some in nodes.items())
    first = Text(f"{number:>2} to {number + len(run) - 1} {named} are lost and register  ")
    first.append(str(StepVerdict.ACCEPTED), style=_STYLES[StepVerdict.ACCEPTED])
    leads = [text for outcome in run for text in outcome.effects if _LEAD.search(text)]
    return [first, *(Text(f"{_INDENT}{plain(text)}") for text in leads)]


def paragraph(number: int, outcome: StepOutcome) -> list[Text]:
    """One step: the verdict, who responds, the effects, and notes."""
    first = Text(f"{number:>2} {plain(outcome.step.text)}  ")
    first.append(str(outcome.verdict), style=_STYLES[outcome.verdict])
    lines = [first]
    for text in outcome.messages:
        line = Text(f"{_INDENT}{outcome.responder}: ", style="dim")
        line.append(plain(text), style=_STYLES[outcome.verdict])
        lines.append(line)
    lines += [Text(f"{_INDENT}{plain(text)}") for text in outcome.effects]
    lines += [Text(f"{_INDENT}{plain(text)}", style="dim") for text in outcome.notes]
    lines += [Text(f"{_INDENT}{text}", style="yellow") for text in _costs(outcome.consequences)]
    return lines


def _costs(consequences: Sequence[Consequence]) -> list[str]:
    """The costs of the consequences; changes without costs are in the JSON only."""
    return [
        f"{consequence.feature} {consequence.level}: {cost}"
        for consequence in consequences
        for cost in consequence.costs
    ]


def difference_lines(step: ComparedStep) -> list[Text]:
    """Whether Kafka's own code answers and does the same."""
    if not step.compared:
        return [Text(f"{_INDENT}not asked of the real controller", style="dim")]
    if not step.differences:
        lines = step.other_blockers or ("the real controller says and does the same",)
        return [Text(f"{_INDENT}{plain(text)}", style="dim green") for text in lines]
    return [
        Text(f"{_INDENT}DIFFERENT: {plain(text)}", style="bold magenta")
        for text in step.differences
    ]


def document(
    release: str,
    state: ControllerState,
    outcomes: Sequence[StepOutcome],
    real: RealRehearsal | None,
) -> dict[str, Any]:
    """A rehearsal as one JSON document."""
    content = rehearsal_document(release, state, outcomes)
    if real is not None:
        content["on_real_controller"] = {
            "release": real.kafka,
            "staging_differences": list(real.staging_differences),
            "difference_count": real.difference_count,
        }
        for fields, step in zip(content["steps"], real.steps, strict=True):
            fields["compared"] = step.compared
            fields["differences"] = list(step.differences)
            fields["other_blockers"] = list(step.other_blockers)
    return content
