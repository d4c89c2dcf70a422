"""Where an upgrade is, held against its plan, and what comes next. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from featurewatch.common.id_runs import format_ids
from featurewatch.controller.compatibility import Verdict
from featurewatch.controller.kraft.releases import UnknownReleaseError, release_of, releases
from featurewatch.controller.levels import level_name
from featurewatch.monitor.readiness.active_controller import active_controller
from featurewatch.monitor.readiness.state_timers import Limits
from featurewatch.monitor.step import MonitorState
from featurewatch.monitor.upgrade.checks import (
    alerts_check,
    finalize_checks,
    ghosts_check,
    log_check,
    prepare_checks,
    soak_check,
)
from featurewatch.monitor.upgrade.migration import (
    NOT_ASKED,
    Asked,
    is_migration_step,
    is_step_done,
    nodes_left,
    progress_of,
    step_checks,
)
from featurewatch.monitor.upgrade.nodes import ClusterNodes, nodes_of
from featurewatch.monitor.upgrade.patch import NOTE, is_patch, restarted, times_checks
from featurewatch.monitor.upgrade.plan import (
    Levels,
    Mode,
    Plan,
    PlanError,
    Precondition,
    Step,
    StepKind,
    verdict_of,
)
from featurewatch.monitor.upgrade.plan_file import ReadPlan
from featurewatch.streams.types import KRAFT_VERSION, FeatureLevel, NodeId
from featurewatch.tables.image.cluster import Authority


class StepState(StrEnum):
    """How far a step is. ``unknown``: nothing that is read shows it."""

    DONE = "done"
    CURRENT = "current"
    LATER = "later"
    UNKNOWN = "unknown"


class StepStatus(NamedTuple):
    """A step with its state, and how far it is in one line."""

    id: str
    title: str
    state: StepState
    text: str
    point_of_no_return: bool
    optional: bool


@dataclass(frozen=True, slots=True)
class UpgradeStatus:
    """A running upgrade.

    ``current`` is the step that is to be done now (None: the upgrade is complete), ``next_node``
    the one to be restarted next (None: none). ``checks`` are what must hold before that, and
    ``changed`` is what differs from the plan, one line each.
    """

    plan: Plan
    steps: tuple[StepStatus, ...]
    current: Step | None
    next_node: NodeId | None
    commands: tuple[str, ...]
    checks: tuple[Precondition, ...]
    changed: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """Whether the next step may be taken: no, if something is in the way."""
        return verdict_of(self.checks)

    @property
    def is_complete(self) -> bool:
        """Whether every step that is not optional is done."""
        return self.current is None


_OFF: Final = FeatureLevel(0)


def status_of(
    read: ReadPlan, state: MonitorState, limits: Limits, now_ms: int, asked: Asked = NOT_ASKED
) -> UpgradeStatus:
    """Holds a cluster against the plan of its upgrade.

    ``now_ms`` is the time (ms since the Unix epoch); ``asked`` matters in ZooKeeper mode only.

    Raises:
        PlanError: The plan is of another cluster, or of an unknown release.
    """
    plan, image = read.plan, state.image
    check_cluster(plan, image.cluster)
    check_target(plan)
    nodes = nodes_of(state, limits, now_ms)
    log = log_check(state, now_ms)
    if image.authority is Authority.LOG and log.verdict is not Verdict.YES:
        return _unknown(plan, log, edited_note(read))
    seen = _Seen(plan, state, nodes, limits, now_ms, asked)
    done = {step.id: _is_done(step, seen) for step in plan.steps}
    order = [step for step in plan.steps if not step.optional]
    current = next((step for step in order if done[step.id] is not True), None)
    steps = tuple(_status(step, done, current, seen) for step in plan.steps)
    next_node = None if current is None else _next_node(current, seen)
    changed = (*edited_note(read), *_changed(plan, state, nodes))
    checks = () if current is None else tuple(_checks(current, seen))
    commands = () if current is None else _commands(current, next_node)
    return UpgradeStatus(plan, steps, current, next_node, commands, checks, changed)


def check_cluster(plan: Plan, cluster: str) -> None:
    """Raises `PlanError` if the plan is of another cluster."""
    if plan.cluster != cluster:
        raise PlanError(f"the plan is of the cluster {plan.cluster}, and this is {cluster}")


def check_target(plan: Plan) -> None:
    """Raises `PlanError` if the plan's target is no release that is known here."""
    try:
        release_of(plan.target)
    except UnknownReleaseError as error:
        raise PlanError(f"the plan's target is not known: {error}") from None


