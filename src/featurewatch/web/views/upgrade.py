"""The upgrade of a cluster as the page leads it: the plan, where it is, and what is next. Pure.

The plan is made again for each state, by the functions of ``featurewatch upgrade``. What the page
does not have, which are partitions and the brokers' own settings, is unknown here, and each check
says what would show it.
"""

import shlex
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, NamedTuple

from featurewatch.controller.compatibility import Verdict
from featurewatch.controller.kraft.releases import Release, releases
from featurewatch.kafka.releases import release_number
from featurewatch.monitor.quorum.report import FETCHING, quorum_report
from featurewatch.monitor.readiness.state_timers import Limits
from featurewatch.monitor.step import MonitorState
from featurewatch.monitor.upgrade import (
    Mode,
    Options,
    Plan,
    PlanRequest,
    Precondition,
    QuorumView,
    ReadPlan,
    RestartRequest,
    Step,
    StepKind,
    UpgradeStatus,
    check_restart,
    make_plan,
    status_of,
)
from featurewatch.monitor.upgrade.kraft import fault_text, levels_after
from featurewatch.monitor.upgrade.make import plan_faults
from featurewatch.monitor.upgrade.nodes import nodes_of
from featurewatch.monitor.upgrade.plan import verdict_of
from featurewatch.monitor.upgrade.status import StepState, StepStatus
from featurewatch.streams.types import FeatureLevel, NodeId
from featurewatch.tables.image.cluster import ClusterImage

MAX_NODES: Final = 200
"""Nodes of a step, and commands for them, that are listed; `node_count` is that of all."""

MAX_CHANGED: Final = 50
"""Differences that are listed."""

_GUARDED: Final = (StepKind.FINALIZE, StepKind.START)
"""The steps whose commands change something: they are offered once nothing is in the way."""

_OFF: Final = FeatureLevel(0)


@dataclass(frozen=True, slots=True)
class UpgradeRequest:
    """What is asked for.

    ``target`` None: the release that the cluster is on its way to, else the newest known one.
    ``past`` are the names of software that nodes were seen to run before. ``doubt`` is why the
    state of the cluster is not known now (None: it is). ``version`` is that of this featurewatch,
    ``now_ms`` the time (ms since the Unix epoch).
    """

    target: Release | None
    past: Collection[str]
    doubt: str | None
    version: str
    now_ms: int


class Target(NamedTuple):
    """A release, and why it is the target: ``asked``, ``rolling``, ``unfinalized``, ``newest``."""

    release: Release
    reason: str


def upgrade_document(
    state: MonitorState, request: UpgradeRequest, limits: Limits
) -> dict[str, Any]:
    """The plan of an upgrade and its status as JSON has them.

    Raises:
        PlanError: There is no plan for this cluster and target.
    """
    image, now_ms = state.image, request.now_ms
    running = _running(state, limits, now_ms)
    target = _target(image, request.target, running)
    cluster = shlex.quote("".join(sign for sign in image.cluster if sign.isprintable()))
    options = Options(f"--cluster {cluster}")
    plan = make_plan(
        state,
        PlanRequest(
            target.release,
            now_ms,
            request.version,
            options=options,
            earlier=_earlier(image, target.release, request.past),
        ),
        limits,
    )
    status = status_of(ReadPlan(plan, edited=False), state, limits, now_ms)
    checks = (*_doubt(request.doubt), *_checks(state, plan, status, limits, now_ms))
    verdict, current = verdict_of(checks), status.current
    is_offered = current is not None and (verdict is Verdict.YES or current.kind not in _GUARDED)
    faults = plan_faults(plan, image.features.levels)
    known = frozenset(map(fault_text, faults))
    save = options.reading(f"featurewatch upgrade plan --target {plan.target} --out {options.file}")
    return {
        "cluster": image.cluster,
        "at_ms": now_ms,
        "mode": plan.mode,
        "releases": plan.releases,
        "target": plan.target,
        "target_reason": target.reason,
        "targets": _targets(running),
        "before": dict(plan.before),
        "after": dict(plan.after),
        "complete": status.is_complete and request.doubt is None,
        "verdict": verdict,
        "current": None if current is None else current.id,
        "next_node": status.next_node,
        "commands": _bounded(status.commands) if is_offered else (),
        "checks": [check._asdict() for check in checks],
        "changed": status.changed[:MAX_CHANGED],
        "no_return": next(
            (
                step.id
                for step in status.steps
                if step.point_of_no_return
                and not step.optional
                and step.state is not StepState.DONE
            ),
            None,
        ),
        "save_command": save,
        "advisories": [asdict(fault) for fault in faults],
        "steps": [
            _step_document(step, one, known)
            for step, one in zip(plan.steps, status.steps, strict=True)
        ],
    }


