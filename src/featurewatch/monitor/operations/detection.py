"""From the changes of one commit to the steps of operations. No input or output, no clock.

An election of thousands of partitions is one step: those of one reason and one broker are counted,
and the first of them named. A reassignment has steps of its own for each partition.
"""

from collections.abc import Mapping, Set
from typing import Any, Final, NamedTuple

from featurewatch.controller.partitions.kraft_election import NO_LEADER
from featurewatch.controller.partitions.release_rules import CompletionRule
from featurewatch.monitor.operations.brokers import BrokerChanged, UsableBrokers
from featurewatch.streams.outputs import (
    ElectionReason,
    Operation,
    OperationKind,
    OperationPhase,
)
from featurewatch.streams.types import ClusterId
from featurewatch.tables.partitions.image import Brokers, Partition
from featurewatch.tables.partitions.replay import (
    PartitionAdded,
    PartitionChanged,
    TopicAdded,
    TopicRemoved,
)

NAMED: Final = 20
"""The partitions that a step names."""


class CommitContext(NamedTuple):
    """The commit whose records are applied, for the steps that follow from it."""

    cluster: ClusterId
    leader_epoch: int
    append_ms: int
    seen_ms: int


class _Topic:
    """The partitions that a commit adds to one topic."""

    def __init__(self, name: str, created_offset: int, first: int, offset: int) -> None:
        self.name, self.created_offset, self.first, self.offset = (
            name,
            created_offset,
            first,
            offset,
        )
        self.count = 0
        self.replicas = 0