def edited_note(read: ReadPlan) -> tuple[str, ...]:
    """A line about a plan that was edited by hand; empty if it was not."""
    text = "the plan was edited after featurewatch wrote it: its digest does not match"
    return (text,) if read.edited else ()


def _unknown(plan: Plan, log: Precondition, changed: tuple[str, ...]) -> UpgradeStatus:
    steps = tuple(
        StepStatus(s.id, s.title, StepState.UNKNOWN, "", s.point_of_no_return, s.optional)
        for s in plan.steps
    )
    return UpgradeStatus(plan, steps, plan.steps[0], None, (), (log,), changed)


class _Seen(NamedTuple):
    """What the steps are held against."""

    plan: Plan
    state: MonitorState
    nodes: ClusterNodes
    limits: Limits
    now_ms: int
    asked: Asked


def _is_done(step: Step, seen: _Seen) -> bool | None:
    """Whether a step is done; None where nothing shows it."""
    plan, state, nodes, _, now_ms, asked = seen
    image = state.image
    if is_migration_step(step):
        return is_step_done(step, plan, state, nodes, asked, now_ms)
    if image.authority is not Authority.LOG:
        return False
    on = nodes.on(plan.target)
    finalized = _has_levels(state, plan.after)
    match step.kind:
        case StepKind.PREPARE:
            passed = verdict_of(prepare_checks(state, nodes, release_of(plan.target)))
            return bool(on) or finalized or passed is Verdict.YES
        case StepKind.ROLL if is_patch(plan):
            return _rolled(step, plan, nodes) <= restarted(plan, nodes)
        case StepKind.ROLL:
            rolled = _rolled(step, plan, nodes)
            return rolled <= on if rolled else bool(on)
        case StepKind.WAIT:
            return finalized or soak_check(plan, state, nodes, now_ms).verdict is Verdict.YES
        case _:
            return _has_levels(state, step.levels or {})


def _rolled(step: Step, plan: Plan, nodes: ClusterNodes) -> frozenset[NodeId]:
    """The nodes of a roll that live; those that joined since belong to it too."""
    joined = nodes.brokers
    if step.id == "roll-controllers":
        # A plan of a cluster without separate brokers has no step for one that joined.
        has_brokers = plan.step("roll-brokers") is not None
        joined = nodes.controllers if has_brokers else tuple(nodes.nodes)
    return frozenset(joined) | (frozenset(step.nodes) & nodes.nodes.keys())


def _upgraded(plan: Plan, nodes: ClusterNodes) -> frozenset[NodeId]:
    """The nodes that need no restart any more."""
    return restarted(plan, nodes) if is_patch(plan) else nodes.on(plan.target)


def _has_levels(state: MonitorState, levels: Levels) -> bool:
    finalized = state.image.features.levels
    return bool(levels) and all(finalized.get(n, _OFF) >= level for n, level in levels.items())


def _next_node(step: Step, seen: _Seen) -> NodeId | None:
    """The next node of a roll, in the plan's order; another controller may be active since then."""
    if is_migration_step(step):
        return next(iter(nodes_left(step, seen.plan, seen.state, seen.asked)), None)
    if step.kind is not StepKind.ROLL:
        return None
    left = _rolled(step, seen.plan, seen.nodes) - _upgraded(seen.plan, seen.nodes)
    ordered = [node for node in step.nodes if node in left]
    ordered += sorted(left - {*step.nodes})
    active = active_controller(seen.state.image).node_id
    return min(ordered, key=lambda node: node == active, default=None)