def _running(state: MonitorState, limits: Limits, now_ms: int) -> list[str]:
    """The releases that nodes run, as far as they are known, oldest first."""
    nodes = nodes_of(state, limits, now_ms).nodes.values()
    return sorted({node.release for node in nodes if node.release}, key=release_number)


def _target(image: ClusterImage, asked: Release | None, running: list[str]) -> Target:
    if asked is not None:
        return Target(asked, "asked")
    if running:
        newest = releases()[running[-1]]
        if len(running) > 1:
            return Target(newest, "rolling")
        finalized = image.features.levels
        wanted = levels_after(newest, finalized)
        if any(level > finalized.get(name, _OFF) for name, level in wanted.items()):
            return Target(newest, "unfinalized")
    return Target([*releases().values()][-1], "newest")


def _targets(running: list[str]) -> list[str]:
    """The releases that are no older than any node."""
    oldest = release_number(running[-1]) if running else (0,)
    return [name for name in releases() if release_number(name) >= oldest]


def _earlier(image: ClusterImage, target: Release, past: Iterable[str]) -> str:
    """The newest release below the target that nodes ran and that takes the current levels."""
    known, number = releases(), release_number(target.name)
    fitting = [
        name
        for name in past
        if name in known
        and release_number(name) < number
        and all(
            known[name].supported.of(feature).minimum
            <= level
            <= known[name].supported.of(feature).maximum
            for feature, level in image.features.levels.items()
            if level
        )
    ]
    return max(fitting, key=release_number, default="")


def _doubt(reason: str | None) -> tuple[Precondition, ...]:
    if reason is None:
        return ()
    remedy = "check that the worker and its sources run; what is shown here is their last state"
    return (Precondition("state", Verdict.UNKNOWN, reason, remedy, waits=True),)


def _checks(
    state: MonitorState, plan: Plan, status: UpgradeStatus, limits: Limits, now_ms: int
) -> tuple[Precondition, ...]:
    """What must hold before the next step, and of the next node too."""
    if plan.mode is Mode.ZOOKEEPER:
        return (*plan.checks, *status.checks)
    if status.next_node is None:
        return status.checks
    request = RestartRequest(status.next_node, now_ms, quorum=_quorum(state.image))
    named = {check.name for check in status.checks}
    restart = check_restart(state, request, limits).checks
    return (
        *status.checks,
        *(
            _without_partitions(check, status.next_node)
            for check in restart
            if check.name not in named
        ),
    )


def _without_partitions(check: Precondition, node_id: NodeId) -> Precondition:
    """The check of a restart; the page never has partitions, whatever the worker follows."""
    if check.name != "partitions" or check.verdict is not Verdict.UNKNOWN:
        return check
    return Precondition(
        "partitions",
        Verdict.UNKNOWN,
        "the page holds no partitions: whether one would fall below min.insync.replicas while "
        f"node {node_id} is unavailable is not known here",
        "run the command of this step, which reads them: from a worker with --operations, or with "
        "--bootstrap-controller from the cluster itself",
        waits=True,
    )


def _quorum(image: ClusterImage) -> QuorumView | None:
    """The voters and those that fetch; None where nobody has described all of them."""
    report = quorum_report(image)
    if not report.has_states:
        return None
    fetching = (voter.node_id for voter in report.voters if voter.state in FETCHING)
    return QuorumView(frozenset(voter.node_id for voter in report.voters), frozenset(fetching))


def _step_document(step: Step, status: StepStatus, faults: Collection[str]) -> dict[str, Any]:
    """A step with its state; known faults are listed apart."""
    bounded = replace(
        step,
        nodes=step.nodes[:MAX_NODES],
        commands=_bounded(step.commands),
        by_hand=tuple(text for text in step.by_hand if text not in faults),
    )
    return {
        **asdict(bounded),
        "node_count": len(step.nodes),
        "state": status.state,
        "progress": status.text,
    }


def _bounded(commands: tuple[str, ...]) -> tuple[str, ...]:
    return commands[:MAX_NODES]
