"""One light replica host: a broker that leads and follows partitions as its controller says; pure.

A broker keeps its logs over a restart and forgets all else. A write is acknowledged when every
member of the largest ISR that may be in force has it, as in ``kafka.cluster.Partition``. A log is
a list of numbers, so a partition without writes costs little more than its state.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.reference.zookeeper.machines.topics.broker_requests import (
    BrokerRequest,
    BrokerResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrState,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from featurewatch.reference.zookeeper.machines.topics.context import PartitionLeadership
from featurewatch.reference.zookeeper.machines.topics.results import RequestedIsr

STALE_CONTROLLER_EPOCH, FENCED_LEADER_EPOCH, STALE_BROKER_EPOCH = 11, 74, 77

LogKey = tuple[str, int]
"""The topic's id, or its name without one, and the number of the partition."""


@dataclass
class Replica:
    """A partition on one broker, as the last accepted LeaderAndIsr left it."""

    topic_id: str
    """Empty if the controller gives topics no ids."""
    state: LeaderAndIsrState
    isr: tuple[int, ...]
    partition_epoch: int
    proposed: tuple[int, ...] | None = None
    """The ISR that the leader has requested, until it knows what became of it."""
    ends: dict[int, int] = field(default_factory=dict)
    """How much of the log each follower is known to have."""
    waiting: list[tuple[int, int]] = field(default_factory=list)
    """Values that are not acknowledged yet, with the length of the log that they need."""

    @property
    def log_key(self) -> LogKey:
        """The key of its log; without an id, topics are distinguished by their names."""
        return self.topic_id or self.state.partition.topic, self.state.partition.number

    @property
    def largest_isr(self) -> set[int]:
        """The members of which any may be elected."""
        return {*self.isr, *(self.proposed or ())}


