"""The outcomes of steps for topics and partitions, under both kinds of controllers."""

from dataclasses import replace
from typing import Final

from featurewatch.controller.partitions.kraft_election import KraftPartition
from featurewatch.controller.rehearsal.cluster import RehearsedCluster
from featurewatch.controller.rehearsal.partition_steps import PartitionStep
from featurewatch.controller.rehearsal.partitions import kraft, zookeeper
from featurewatch.controller.rehearsal.partitions.impact import (
    NAMED,
    describe,
    impact_of,
)
from featurewatch.controller.rehearsal.partitions.operations import (
    CreateTopic,
    ElectLeaders,
    OperationResult,
    PartitionRefusal,
    ReassignPartitions,
)
from featurewatch.controller.rehearsal.partitions.reassignment_file import target_error
from featurewatch.controller.rehearsal.partitions.state import RehearsedPartitions, election_rules
from featurewatch.controller.rehearsal.result import StepOutcome, StepVerdict, impossible
from featurewatch.controller.rehearsal.steps import (
    LOSE,
    RegisterNode,
    ShutDownBroker,
    Step,
    StopNode,
    UnregisterNode,
)
from featurewatch.streams.types import Role

REASSIGNMENT_TOOL: Final = "kafka-reassign-partitions"
"""It checks its file before it sends a request."""

_PARTITIONS_NEEDED: Final = (
    "the partitions are not known: read the metadata log, with --bootstrap-controller or "
    "--log-directory"
)


def with_partitions(outcome: StepOutcome) -> StepOutcome:
    """The outcome of a broker's stop, start or end of registration, with that for partitions."""
    cluster, step = outcome.before, outcome.step
    if cluster.partitions is None or outcome.verdict is not StepVerdict.ACCEPTED:
        return outcome
    before, result = _current(cluster, cluster.partitions), None
    match step:
        case StopNode(node) | ShutDownBroker(node) if node.role is Role.BROKER:
            if node not in cluster.stopped:
                in_order = not _is_death(step)
                result = kraft.stop_broker(before, int(node.node_id), in_order=in_order)
                result = replace(result, notes=_pause_notes(before, step))
        case RegisterNode(node=node) if node.role is Role.BROKER:
            result = _restarted(before, int(node.node_id))
        case UnregisterNode(node) if node.role is Role.BROKER:
            result = kraft.unregister_broker(before, int(node.node_id))
    return outcome if result is None else _added(outcome, before, result)


def _current(cluster: RehearsedCluster, partitions: RehearsedPartitions) -> RehearsedPartitions:
    """The partitions under the release and the levels that hold now."""
    rules = election_rules(cluster.release, cluster.state.levels)
    return replace(partitions, rules=rules)


def _restarted(before: RehearsedPartitions, broker_id: int) -> OperationResult:
    """A process that registers; the one that ran with its id died before."""
    broker = before.brokers.get(broker_id)
    if broker is not None and not broker.is_fenced:
        before = kraft.stop_broker(before, broker_id, in_order=False).after
    return kraft.start_broker(before, broker_id)


def _is_death(step: Step) -> bool:
    """Whether a broker stops without a shutdown in order."""
    return isinstance(step, StopNode) and step.verb == LOSE


def _pause_notes(before: RehearsedPartitions, step: Step) -> tuple[str, ...]:
    """The effects of a broker's death until the controller notices it."""
    if not isinstance(step, StopNode) or not _is_death(step):
        return ()
    led_count = sum(state.leader == step.node.node_id for state in before.partitions.values())
    if not led_count:
        return ()
    return (
        f"until its session ends (broker.session.timeout.ms), clients wait for the {led_count:,} "
        "partitions that it led",
    )