class _Election:
    """The elections of one reason, away from one broker."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.led = 0
        self.leaderless = 0
        self.named: list[list[Any]] = []


class OperationDetector:
    """Collects the changes of one commit in order; `finish` gives the steps.

    ``leaving`` are the brokers that stop to be usable by a record of this commit: Kafka writes the
    changes of their partitions before that record. ``completion`` is the rule of the controller's
    release (None: not known).
    """

    def __init__(
        self, context: CommitContext, leaving: Set[int], completion: CompletionRule | None
    ) -> None:
        self._context = context
        self._leaving = leaving
        self._completion = completion
        self._steps: list[Operation] = []
        self._topics: dict[str, _Topic] = {}
        self._elections: dict[tuple[ElectionReason, int], _Election] = {}

    def on_topic_added(self, added: TopicAdded) -> None:
        """A topic was created; its partitions follow."""
        self._topics[added.topic_id] = _Topic(added.name, added.offset, 0, added.offset)

    def on_topic_removed(self, removed: TopicRemoved) -> None:
        """A topic was deleted."""
        count = _count(removed.partitions, "partition")
        self._add(
            OperationKind.TOPIC_DELETION,
            OperationPhase.COMPLETED,
            f"{removed.topic_id}/{removed.offset}",
            removed.offset,
            f"Topic {removed.name} was deleted, with {count}",
            {"topic_id": removed.topic_id, "partitions": removed.partitions},
            topic=removed.name,
        )

    def on_partition_added(self, name: str, added: PartitionAdded) -> None:
        """A partition was created; ``name`` is its topic's."""
        topic_id, index = added.key
        topic = self._topics.get(topic_id)
        if topic is None:
            topic = self._topics[topic_id] = _Topic(name, -1, index, added.after.offset)
        topic.count += 1
        topic.replicas = len(added.after.replicas)

    def on_partition_changed(
        self, name: str, change: PartitionChanged, brokers: UsableBrokers
    ) -> None:
        """A partition changed; ``name`` is its topic's, ``brokers`` are those before the record."""
        before, after = change.before, change.after
        if before.leader != after.leader:
            self._on_leader(name, change, brokers)
        if (
            before.adding
            or before.removing
            or after.adding
            or after.removing
            or after.replicas is not before.replicas
        ):
            self._on_assignment(name, change)

    def on_broker(self, change: BrokerChanged) -> None:
        """A broker changed: its controlled shutdown begins and ends."""
        before, after = change.before, change.after
        if before is None or after is None or before.incarnation != after.incarnation:
            return
        name = f"{change.broker_id}/{after.epoch}"
        if after.shutting_down and not before.shutting_down:
            phase, summary = (
                OperationPhase.BEGAN,
                "is shutting down: its partitions get other leaders",
            )
        elif after.shutting_down and after.fenced and not before.fenced:
            phase, summary = OperationPhase.COMPLETED, "has shut down and leads no partitions"
        else:
            return
        summary = f"Broker {change.broker_id} {summary}"
        details = {"broker_epoch": after.epoch}
        kind = OperationKind.CONTROLLED_SHUTDOWN
        self._add(kind, phase, name, change.offset, summary, details, broker=change.broker_id)

    def finish(self) -> tuple[Operation, ...]:
        """The steps, in the order of their records."""
        for topic_id, topic in self._topics.items():
            self._add_topic(topic_id, topic)
        for (reason, broker_id), election in self._elections.items():
            self._add_election(reason, broker_id, election)
        return tuple(sorted(self._steps, key=lambda step: step.offset))

    def _add_topic(self, topic_id: str, topic: _Topic) -> None:
        count, is_new = _count(topic.count, "partition"), topic.created_offset >= 0
        details = {"topic_id": topic_id, "partitions": topic.count, "replicas": topic.replicas}
        replicas = f"{_count(topic.replicas, 'replica')} each"
        summary = f"Topic {topic.name} was created with {count}, {replicas}"
        if not is_new:
            summary = f"Topic {topic.name} was extended by {count}, from number {topic.first} on"
            details["first"] = topic.first
        kind = OperationKind.TOPIC_CREATION if is_new else OperationKind.PARTITION_ADDITION
        name = f"{topic_id}/{topic.offset}"
        phase = OperationPhase.COMPLETED
        self._add(kind, phase, name, topic.offset, summary, details, topic=topic.name)

    def _on_leader(self, name: str, change: PartitionChanged, brokers: UsableBrokers) -> None:
        before, after = change.before, change.after
        reason = self._election_reason(before, after, brokers)
        is_of_broker = reason not in (ElectionReason.PREFERRED, ElectionReason.RETURN)
        key = (reason, before.leader if is_of_broker else NO_LEADER)
        election = self._elections.get(key)
        if election is None:
            election = self._elections[key] = _Election(after.offset)
        if after.leader == NO_LEADER:
            election.leaderless += 1
        else:
            election.led += 1
        if len(election.named) < NAMED:
            election.named.append([f"{name}-{change.key[1]}", before.leader, after.leader])

    def _election_reason(
        self, before: Partition, after: Partition, brokers: UsableBrokers
    ) -> ElectionReason:
        leader = before.leader
        if after.recovering and not before.recovering:
            return ElectionReason.UNCLEAN
        if leader == NO_LEADER:
            return ElectionReason.RETURN
        if leader not in after.replicas:
            return ElectionReason.REASSIGNMENT
        if leader in self._leaving:
            return ElectionReason.FAILURE
        if leader not in brokers:
            is_orderly = brokers.shutting_down(leader)
            return ElectionReason.CONTROLLED_SHUTDOWN if is_orderly else ElectionReason.FAILURE
        if after.leader == after.replicas[0] and leader in after.isr:
            return ElectionReason.PREFERRED
        return ElectionReason.OFFLINE_REPLICA

    def _add_election(self, reason: ElectionReason, broker_id: int, election: _Election) -> None:
        details = {
            "partitions": election.led + election.leaderless,
            "without_leader": election.leaderless,
            "elections": election.named,
        }
        outcomes = []
        if election.led:
            outcomes.append(f"{_count(election.led, 'partition')} got another leader")
        if election.leaderless:
            outcomes.append(f"{_count(election.leaderless, 'partition')} lost their leader")
        if reason is ElectionReason.RETURN:
            outcomes = [f"{_count(election.led, 'partition')} without a leader got one"]
        self._add(
            OperationKind.ELECTION,
            OperationPhase.COMPLETED,
            f"{reason}/{broker_id}/{election.offset}",
            election.offset,
            f"{_BECAUSE[reason].format(broker_id)}: {', '.join(outcomes)}",
            details,
            reason=reason,
            broker=broker_id,
        )

    def _on_assignment(self, name: str, change: PartitionChanged) -> None:
        before, after = change.before, change.after
        phase = _phase(before, after, self._completion)
        if phase is None:
            return
        move = before.move or after.move
        began = after.offset if move is None else move.offset
        (topic_id, index), target = change.key, _target(after)
        caught_up = sum(broker_id in after.isr for broker_id in after.adding)
        details = {
            "replicas": list(after.replicas),
            "target": list(target),
            "adding": list(after.adding),
            "removing": list(after.removing),
            "isr": list(after.isr),
            "caught_up": caught_up,
        }
        text = {
            OperationPhase.BEGAN: f"moves from {_ids(_origin(after))} to {_ids(target)}",
            OperationPhase.REPLACED: f"has a new target: it moves to {_ids(target)}",
            OperationPhase.PROGRESSED: f"{caught_up} of {len(after.adding)} new replicas caught up",
            OperationPhase.COMPLETED: f"has moved to {_ids(target)}",
            OperationPhase.CANCELED: f"does not move: it stays on {_ids(target)}",
        }[phase]
        self._add(
            OperationKind.REASSIGNMENT,
            phase,
            f"{topic_id}-{index}/{began}",
            after.offset,
            f"Partition {name}-{index} {text}"
            if phase is not OperationPhase.PROGRESSED
            else f"Partition {name}-{index} moves: {text}",
            details,
            topic=name,
            partition=index,
        )

    def _add(
        self,
        kind: OperationKind,
        phase: OperationPhase,
        name: str,
        offset: int,
        summary: str,
        details: Mapping[str, Any],
        *,
        reason: str = "",
        topic: str = "",
        partition: int = -1,
        broker: int = -1,
    ) -> None:
        context = self._context
        operation = f"{context.cluster}/{kind}/{name}"
        step = Operation(
            id=f"{operation}/{phase}/{offset}",
            cluster=context.cluster,
            operation=operation,
            kind=kind,
            phase=phase,
            reason=reason,
            topic=topic,
            partition=partition,
            broker=broker,
            summary=summary,
            details=details,
            offset=offset,
            leader_epoch=context.leader_epoch,
            append_ms=context.append_ms,
            seen_ms=context.seen_ms,
        )
        self._steps.append(step)


