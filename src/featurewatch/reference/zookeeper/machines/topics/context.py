"""The memory of a controller: brokers, assignments, leaders, states, and topics being deleted.

Follows ``kafka.controller.ControllerContext``. Everything in it is read from ZooKeeper when a
controller is elected; the states and the brokers that shut down are known to it alone.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeVar

from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.controller.partitions.selectors import ElectionInput
from featurewatch.controller.partitions.states import PartitionState, ReplicaState
from featurewatch.reference.zookeeper.machines.encoding import Endpoint

NO_LEADER: Final = -1
"""The leader of a partition that has none."""
LEADER_OF_DELETED: Final = -2
"""The leader, in requests, of a partition whose topic is being deleted."""


@dataclass(frozen=True, slots=True)
class PartitionLeadership:
    """The state of a partition in ZooKeeper.

    ``controller_epoch`` is that of the controller that wrote it, ``partition_epoch`` the version of
    the znode, ``recovering`` whether the leader was elected outside the ISR and has not recovered.
    """

    leader: int
    isr: tuple[int, ...]
    leader_epoch: int = 0
    controller_epoch: int = 0
    partition_epoch: int = 0
    recovering: bool = False

    def changed(
        self, leader: int, isr: tuple[int, ...], controller_epoch: int, *, recovering: bool
    ) -> "PartitionLeadership":
        """The next state, with the next leader epoch, not yet written."""
        return replace(
            self,
            leader=leader,
            isr=isr,
            leader_epoch=self.leader_epoch + 1,
            controller_epoch=controller_epoch,
            recovering=recovering,
        )


class PartitionReplica(NamedTuple):
    """The replica of a partition on a broker; as text like Kafka's ``PartitionAndReplica``."""

    partition: TopicPartition
    broker_id: int

    def __str__(self) -> str:
        topic, number = self.partition
        return f"[Topic={topic},Partition={number},Replica={self.broker_id}]"


class ClusterBroker(NamedTuple):
    """A registered broker: its epoch (the transaction that created its znode), and its address."""

    epoch: int
    endpoint: Endpoint | None = None


_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class TopicTable(dict[_Key, _Value]):
    """A table that also finds the keys of a topic, at a cost that does not depend on the others.

    Items are only set and deleted one by one.
    """

    def __init__(self, topic_of: Callable[[_Key], str]) -> None:
        super().__init__()
        self._topic_of = topic_of
        self._keys: defaultdict[str, dict[_Key, None]] = defaultdict(dict)

    def __setitem__(self, key: _Key, value: _Value) -> None:
        if key not in self:
            self._keys[self._topic_of(key)][key] = None
        super().__setitem__(key, value)

    def __delitem__(self, key: _Key) -> None:
        super().__delitem__(key)
        topic = self._topic_of(key)
        del self._keys[topic][key]
        if not self._keys[topic]:
            del self._keys[topic]

    def of_topic(self, topic: str) -> list[_Key]:
        """The keys of a topic."""
        return [*self._keys.get(topic, ())]