def operate(cluster: RehearsedCluster, step: PartitionStep) -> StepOutcome:
    """The outcome of a request about topics and partitions."""
    if cluster.partitions is None:
        return impossible(cluster, step, _PARTITIONS_NEEDED)
    is_kraft = cluster.partitions.rules is not None
    before = _current(cluster, cluster.partitions) if is_kraft else cluster.partitions
    outcome = StepOutcome(step, StepVerdict.ACCEPTED, _responder(cluster), cluster, cluster)
    match step.operation:
        case ReassignPartitions() as operation:
            text = target_error(before, operation.targets)
            if text is not None:
                return replace(
                    impossible(cluster, step, text),
                    responder=REASSIGNMENT_TOOL,
                )
            result = (kraft if is_kraft else zookeeper).reassign(before, operation)
            if any(map(_is_moving, before.partitions.values())):
                note = f"reassignments are in progress: {REASSIGNMENT_TOOL} asks for --additional"
                result = replace(result, notes=(*result.notes, note))
        case ElectLeaders() as operation:
            result = (kraft if is_kraft else zookeeper).elect(before, operation)
        case CreateTopic() as operation:
            result = (kraft if is_kraft else zookeeper).create_topic(before, operation)
        case file:
            return impossible(cluster, step, f"{file.path} was not read")
    return _added(outcome, before, result)


def _is_moving(state: KraftPartition) -> bool:
    return bool(state.adding or state.removing)


def apply_zookeeper_step(cluster: RehearsedCluster, step: Step) -> StepOutcome:
    """The outcome of a step in ZooKeeper mode, where only operations are rehearsed."""
    before = cluster.partitions
    if before is None:
        return impossible(cluster, step, _PARTITIONS_NEEDED)
    match step:
        case PartitionStep():
            return operate(cluster, step)
        case StopNode(node) | ShutDownBroker(node) if node.role is Role.BROKER:
            broker_id = int(node.node_id)
            broker = before.brokers.get(broker_id)
            if broker is None or broker.is_fenced:
                return impossible(cluster, step, f"{node} is not there, and cannot be lost")
            in_order = isinstance(step, ShutDownBroker)
            result = zookeeper.stop_broker(before, broker_id, in_order=in_order)
        case RegisterNode(node=node) if node.role is Role.BROKER:
            broker = before.brokers.get(broker_id := int(node.node_id))
            if broker is not None and not broker.is_fenced:
                before = zookeeper.stop_broker(before, broker_id, in_order=False).after
            result = zookeeper.start_broker(before, broker_id)
        case _:
            text = "in ZooKeeper mode brokers, partitions and topics are rehearsed, and no levels"
            return impossible(cluster, step, text)
    outcome = StepOutcome(step, StepVerdict.ACCEPTED, _responder(cluster), cluster, cluster)
    return _added(outcome, before, result)


def _responder(cluster: RehearsedCluster) -> str:
    if cluster.partitions is not None and cluster.partitions.rules is None:
        return f"controller {cluster.state.id} (ZooKeeper mode)"
    return cluster.controller_label


def _added(
    outcome: StepOutcome, before: RehearsedPartitions, result: OperationResult
) -> StepOutcome:
    """The outcome with the result for partitions; a refusal of any of them refuses the step."""
    impact = impact_of(before, result)
    refusals = _refusal_texts(result.refusals)
    is_changed = bool(impact.changed) or not refusals
    return replace(
        outcome,
        verdict=StepVerdict.REFUSED if refusals else outcome.verdict,
        after=replace(outcome.after, partitions=result.after),
        messages=(*outcome.messages, *refusals),
        effects=(*outcome.effects, *(describe(impact) if is_changed else ())),
        notes=(*outcome.notes, *result.notes),
        partitions=impact,
    )


def _refusal_texts(refusals: tuple[PartitionRefusal, ...]) -> tuple[str, ...]:
    """Kafka's texts, each with the partitions that got it."""
    partitions: dict[str, list[str]] = {}
    for refusal in refusals:
        named = partitions.setdefault(refusal.text, [])
        if refusal.partition is not None:
            named.append(str(refusal.partition))
    texts = [
        f"{text} ({_first_of(named)})" if named else text for text, named in partitions.items()
    ]
    if len(texts) > NAMED:
        texts[NAMED:] = [f"and {len(texts) - NAMED:,} more refusals"]
    return tuple(texts)


def _first_of(names: list[str]) -> str:
    shown = ", ".join(names[:NAMED])
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED:,} more"