def _status(
    step: Step,
    done: Mapping[str, bool | None],
    current: Step | None,
    seen: _Seen,
) -> StepStatus:
    is_done = done[step.id]
    word = StepState.LATER
    if is_done:
        word = StepState.DONE
    elif step is current:
        word = StepState.CURRENT
    elif is_done is None:
        word = StepState.UNKNOWN
    text = _progress(step, seen)
    return StepStatus(step.id, step.title, word, text, step.point_of_no_return, step.optional)


def _progress(step: Step, seen: _Seen) -> str:
    plan, state, nodes, _, now_ms, asked = seen
    if is_migration_step(step):
        return progress_of(step, plan, state, nodes, asked, now_ms)
    if state.image.authority is not Authority.LOG:
        return ""
    if step.kind is StepKind.ROLL:
        rolled = _rolled(step, plan, nodes)
        return f"{len(rolled & _upgraded(plan, nodes))} of {len(rolled)} nodes" if rolled else ""
    if step.id == "soak":
        return soak_check(plan, state, nodes, now_ms).text
    return ""


def _checks(step: Step, seen: _Seen) -> Iterator[Precondition]:
    """What must hold before the current step continues."""
    plan, state, nodes, limits, now_ms, asked = seen
    if is_migration_step(step):
        yield from step_checks(step, plan, state, nodes, asked, now_ms)
        return
    if state.image.authority is not Authority.LOG:
        yield log_check(state)
        return
    if step.id == "finalize":
        yield from finalize_checks(plan, state, nodes, limits, now_ms)
        return
    if step.id == "prepare":
        yield from prepare_checks(state, nodes, release_of(plan.target))
        return
    yield log_check(state, now_ms)
    yield ghosts_check(state, nodes, release_of(plan.target))
    if step.id == "soak":
        yield soak_check(plan, state, nodes, now_ms)
    yield alerts_check(state)
    if is_patch(plan):
        yield from times_checks(nodes)


def _commands(step: Step, next_node: NodeId | None) -> tuple[str, ...]:
    if next_node is None:
        return step.commands
    if is_migration_step(step):
        return tuple(c.replace("--node ID", f"--node {next_node}") for c in step.commands)
    words = f"--node {next_node} "
    mine = tuple(command for command in step.commands if words in f"{command} ")
    if mine or not step.commands:
        return mine
    # It joined after the plan was made: the command is that of another node, with its id.
    other = step.commands[0].replace(f"--node {step.nodes[0]}", f"--node {next_node}")
    return (other,)


def _changed(plan: Plan, state: MonitorState, nodes: ClusterNodes) -> Iterator[str]:
    """What differs from the plan, beside the progress that it wants, and what cannot be seen."""
    if is_patch(plan):
        yield NOTE
    if state.image.authority is not Authority.LOG:
        return
    if plan.mode is Mode.KRAFT:
        planned = {*plan.controllers, *plan.brokers}
        joined, left = {*nodes.nodes} - planned, planned - {*nodes.nodes}
        if joined:
            yield f"nodes joined since the plan was made: {format_ids(joined)}"
        if left:
            yield f"nodes have left since the plan was made: {format_ids(left)}"
    known = list(releases())
    for node in nodes.nodes.values():
        if node.release is None or node.release not in known or plan.target not in known:
            continue
        if known.index(node.release) > known.index(plan.target):
            yield f"{node} runs Kafka {node.release}, newer than the plan's {plan.target}"
    for name, level in sorted(state.image.features.levels.items()):
        allowed = (plan.before.get(name, _OFF), plan.after.get(name, _OFF))
        minimum = plan.step("finalize-minimum")
        reached = (minimum.levels or {}).get(name) if minimum else None
        if name == KRAFT_VERSION or level in allowed or level == reached or not plan.before:
            continue
        was, then = (level_name(name, one) for one in allowed)
        yield f"{name} is {level_name(name, level)}, and the plan goes from {was} to {then}"
