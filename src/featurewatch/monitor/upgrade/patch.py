"""A roll to another patch of the release that all nodes run: it changes no level. Pure.

No request shows which patch of a release a node runs, and patches have the same ranges. What shows
is that a node was restarted: it registers again.
"""

from collections.abc import Iterator
from dataclasses import replace

from featurewatch.common.id_runs import format_ids
from featurewatch.controller.compatibility import Verdict
from featurewatch.controller.kraft.releases import Release
from featurewatch.monitor.upgrade.kraft import KraftCluster, kraft_steps
from featurewatch.monitor.upgrade.nodes import ClusterNodes
from featurewatch.monitor.upgrade.plan import Mode, Options, Plan, Precondition, Step, StepKind
from featurewatch.streams.types import NodeId

NOTE = (
    "which patch release a node runs is not known, as nodes do not report it; counted is who "
    "registered since the plan was made, which a restart does"
)


def patch_steps(
    cluster: KraftCluster, target: Release, patch: str, options: Options
) -> Iterator[Step]:
    """The steps to a patch such as ``4.3.1`` of the release that all nodes run: restarts alone."""
    way_back = "restart the nodes on the patch release that they ran"
    for step in kraft_steps(cluster, target, 0, options, f"Kafka {patch}"):
        if step.kind is StepKind.PREPARE:
            yield replace(step, commands=())
        elif step.kind is StepKind.ROLL:
            yield replace(
                step,
                by_hand=(*step.by_hand, NOTE),
                preconditions=step.preconditions[:1],
                release="",
                way_back=way_back,
            )


def is_patch(plan: Plan) -> bool:
    """Whether a plan restarts nodes on another patch of their release, and nothing else."""
    return plan.mode is Mode.KRAFT and plan.step("finalize") is None


def restarted(plan: Plan, nodes: ClusterNodes) -> frozenset[NodeId]:
    """The nodes that registered after the plan was made."""
    return frozenset(
        node_id for node_id, node in nodes.nodes.items() if node.registered_ms > plan.made_ms
    )


def times_checks(nodes: ClusterNodes) -> Iterator[Precondition]:
    """Says that it is not known which nodes were restarted, if it is not."""
    silent = [node_id for node_id, node in nodes.nodes.items() if node.registered_ms < 0]
    if silent:
        text = f"when node {format_ids(silent)} was restarted is not known: it does not register"
        remedy = "keep account by hand; `featurewatch upgrade check restart` works for each node"
        yield Precondition("restarts", Verdict.UNKNOWN, text, remedy)
