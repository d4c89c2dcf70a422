"""Invariants of the topics of a cluster, whatever fails; each rule has a name."""

from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.reference.zookeeper.machines.protocol import WatchKind
from featurewatch.reference.zookeeper.machines.replicas.light_replicas import LightReplicas, LogKey
from featurewatch.reference.zookeeper.machines.topics.broker_requests import (
    BrokerRequest,
    LeaderAndIsrRequest,
)
from featurewatch.reference.zookeeper.machines.topics.context import (
    ControllerContext,
    PartitionLeadership,
)
from featurewatch.reference.zookeeper.machines.topics.znodes import decode_state, decode_topic
from tests.simulation.reference.tree import History, Transaction

StateKey = tuple[TopicPartition, int]


class Acknowledged(NamedTuple):
    """A write that a client knows to be safe, and the epoch of the leader that said so."""

    value: int
    leader_epoch: int


MemoryOf = Callable[[int], ControllerContext | None]
"""The memory of the controller with an epoch; None if it has ended."""


class TopicAuditor:
    """Reads the history of ZooKeeper, and is shown what brokers accept and clients are told.

    The rules are those of Kafka's controller.
    """

    def __init__(self, history: History, memory_of: MemoryOf) -> None:
        self._history = history
        self.memory_of = memory_of
        self._seen = 0
        self._epoch = 0
        self._states: dict[TopicPartition, PartitionLeadership] = {}
        self._versions: defaultdict[StateKey, list[PartitionLeadership]] = defaultdict(list)
        self.acknowledged: defaultdict[LogKey, list[Acknowledged]] = defaultdict(list)
        self.elections = self.deleted = 0

    def check(self) -> None:
        """Checks the transactions since the last call."""
        for transaction in self._history.log[self._seen :]:
            for change in transaction.changes:
                if change.kind is not WatchKind.CHILDREN:
                    self._on_change(transaction, change.path)
        self._seen = len(self._history.log)

    def _on_change(self, transaction: Transaction, path: str) -> None:
        node = transaction.after.get(path)
        if path == "/controller_epoch" and node is not None:
            self._epoch = int(node.data)
            self.elections += 1
        elif path.endswith("/state"):
            _, _, _, topic, _, number, _ = path.split("/")
            partition = TopicPartition(topic, int(number))
            if node is None:
                self._states.pop(partition, None)
                self.deleted += 1
            else:
                before = self._states.get(partition)
                state = decode_state(partition, node.data, node.stat.version)
                self._states[partition] = state
                self._versions[partition, state.leader_epoch].append(state)
                self._check_state(transaction, partition, before, state)

    def _check_state(
        self,
        transaction: Transaction,
        partition: TopicPartition,
        before: PartitionLeadership | None,
        state: PartitionLeadership,
    ) -> None:
        """Checks the rules that both forms have, and those of this one."""
        assert state.controller_epoch == self._epoch, "only the newest controller writes"
        self._check_form(transaction, partition, before, state)
        assert state.leader in (-1, *state.isr), "a leader is in the ISR"
        if before is not None:
            assert state.leader_epoch >= before.leader_epoch, "leader epochs only grow"
            is_same = state.leader_epoch == before.leader_epoch
            assert not is_same or state.leader == before.leader, "one leader per epoch"

    def _check_form(
        self,
        transaction: Transaction,
        partition: TopicPartition,
        before: PartitionLeadership | None,
        state: PartitionLeadership,
    ) -> None:
        del transaction, partition, before
        assert state.isr, "an ISR has members"

    def on_sent(self, controller_epoch: int, broker_id: int, request: BrokerRequest) -> None:
        """A controller's request has entered the channel to a broker."""

    def on_accepted(self, broker: LightReplicas, request: BrokerRequest, before: int) -> None:
        """A broker has accepted a request; ``before`` is the controller epoch that it had."""
        assert request.controller_epoch >= before, "no request of a deposed controller is accepted"
        if not isinstance(request, LeaderAndIsrRequest):
            return
        for state in request.states:
            written = self._versions[state.partition, state.leader_epoch]
            assert any(
                (known.leader, known.isr, known.partition_epoch)
                == (state.leader, state.isr, state.partition_epoch)
                for known in written
            ), "a state is written before it is sent"
            replica = broker.replicas.get(state.partition)
            if replica is not None and replica.state == state and state.leader == broker.broker_id:
                self._check_log(broker, state.partition, state.leader_epoch)

    def _check_log(
        self, broker: LightReplicas, partition: TopicPartition, leader_epoch: int
    ) -> None:
        """A leader has what was acknowledged up to its epoch: it may learn late that it was one,
        and be no replica any more. Later leaders have acknowledged more since then."""
        written = self.acknowledged[broker.replicas[partition].log_key]
        first = self._safe_since(partition, leader_epoch)
        expected = {write.value for write in written if first <= write.leader_epoch <= leader_epoch}
        missing = expected - {*broker.log(partition)}
        assert not missing, f"an acknowledged write is lost: {partition} on {broker.broker_id}"

    def _safe_since(self, partition: TopicPartition, leader_epoch: int) -> int:
        """The leader epoch from which on nothing that was acknowledged may be lost until now."""
        del partition, leader_epoch
        return 0

    def _learns_epoch(self, broker_id: int, state: PartitionLeadership) -> bool:
        """Whether a replica is informed of the newest epoch."""
        del broker_id, state
        return True

    def check_at_rest(self, brokers: dict[int, LightReplicas]) -> None:
        """Checks a cluster whose brokers all live and whose queues are empty.

        In the order of paths, which is not that of the tree: the first rule that is broken is
        reported, and a deletion that has not ended leaves partitions without leaders.
        """
        self.check()
        tree = self._history.tree
        for path, node in sorted(tree.items()):
            parent, _, topic = path.rpartition("/")
            if parent == "/admin/delete_topics":
                raise AssertionError(f"every deletion ends: {topic}")
            if parent != "/brokers/topics":
                continue
            for number, assignment in decode_topic(node.data).assignments.items():
                partition = TopicPartition(topic, number)
                assert not assignment.is_being_reassigned, f"every reassignment ends: {partition}"
                state = self._states.get(partition)
                assert state is not None, f"every partition is created: {partition}"
                assert state.leader in brokers, f"every partition is led: {partition} {state}"
                assert {*state.isr} >= {*assignment.replicas}, f"followers are in sync: {partition}"
                for broker_id in assignment.replicas:
                    replica = brokers[broker_id].replicas.get(partition)
                    assert replica is not None, f"every broker learns its part: {partition}"
                    is_newest = replica.state.leader_epoch == state.leader_epoch
                    assert is_newest or not self._learns_epoch(broker_id, state), (
                        f"every broker learns the newest epoch: {partition} on {broker_id}"
                    )
                for broker in brokers.values():
                    assert broker.leaders.get(partition) == state.leader, (
                        f"every broker learns the leader: {partition} on {broker.broker_id}"
                    )
                self._check_log(brokers[state.leader], partition, state.leader_epoch)
