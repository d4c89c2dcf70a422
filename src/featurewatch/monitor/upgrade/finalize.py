"""Whether the levels of a plan may be finalized now. Pure."""

from typing import Final

from featurewatch.controller.compatibility import Verdict
from featurewatch.monitor.readiness.state_timers import Limits
from featurewatch.monitor.step import MonitorState
from featurewatch.monitor.upgrade.checks import finalize_checks
from featurewatch.monitor.upgrade.nodes import nodes_of
from featurewatch.monitor.upgrade.plan import Plan, PlanError, Precondition
from featurewatch.monitor.upgrade.plan_file import ReadPlan
from featurewatch.monitor.upgrade.status import check_cluster, check_target, edited_note
from featurewatch.streams.types import FeatureLevel, FeatureName
from featurewatch.tables.image.cluster import Authority

_OFF: Final = FeatureLevel(0)


def finalize_preconditions(
    read: ReadPlan, state: MonitorState, limits: Limits, now_ms: int
) -> tuple[Precondition, ...]:
    """Every precondition of a plan's last step, at this moment.

    Raises:
        PlanError: The plan is of another cluster or of an unknown release, or has no levels.
    """
    plan = read.plan
    check_cluster(plan, state.image.cluster)
    check_target(plan)
    if not plan.after:
        raise PlanError("the plan has no levels to finalize")
    if state.image.authority is not Authority.LOG:
        raise PlanError(
            "levels are finalized in KRaft mode, by what the metadata log says: pass "
            "--bootstrap-controller, or read a worker that follows it"
        )
    nodes = nodes_of(state, limits, now_ms)
    edited = edited_note(read)
    text = edited[0] if edited else "the plan is as featurewatch wrote it"
    remedy = "make it again, or --accept plan" if edited else ""
    mine = Precondition("plan", Verdict.NO if edited else Verdict.YES, text, remedy)
    return (mine, *finalize_checks(plan, state, nodes, limits, now_ms))


def missing_levels(plan: Plan, state: MonitorState) -> dict[FeatureName, FeatureLevel]:
    """The levels of a plan that are not finalized yet; a higher one is kept."""
    finalized = state.image.features.levels
    return {name: level for name, level in plan.after.items() if level > finalized.get(name, _OFF)}
