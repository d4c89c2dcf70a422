"""Rehearses a list of steps on the model of a cluster's controllers. Pure.

`controller.kraft` decides; this module carries the state of the cluster from step to step: an
accepted step changes it for the steps after it, a refused one does not.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, assert_never

from featurewatch.controller.kraft import (
    ControllerState,
    RegisteredBroker,
    UpdateDecision,
    UpdateRequest,
    decide_update,
    decide_update_as_written,
    rules_of,
)
from featurewatch.controller.kraft.requests import FeatureLevelRecord
from featurewatch.controller.rehearsal.cluster import RehearsedCluster
from featurewatch.controller.rehearsal.descriptions import (
    consequences_of,
    describe_assumptions,
    describe_records,
    irreversible_notes,
)
from featurewatch.controller.rehearsal.nodes import (
    register_broker,
    start_controller,
    stop_node,
    unregister_node,
)
from featurewatch.controller.rehearsal.partition_outcomes import (
    apply_zookeeper_step,
    operate,
    with_partitions,
)
from featurewatch.controller.rehearsal.partition_steps import PartitionStep
from featurewatch.controller.rehearsal.partitions.state import RehearsedPartitions
from featurewatch.controller.rehearsal.result import (
    FEATUREWATCH,
    StepOutcome,
    StepVerdict,
    undecided,
)
from featurewatch.controller.rehearsal.steps import (
    RegisterNode,
    RestartNodes,
    ShutDownBroker,
    Step,
    StopNode,
    UnregisterNode,
    UpdateLevels,
)
from featurewatch.streams.types import (
    KRAFT_VERSION,
    FeatureLevel,
    FeatureName,
    NodeId,
    NodeKey,
    Role,
    SupportedRanges,
)

__all__ = [
    "AtomicStep",
    "StepOutcome",
    "StepVerdict",
    "all_levels",
    "apply_step",
    "expand_step",
    "rehearse",
    "rehearse_zookeeper",
]


def rehearse(
    release: str,
    state: ControllerState,
    steps: Iterable[Step],
    *,
    voters: Sequence[NodeId] = (),
    whole: bool = True,
    partitions: RehearsedPartitions | None = None,
    as_written: bool = False,
) -> list[StepOutcome]:
    """The outcome of each step, in order; a `RestartNodes` is expanded into atomic steps.

    ``release`` is the active controller's; ``voters`` defaults to those of the state. ``whole`` is
    false if not every registration is known: an accepted update then has the verdict unknown.
    Without ``partitions`` steps about them are refused. ``as_written``: updates of levels are
    decided as KIP-778 describes, which differs from every release.

    A step that a controller of an unknown release decides on has the verdict unknown.

    Raises:
        UnknownReleaseError: if the release is unknown.
    """
    rules_of(release)
    cluster = replace(
        RehearsedCluster.of(release, state, voters, partitions), as_written=as_written
    )
    outcomes: list[StepOutcome] = []
    for step in steps:
        for atomic_step in expand_step(cluster, step):
            outcome = apply_step(cluster, atomic_step)
            if (
                not whole
                and outcome.verdict is StepVerdict.ACCEPTED
                and isinstance(atomic_step, UpdateLevels)
            ):
                outcome = replace(
                    outcome, verdict=StepVerdict.UNKNOWN, notes=(*outcome.notes, _PART)
                )
            if isinstance(step, RestartNodes):
                outcome = replace(outcome, notes=())  # the node returns at once
            outcomes.append(outcome)
            cluster = outcome.after
    return outcomes


def rehearse_zookeeper(
    controller_id: NodeId, partitions: RehearsedPartitions, steps: Iterable[Step]
) -> list[StepOutcome]:
    """The outcome of each step in ZooKeeper mode, where there are no levels to rehearse."""
    brokers = tuple(
        RegisteredBroker(NodeId(broker_id), SupportedRanges()) for broker_id in partitions.brokers
    )
    state = ControllerState(controller_id, SupportedRanges(), {}, brokers)
    cluster = RehearsedCluster.of("", state, partitions=partitions)
    outcomes: list[StepOutcome] = []
    for step in steps:
        for atomic_step in expand_step(cluster, step):
            outcomes.append(apply_zookeeper_step(cluster, atomic_step))
            cluster = outcomes[-1].after
    return outcomes


AtomicStep = (
    UpdateLevels | StopNode | ShutDownBroker | RegisterNode | UnregisterNode | PartitionStep
)
"""A step with a single outcome."""

_PART: Final = (
    "only nodes that answer are known: one that is registered and silent could object, "
    "the metadata log tells (--bootstrap-controller)"
)


def expand_step(cluster: RehearsedCluster, step: Step) -> Iterator[AtomicStep]:
    """The step, or the atomic steps of a restart.

    It restarts controllers first, the active one last of them, then the brokers that run.
    """
    if not isinstance(step, RestartNodes):
        yield step
        return
    nodes = (
        [step.which] if isinstance(step.which, NodeKey) else _selected_nodes(cluster, step.which)
    )
    suffix = f"@{step.release}" if step.release else ""
    for node in nodes:
        yield StopNode(node)
        yield RegisterNode(f"register:{node}{suffix}", node, step.release)


def _selected_nodes(cluster: RehearsedCluster, which: str) -> list[NodeKey]:
    ids = sorted({*cluster.voters, *(controller.id for controller in cluster.state.controllers)})
    controllers = [
        key for node_id in ids if (key := NodeKey(Role.CONTROLLER, node_id)) not in cluster.stopped
    ]
    controllers.sort(key=lambda key: key == cluster.active)
    brokers = sorted(
        key
        for broker in cluster.state.brokers
        if (key := NodeKey(Role.BROKER, broker.id)) not in cluster.stopped
    )
    return [
        *(controllers if which in ("controllers", "all") else ()),
        *(brokers if which in ("brokers", "all") else ()),
    ]


def apply_step(cluster: RehearsedCluster, step: AtomicStep) -> StepOutcome:
    """The outcome of one step; its ``after`` is the cluster for the next step."""
    return with_partitions(_apply_step(cluster, step))


def _apply_step(cluster: RehearsedCluster, step: AtomicStep) -> StepOutcome:
    match step:
        case StopNode(node) | ShutDownBroker(node):
            return stop_node(cluster, step, node)
        case RegisterNode(node=NodeKey(role=Role.CONTROLLER)):
            return start_controller(cluster, step)
        case _ if not cluster.has_leader:
            text = "no majority of the voters lives: no controller is active, and none answers"
            return StepOutcome(
                step, StepVerdict.UNKNOWN, FEATUREWATCH, cluster, cluster, messages=(text,)
            )
        case _ if not cluster.release:
            return undecided(cluster, step)
        case UpdateLevels():
            return _update_levels(cluster, step)
        case RegisterNode():
            return register_broker(cluster, step)
        case UnregisterNode():
            return unregister_node(cluster, step)
        case PartitionStep():
            return operate(cluster, step)
        case _:
            assert_never(step)


def _update_levels(cluster: RehearsedCluster, step: UpdateLevels) -> StepOutcome:
    before = cluster.state
    decide = decide_update_as_written if cluster.as_written else decide_update
    decision = decide(cluster.release, before, UpdateRequest(step.updates))
    state = _after_update(cluster.release, before, decision)
    old_levels, new_levels = all_levels(before), all_levels(state)
    return StepOutcome(
        step,
        StepVerdict.ACCEPTED if decision.accepted else StepVerdict.REFUSED,
        cluster.controller_label,
        cluster,
        replace(cluster, state=state),
        answer=decision.answer,
        results=decision.results,
        messages=decision.refusals,
        effects=tuple(describe_records(decision, before.levels)),
        notes=(*irreversible_notes(old_levels, new_levels), *describe_assumptions(decision)),
        consequences=consequences_of(old_levels, new_levels),
    )


def _after_update(
    release: str, state: ControllerState, decision: UpdateDecision
) -> ControllerState:
    levels = dict(state.levels)
    for record in decision.records:
        if not isinstance(record, FeatureLevelRecord):
            continue
        if record.feature == KRAFT_VERSION and rules_of(release).skips_kraft_records:
            continue
        if record.level:
            levels[record.feature] = record.level
        else:
            levels.pop(record.feature, None)
    kraft = state.kraft_version if decision.kraft_version is None else decision.kraft_version
    return replace(state, levels=levels, kraft_version=kraft)


def all_levels(state: ControllerState) -> dict[FeatureName, FeatureLevel]:
    """All finalized levels by name, kraft.version among them where it is above 0."""
    levels = {**state.levels, KRAFT_VERSION: state.kraft_version}
    return {name: level for name, level in sorted(levels.items()) if level}