class LightReplicas:
    """One run of a broker; ``logs`` outlives it.

    With ``fences_fetches`` a leader refuses fetches of followers with another leader epoch, as
    Kafka does since 2.1 (KIP-320).
    """

    def __init__(
        self,
        broker_id: int,
        epoch: int,
        logs: dict[LogKey, list[int]],
        *,
        fences_fetches: bool = True,
    ) -> None:
        self._fences_fetches = fences_fetches
        self.broker_id = broker_id
        self.epoch = epoch
        self.logs = logs
        self.replicas: dict[TopicPartition, Replica] = {}
        self.leaders: dict[TopicPartition, int] = {}
        """The state of each partition by UpdateMetadata."""
        self.controller_epoch = 0
        self._stopped: dict[TopicPartition, LogKey] = {}
        """The logs of replicas that were stopped and not deleted."""

    # -- the controller's requests -----------------------------------------------------------------

    def receive(self, request: BrokerRequest) -> BrokerResponse:
        """Applies a request."""
        error = 0
        if request.broker_epoch < self.epoch:
            error = STALE_BROKER_EPOCH
        elif request.controller_epoch < self.controller_epoch:
            error = STALE_CONTROLLER_EPOCH
        else:
            self.controller_epoch = request.controller_epoch
        match request:
            case LeaderAndIsrRequest(states=states):
                errors = {}
                for state in () if error else states:
                    topic_id = request.topic_ids.get(state.partition.topic, "")
                    errors[state.partition] = self._become(topic_id, state)
                return LeaderAndIsrResponse(error, errors)
            case StopReplicaRequest(states=stops):
                return StopReplicaResponse(
                    error,
                    {}
                    if error
                    else {
                        stop.partition: self._stop(stop.partition, stop.leader_epoch, stop.deletes)
                        for stop in stops
                    },
                )
            case UpdateMetadataRequest(states=metadata):
                if not error:
                    self.leaders |= {state.partition: state.leader for state in metadata}
                return UpdateMetadataResponse(error)

    def _become(self, topic_id: str, state: LeaderAndIsrState) -> int:
        replica = self.replicas.get(state.partition)
        known = replica if replica is not None and replica.topic_id == topic_id else None
        if known is not None and state.leader_epoch <= known.state.leader_epoch:
            return STALE_CONTROLLER_EPOCH
        self._stopped.pop(state.partition, None)
        became = Replica(topic_id, state, state.isr, state.partition_epoch)
        self.replicas[state.partition] = became
        self.logs.setdefault(became.log_key, [])
        return 0

    def _stop(self, partition: TopicPartition, leader_epoch: int, deletes: bool) -> int:
        replica = self.replicas.get(partition)
        if replica is not None and 0 <= leader_epoch < replica.state.leader_epoch:
            return FENCED_LEADER_EPOCH
        self.replicas.pop(partition, None)
        if replica is not None:
            self._stopped[partition] = replica.log_key
        if deletes and partition in self._stopped:
            # Perhaps stopped before, as a controller does it: the log is there until it is deleted.
            self.logs.pop(self._stopped.pop(partition), None)
        return 0

    # -- leaders -----------------------------------------------------------------------------------

    def led(self) -> list[TopicPartition]:
        """The partitions that it takes itself to lead."""
        return [
            partition
            for partition, replica in self.replicas.items()
            if replica.state.leader == self.broker_id
        ]

    def log(self, partition: TopicPartition) -> list[int]:
        """The log of a partition that it has."""
        return self.logs[self.replicas[partition].log_key]

    def write(self, partition: TopicPartition, value: int) -> None:
        """Appends a client's value to a partition that it leads."""
        log = self.log(partition)
        log.append(value)
        self.replicas[partition].waiting.append((value, len(log)))

    def acknowledged(self, partition: TopicPartition) -> list[int]:
        """The values that every member of the largest ISR has by now; each once."""
        replica = self.replicas[partition]
        ends = replica.ends | {self.broker_id: len(self.log(partition))}
        safe = min(ends.get(member, 0) for member in replica.largest_isr)
        done = [value for value, end in replica.waiting if end <= safe]
        replica.waiting = [entry for entry in replica.waiting if entry[1] > safe]
        return done

    def wanted_isr(
        self,
        partition: TopicPartition,
        live: Collection[int],
        *,
        leaves: Callable[[int], bool] = lambda _: True,
    ) -> RequestedIsr | None:
        """The ISR of those that live and have the whole log; None if it is in force.

        A member of the ISR that does not, stays in it unless ``leaves`` is true of it.
        """
        replica = self.replicas[partition]
        length = len(self.log(partition))
        isr = tuple(
            member
            for member in replica.state.replicas
            if member == self.broker_id
            or (member in replica.isr and not leaves(member))
            or (member in live and replica.ends.get(member, -1) >= length)
        )
        if replica.proposed is not None:
            isr = replica.proposed  # repeated until its outcome is known
        if {*isr} == {*replica.isr}:
            return None
        replica.proposed = isr
        return RequestedIsr(isr, replica.state.leader_epoch, replica.partition_epoch)

    def on_isr_written(self, partition: TopicPartition, written: PartitionLeadership) -> None:
        """Applies the controller's answer to a request of an ISR."""
        replica = self.replicas.get(partition)
        if (
            replica is not None
            and replica.state.leader_epoch == written.leader_epoch
            and written.partition_epoch >= replica.partition_epoch
        ):
            replica.isr, replica.proposed = written.isr, None
            replica.partition_epoch = written.partition_epoch

    def on_isr_refused(self, partition: TopicPartition, requested: RequestedIsr) -> None:
        """The ISR that was requested is not in force and will not be."""
        replica = self.replicas.get(partition)
        if replica is not None and replica.state.leader_epoch == requested.leader_epoch:
            replica.proposed = None

    # -- followers ---------------------------------------------------------------------------------

    def fetch(self, partition: TopicPartition, leader: "LightReplicas | None") -> None:
        """Copies the leader's log, if both agree on the leader and, if fenced, its epoch."""
        replica = self.replicas[partition]
        there = None if leader is None else leader.replicas.get(partition)
        if leader is None or there is None or there.topic_id != replica.topic_id:
            return
        if there.state.leader != leader.broker_id:
            return
        is_other_epoch = there.state.leader_epoch != replica.state.leader_epoch
        if is_other_epoch and self._fences_fetches:
            return
        copied = [*leader.log(partition)]
        self.logs[replica.log_key] = copied
        there.ends[self.broker_id] = len(copied)
