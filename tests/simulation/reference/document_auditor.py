"""Invariants of topics under the controller of Kafka Controller Internals; each rule has a name.

They are the document's, not those of released Kafka: an ISR may be empty, and a leader from outside
the ISR is elected wherever no member of it is alive, so that writes may be lost then, and only
then. The epochs are Kafka's, as the document names none.
"""

from collections import defaultdict
from typing import NamedTuple

from featurewatch.controller.partitions.assignment import (
    ReplicaAssignment,
    TopicPartition,
    without,
)
from featurewatch.reference.zookeeper.machines.replicas.light_replicas import LightReplicas
from featurewatch.reference.zookeeper.machines.topics.broker_requests import (
    BrokerRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from featurewatch.reference.zookeeper.machines.topics.context import PartitionLeadership
from featurewatch.reference.zookeeper.machines.topics.znodes import (
    REASSIGN_PARTITIONS,
    TOPICS,
    decode_reassignments,
    decode_topic,
)
from tests.simulation.reference.topic_auditor import MemoryOf, TopicAuditor
from tests.simulation.reference.tree import History, Transaction, Tree


class Stopped(NamedTuple):
    """A replica that a controller has told to stop."""

    controller_epoch: int
    broker_id: int
    partition: TopicPartition


class DocumentAuditor(TopicAuditor):
    """Checks a history by the rules of the document."""

    def __init__(self, history: History, memory_of: MemoryOf) -> None:
        super().__init__(history, memory_of)
        self._assignments: dict[TopicPartition, ReplicaAssignment] = {}
        self._stopped: set[Stopped] = set()
        self._informed: set[tuple[int, int, int]] = set()
        self._unclean: defaultdict[TopicPartition, list[int]] = defaultdict(list)
        self.reassigned = self.unclean = self.empty = 0

    # -- what controllers send ---------------------------------------------------------------------

    def on_sent(self, controller_epoch: int, broker_id: int, request: BrokerRequest) -> None:
        """A started broker gets its metadata first (C-40); a stopped replica is noted."""
        start = (controller_epoch, broker_id, request.broker_epoch)
        if start not in self._informed:
            self._informed.add(start)
            assert isinstance(request, UpdateMetadataRequest), "UpdateMetadata comes first"
        if isinstance(request, StopReplicaRequest):
            self._stopped |= {
                Stopped(controller_epoch, broker_id, state.partition) for state in request.states
            }

    # -- leaders and ISRs --------------------------------------------------------------------------

    def _check_form(
        self,
        transaction: Transaction,
        partition: TopicPartition,
        before: PartitionLeadership | None,
        state: PartitionLeadership,
    ) -> None:
        memory = self.memory_of(state.controller_epoch)
        if before is None:
            replicas = self._assignments[partition].replicas
            first = tuple(broker_id for broker_id in replicas if broker_id in state.isr)
            assert state.isr == first, "the first ISR has the order of the assignment"
            assert state.leader == first[0], "the first live replica leads a new partition"
            return
        if state.leader_epoch == before.leader_epoch:
            return  # a leader's own ISR
        is_unclean = state.leader not in (-1, *before.isr)
        self.empty += not state.isr
        if is_unclean:
            self.unclean += 1
            self._unclean[partition].append(state.leader_epoch)
            assert state.isr == (state.leader,), "an unclean leader is the ISR"
            assert memory is None or not any(
                memory.is_online(member, partition) for member in before.isr
            ), "an unclean leader is elected only if no ISR member is alive"
            return
        assert {*state.isr} <= {*before.isr}, "the controller takes nobody into an ISR"
        if state.leader == before.leader or state.leader == -1:
            for member in without(before.isr, state.isr):
                stopped = Stopped(state.controller_epoch, member, partition)
                is_known = memory is not None and member in memory.brokers
                assert not is_known or stopped in self._stopped, (
                    "a replica is stopped before it leaves the ISR"
                )

    def _safe_since(self, partition: TopicPartition, leader_epoch: int) -> int:
        """Since the last unclean election."""
        epochs = [epoch for epoch in self._unclean[partition] if epoch <= leader_epoch]
        return max(epochs, default=0)

    def _learns_epoch(self, broker_id: int, state: PartitionLeadership) -> bool:
        """Who leads: of a smaller ISR, the followers are not informed (C-34)."""
        return broker_id == state.leader

    # -- reassignments -----------------------------------------------------------------------------

    def _on_change(self, transaction: Transaction, path: str) -> None:
        super()._on_change(transaction, path)
        parent, _, topic = path.rpartition("/")
        node = transaction.after.get(path)
        if parent == TOPICS and node is not None:
            for number, assignment in decode_topic(node.data).assignments.items():
                partition = TopicPartition(topic, number)
                before = self._assignments.get(partition)
                self._assignments[partition] = assignment
                if before not in (None, assignment) and partition in self._states:
                    self._check_reassignment(transaction, partition, before, assignment)
        elif path == REASSIGN_PARTITIONS:
            requested = self._requested(transaction.after)
            for partition in self._requested(transaction.before).keys() - requested.keys():
                known = self._assignments.get(partition)
                assert known is None or not known.is_being_reassigned, (
                    "the target is in ZooKeeper until its reassignment ends"
                )

    def _check_reassignment(
        self,
        transaction: Transaction,
        partition: TopicPartition,
        before: ReplicaAssignment,
        after: ReplicaAssignment,
    ) -> None:
        target = self._requested(transaction.after).get(partition)
        assert target is not None, "the target is in ZooKeeper until its reassignment ends"
        if after.is_being_reassigned:
            origin = before.origin
            assert after.replicas == (*origin, *without(target, origin)), "AR is OAR + RAR"
            assert after.origin == origin, "OAR can be read from ZooKeeper"
            return
        assert after.replicas == target, "AR is RAR at the end"
        isr = self._states[partition].isr
        assert {*isr} == {*target}, "a reassignment ends with RAR in sync, and nobody else"
        self.reassigned += 1

    def _requested(self, tree: Tree) -> dict[TopicPartition, tuple[int, ...]]:
        node = tree.get(REASSIGN_PARTITIONS)
        return {} if node is None else dict(decode_reassignments(node.data))

    def check_at_rest(self, brokers: dict[int, LightReplicas]) -> None:
        """As in Kafka's form, and no request is left."""
        super().check_at_rest(brokers)
        assert not self._requested(self._history.tree), "every request of a reassignment ends"