class ControllerContext:
    """The shared state of the machines and operations; only they change it."""

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.controller_ids: frozenset[int] = frozenset()
        """Nodes that are registered as brokers and have no replicas."""
        self.epoch = -1
        self.clear()

    def clear(self) -> None:
        """Forgets everything but the broker's own id."""
        self.brokers: dict[int, ClusterBroker] = {}
        self.own_endpoint: Endpoint | None = None
        """The address of the controller's node if it has no replicas and is no live broker."""
        self.shutting_down: set[int] = set()
        self.failed_directories: defaultdict[int, set[TopicPartition]] = defaultdict(set)
        self.assignments: TopicTable[TopicPartition, ReplicaAssignment] = TopicTable(
            lambda partition: partition.topic
        )
        self.topics: set[str] = set()
        self.topic_ids: dict[str, str] = {}
        self.topic_names: dict[str, str] = {}
        self.leaderships: dict[TopicPartition, PartitionLeadership] = {}
        self.partition_states: dict[TopicPartition, PartitionState] = {}
        self.replica_states: TopicTable[PartitionReplica, ReplicaState] = TopicTable(
            lambda replica: replica.partition.topic
        )
        self.reassigning: set[TopicPartition] = set()
        self.queued_deletions: set[str] = set()
        self.started_deletions: set[str] = set()
        self.ineligible_deletions: set[str] = set()

    # -- brokers -----------------------------------------------------------------------------------

    @property
    def live_brokers(self) -> list[int]:
        """The registered brokers that do not shut down, in order."""
        return sorted(self.brokers.keys() - self.shutting_down)

    @property
    def registered_brokers(self) -> list[int]:
        """The registered brokers, those that shut down included, in order."""
        return sorted(self.brokers)

    @property
    def racks(self) -> dict[int, str | None]:
        """The racks of the live brokers, in order of their ids."""
        endpoints = {broker_id: self.brokers[broker_id].endpoint for broker_id in self.live_brokers}
        return {
            broker_id: None if endpoint is None else endpoint.rack
            for broker_id, endpoint in endpoints.items()
        }

    def is_online(self, broker_id: int, partition: TopicPartition) -> bool:
        """Whether a replica is on a live broker that does not shut down, in a good directory."""
        return (
            broker_id in self.brokers
            and broker_id not in self.shutting_down
            and partition not in self.failed_directories.get(broker_id, ())
        )

    def remove_broker(self, broker_id: int) -> None:
        """Forgets a broker whose znode was deleted."""
        self.brokers.pop(broker_id, None)
        self.shutting_down.discard(broker_id)
        self.failed_directories.pop(broker_id, None)

    # -- topics ------------------------------------------------------------------------------------

    def set_topic_id(self, topic: str, topic_id: str) -> None:
        """Stores the id of a topic; `topic_names` has the names by id."""
        self.topic_ids[topic] = topic_id
        self.topic_names[topic_id] = topic

    # -- partitions --------------------------------------------------------------------------------

    def assignment(self, partition: TopicPartition) -> ReplicaAssignment:
        """The replicas of a partition; empty if it is unknown."""
        return self.assignments.get(partition, ReplicaAssignment(()))

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        """The known partitions of a topic."""
        return self.assignments.of_topic(topic)

    def replicas_of(self, partitions: Iterable[TopicPartition]) -> list[PartitionReplica]:
        """All replicas of some partitions."""
        return [
            PartitionReplica(partition, broker_id)
            for partition in partitions
            for broker_id in self.assignment(partition).replicas
        ]

    def replicas_on(self, broker_ids: Iterable[int]) -> list[PartitionReplica]:
        """All replicas on some brokers."""
        chosen = frozenset(broker_ids)
        return [
            PartitionReplica(partition, broker_id)
            for partition, assignment in self.assignments.items()
            for broker_id in assignment.replicas
            if broker_id in chosen
        ]

    def is_being_deleted(self, partition: TopicPartition) -> bool:
        """Whether the topic is queued for deletion."""
        return partition.topic in self.queued_deletions

    def partitions_in(self, *states: PartitionState) -> list[TopicPartition]:
        """The partitions in one of the states."""
        return [partition for partition, state in self.partition_states.items() if state in states]

    def leaderless_partitions(self) -> list[TopicPartition]:
        """The partitions with a leader on a broker or directory that has failed."""
        return [
            partition
            for partition, leadership in self.leaderships.items()
            if not self.is_online(leadership.leader, partition)
            and not self.is_being_deleted(partition)
        ]

    def election_input(self, partition: TopicPartition, isr: tuple[int, ...]) -> ElectionInput:
        """A partition as the leader selectors see it."""
        assignment = self.assignment(partition)
        members = {*assignment.replicas, *isr}
        live = {member for member in members if self.is_online(member, partition)}
        stopping = {
            member
            for member in members & self.brokers.keys() & self.shutting_down
            if partition not in self.failed_directories.get(member, ())
        }
        return ElectionInput(assignment, isr, live, stopping)

    # -- replicas ----------------------------------------------------------------------------------

    def replica_state(self, replica: PartitionReplica) -> ReplicaState:
        """The state of a replica."""
        return self.replica_states.get(replica, ReplicaState.NON_EXISTENT)

    def replicas_in(self, topic: str, *states: ReplicaState) -> list[PartitionReplica]:
        """The replicas of a topic in one of the states."""
        return [
            replica
            for replica in self.replica_states.of_topic(topic)
            if self.replica_states[replica] in states
        ]

    def remove_topic(self, topic: str) -> None:
        """Forgets a topic that is deleted."""
        for partition in self.partitions_of(topic):
            del self.assignments[partition]
            self.reassigning.discard(partition)
            self.leaderships.pop(partition, None)
            self.partition_states.pop(partition, None)
        self.topics.discard(topic)
        self.topic_names.pop(self.topic_ids.pop(topic, ""), None)
        for replica in self.replica_states.of_topic(topic):
            del self.replica_states[replica]
        for topics in (self.queued_deletions, self.started_deletions, self.ineligible_deletions):
            topics.discard(topic)
