"""A plan, its status and its checks for people and for programs."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from rich.text import Text

from featurewatch.cli.errors import ExitCode
from featurewatch.cli.output.rendering import plain
from featurewatch.controller.compatibility import Verdict
from featurewatch.monitor.upgrade import (
    Plan,
    Precondition,
    RestartReport,
    Step,
    StepState,
    UpgradeStatus,
)
from featurewatch.monitor.upgrade.checks import span
from featurewatch.monitor.upgrade.kraft import title_of_nodes
from featurewatch.monitor.upgrade.patch import is_patch

CODES: Final = {
    Verdict.YES: ExitCode.GOOD,
    Verdict.NO: ExitCode.NO,
    Verdict.UNKNOWN: ExitCode.UNKNOWN,
}
"""The exit code of a verdict."""

_MARKS: Final = {Verdict.YES: "✓", Verdict.NO: "✗", Verdict.UNKNOWN: "?"}
_STYLES: Final = {Verdict.YES: "green", Verdict.NO: "red", Verdict.UNKNOWN: "yellow"}
_STATES: Final = {
    StepState.DONE: ("✓", "green"),
    StepState.CURRENT: ("→", "bold cyan"),
    StepState.LATER: (" ", ""),
    StepState.UNKNOWN: ("?", "yellow"),
}
_MOST_COMMANDS: Final = 3


def check_lines(checks: Iterable[Precondition]) -> Iterator[Text]:
    """Each check on a line, and what to do about it on the next."""
    for check in checks:
        style = _STYLES[check.verdict]
        yield Text(f"  {_MARKS[check.verdict]} {check.name}: {plain(check.text)}", style=style)
        if check.verdict is not Verdict.YES and check.remedy:
            yield Text(f"      → {plain(check.remedy)}", style="cyan")


def plan_lines(plan: Plan) -> Iterator[Text]:
    """A whole plan: the checks, then each step with what it does and the way back."""
    source = f"Kafka {', '.join(plan.releases)}" if plan.releases else "an unknown release"
    mode = "ZooKeeper" if plan.mode == "zookeeper" else "KRaft"
    line = Text(f"Plan for cluster {plain(plan.cluster)}", style="bold")
    line.append(f"  {source} → Kafka {plan.target}, {mode} mode", style="not bold")
    yield line
    yield from check_lines(plan.checks)
    for number, step in enumerate(plan.steps, start=1):
        yield Text()
        yield from _step_lines(number, step)


def _step_lines(number: int, step: Step) -> Iterator[Text]:
    line = Text(f"{number}. {plain(step.title)}", style="bold")
    if step.point_of_no_return:
        line.append("  POINT OF NO RETURN", style="bold red")
    yield line
    if step.nodes:
        yield Text(f"   nodes: {title_of_nodes(step)}")
    for text in step.preconditions:
        yield Text(f"   if: {plain(text)}")
    for command in step.commands[:_MOST_COMMANDS]:
        yield Text(f"   $ {plain(command)}", style="cyan")
    if len(step.commands) > _MOST_COMMANDS:
        hidden = len(step.commands) - _MOST_COMMANDS
        yield Text(f"     and {hidden} more, one for each node", style="dim")
    for text in step.by_hand:
        yield Text(f"   by hand: {plain(text)}")
    for text in step.changes:
        yield Text(f"   changes: {plain(text)}")
    if step.soak_ms:
        yield Text(f"   takes: {span(step.soak_ms)} at least")
    yield Text(f"   way back: {plain(step.way_back)}", style="dim")


def status_lines(status: UpgradeStatus) -> Iterator[Text]:
    """Where an upgrade is: the steps, what differs from the plan, what comes next."""
    plan = status.plan
    line = Text(f"Upgrade of cluster {plain(plan.cluster)} to Kafka {plan.target}", style="bold")
    yield line
    for text in status.changed:
        yield Text(f"! {plain(text)}", style="yellow")
    for number, step in enumerate(status.steps, start=1):
        mark, style = _STATES[step.state]
        line = Text(f"{mark} {number}. {plain(step.title)}", style=style)
        if step.text and step.state is not StepState.LATER:
            line.append(f"  ({plain(step.text)})", style="not bold")
        if step.point_of_no_return and step.state is not StepState.DONE:
            line.append("  point of no return", style="red")
        yield line
    if status.is_complete:
        done = f"the levels of Kafka {plan.target} are finalized"
        if is_patch(plan):
            done = "every node registered again since the plan was made"
        yield Text(f"Complete: {done}.", style="green")
        return
    yield from check_lines(status.checks)
    if status.verdict is not Verdict.YES:
        what = "Not yet" if status.verdict is Verdict.NO else "Not known whether to continue"
        yield Text(f"{what}: see above.", style=f"bold {_STYLES[status.verdict]}")
        return
    if status.next_node is not None:
        yield Text(f"Next: node {status.next_node}.", style="bold")
    elif status.current is not None:
        yield Text(f"Next: {plain(status.current.title)}.", style="bold")
    for command in status.commands[:_MOST_COMMANDS]:
        yield Text(f"  $ {plain(command)}", style="cyan")


def restart_lines(report: RestartReport) -> Iterator[Text]:
    """The answer on the first line, then what speaks against it."""
    word, style = {
        Verdict.YES: ("may be restarted", "bold green"),
        Verdict.NO: ("must not be restarted now", "bold red"),
        Verdict.UNKNOWN: ("may be restarted or not: unknown", "bold yellow"),
    }[report.verdict]
    yield Text(f"Node {report.node_id} {word}", style=style)
    yield from check_lines(report.checks)


def check_documents(checks: Iterable[Precondition]) -> list[dict[str, Any]]:
    """The checks as JSON has them."""
    return [check._asdict() for check in checks]


def status_document(status: UpgradeStatus) -> dict[str, Any]:
    """A status as JSON has it."""
    current = status.current
    return {
        "cluster": status.plan.cluster,
        "target": status.plan.target,
        "complete": status.is_complete,
        "verdict": status.verdict,
        "steps": [step._asdict() for step in status.steps],
        "current": None if current is None else current.id,
        "next_node": status.next_node,
        "commands": status.commands,
        "checks": check_documents(status.checks),
        "changed": status.changed,
    }


def restart_document(report: RestartReport) -> dict[str, Any]:
    """The answer about a restart as JSON has it."""
    return {
        "node": report.node_id,
        "verdict": report.verdict,
        "waiting_helps": report.can_wait,
        "checks": check_documents(report.checks),
    }