_BECAUSE: Final[Mapping[ElectionReason, str]] = {
    ElectionReason.FAILURE: "Broker {} failed or restarted",
    ElectionReason.CONTROLLED_SHUTDOWN: "Broker {} is shutting down",
    ElectionReason.PREFERRED: "Preferred leaders were elected",
    ElectionReason.UNCLEAN: "Unclean election after leader {}, acknowledged writes may be lost",
    ElectionReason.REASSIGNMENT: "Broker {} is no longer a replica",
    ElectionReason.RETURN: "A broker recovered",
    ElectionReason.OFFLINE_REPLICA: "Replicas on broker {} went offline",
}


def _phase(
    before: Partition, after: Partition, completion: CompletionRule | None
) -> OperationPhase | None:
    """The phase of a reassignment that a change leads to; None: no new phase."""
    if not before.reassigns:
        if after.reassigns:
            return OperationPhase.BEGAN
        return OperationPhase.COMPLETED if after.replicas != before.replicas else None
    if after.reassigns:
        if (after.adding, after.removing) != (before.adding, before.removing):
            return OperationPhase.REPLACED
        if _target(after) != _target(before):
            return OperationPhase.REPLACED
        caught_up, had_caught_up = (
            {*partition.isr} & {*partition.adding} for partition in (after, before)
        )
        return OperationPhase.PROGRESSED if caught_up != had_caught_up else None
    is_completion = {*after.replicas} == {*before.replicas} - {*before.removing}
    is_cancellation = {*after.replicas} == {*before.replicas} - {*before.adding}
    if is_completion and is_cancellation:  # it adds what it removes
        is_completion = completion is CompletionRule.ALL
    is_canceled = is_cancellation and not is_completion
    return OperationPhase.CANCELED if is_canceled else OperationPhase.COMPLETED


def _target(partition: Partition) -> Brokers:
    return tuple(r for r in partition.replicas if r not in partition.removing)


def _origin(partition: Partition) -> Brokers:
    return tuple(r for r in partition.replicas if r not in partition.adding)


def _ids(brokers: Brokers) -> str:
    return ",".join(map(str, brokers)) or "no broker"


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
