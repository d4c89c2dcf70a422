"""The light replicas of one process: which broker a request is for, and what leaders request; pure.

All brokers may share one listener, because the epoch in a controller's request names the broker:
each registration is a separate transaction. Only partitions with a change since the last poll
cost anything, so tens of thousands of replicas can rest.
"""

from collections.abc import Iterator
from typing import Final

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.reference.zookeeper.machines.replicas.light_replicas import LightReplicas, LogKey
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.machines.topics.broker_requests import (
    BrokerRequest,
    BrokerResponse,
    LeaderAndIsrRequest,
    StopReplicaRequest,
)
from featurewatch.reference.zookeeper.machines.topics.context import PartitionLeadership
from featurewatch.reference.zookeeper.machines.topics.results import (
    AlterPartitionRequest,
    AlterPartitionResult,
    PartitionResult,
    RequestedIsr,
)

MAX_REQUESTED_ISRS: Final = 2_000
"""In one AlterPartition: some 120 KB."""
_REFUSED: Final = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.INVALID_REQUEST})


class ReplicaBrokers:
    """The brokers that run, the logs that outlive them, and the orders that they follow.

    ``fences_fetches`` as in `LightReplicas`.
    """

    def __init__(self, *, fences_fetches: bool = True) -> None:
        self._fences_fetches = fences_fetches
        self.brokers: dict[int, LightReplicas] = {}
        self.behind: set[int] = set()
        """The brokers whose followers fetch nothing, by order."""
        self._logs: dict[int, dict[LogKey, list[int]]] = {}
        self._by_epoch: dict[int, LightReplicas] = {}
        self._hosts: dict[TopicPartition, set[int]] = {}
        self._changed: dict[TopicPartition, None] = {}
        self._in_flight: set[int] = set()
        """The epochs of brokers with an AlterPartition that has no response yet."""

    # -- brokers -----------------------------------------------------------------------------------

    def start(self, broker_id: int, epoch: int) -> None:
        """A broker has registered; it has the logs of its earlier runs and knows nothing else."""
        self.end(broker_id)
        logs = self._logs.setdefault(broker_id, {})
        broker = LightReplicas(broker_id, epoch, logs, fences_fetches=self._fences_fetches)
        self.brokers[broker_id] = self._by_epoch[epoch] = broker

    def end(self, broker_id: int) -> None:
        """A broker dies: it responds to nothing, and leads and follows nothing."""
        broker = self.brokers.pop(broker_id, None)
        if broker is None:
            return
        del self._by_epoch[broker.epoch]
        self._in_flight.discard(broker.epoch)
        for partition in broker.replicas:
            self._remove_host(partition, broker_id)

    def receive(self, request: BrokerRequest) -> BrokerResponse | None:
        """The response of the broker that the request is for.

        None if no broker has the epoch: the registration's result is not here yet, or it has ended.
        """
        broker = self._by_epoch.get(request.broker_epoch)
        if broker is None:
            return None
        response = broker.receive(request)
        match request:
            case LeaderAndIsrRequest(states=states) if not response.error:
                for state in states:
                    self._hosts.setdefault(state.partition, set()).add(broker.broker_id)
                    self._changed[state.partition] = None
            case StopReplicaRequest(states=stops):
                for stop in stops:
                    if stop.partition not in broker.replicas:
                        self._remove_host(stop.partition, broker.broker_id)
            case _:
                pass
        return response

    # -- orders ------------------------------------------------------------------------------------

    def fall_behind(self, broker_id: int) -> None:
        """From now on the broker fetches nothing, and leaders request ISRs without it."""
        self.behind.add(broker_id)
        self._on_order(broker_id)

    def catch_up(self, broker_id: int) -> None:
        """The broker fetches again, and leaders take it into the ISR when it has all."""
        self.behind.discard(broker_id)
        self._on_order(broker_id)

    def write(self, partition: TopicPartition, value: int) -> bool:
        """Appends a value to a partition; whether it has a leader here."""
        leader = self._leader(partition)
        if leader is None:
            return False
        leader.write(partition, value)
        self._changed[partition] = None
        return True

    def log(self, broker_id: int, partition: TopicPartition) -> list[int]:
        """The log of a replica of a broker that runs."""
        return self.brokers[broker_id].log(partition)

    def _on_order(self, broker_id: int) -> None:
        broker = self.brokers.get(broker_id)
        if broker is not None:
            self._changed.update(dict.fromkeys(broker.replicas))

    # -- replication -------------------------------------------------------------------------------

    def isr_requests(self) -> Iterator[AlterPartitionRequest]:
        """Lets the followers of all changed partitions fetch; the requests that leaders then make.

        Each broker has one in flight; `on_response` takes its end.
        """
        requested: dict[int, dict[TopicPartition, RequestedIsr]] = {}
        for partition in [*self._changed]:
            leader = self._leader(partition)
            if leader is None or not (wanted := self._wanted(leader, partition)):
                del self._changed[partition]  # a later LeaderAndIsr brings it back
            elif leader.epoch not in self._in_flight:
                isrs = requested.setdefault(leader.broker_id, {})
                if len(isrs) < MAX_REQUESTED_ISRS:
                    isrs[partition] = wanted
        for broker_id, isrs in requested.items():
            epoch = self.brokers[broker_id].epoch
            self._in_flight.add(epoch)
            yield AlterPartitionRequest(broker_id, epoch, isrs)

    def on_response(
        self, request: AlterPartitionRequest, result: AlterPartitionResult | None
    ) -> None:
        """Applies the result of a request; None: no result, so it is made again."""
        self._in_flight.discard(request.broker_epoch)
        broker = self._by_epoch.get(request.broker_epoch)
        if broker is None or result is None:
            return
        for partition, requested in request.partitions.items():
            match result.partitions.get(partition):
                case PartitionLeadership() as leadership:
                    broker.on_isr_written(partition, leadership)
                case PartitionResult(error) if error in _REFUSED:
                    broker.on_isr_refused(partition, requested)
                case _:
                    pass  # it is requested again, until a LeaderAndIsr ends it

    def topic_ids(self, request: AlterPartitionRequest) -> dict[str, str]:
        """The ids of a request's topics, as far as the leader has learned them."""
        broker = self._by_epoch.get(request.broker_epoch)
        replicas = {} if broker is None else broker.replicas
        return {
            partition.topic: replicas[partition].topic_id
            for partition in request.partitions
            if partition in replicas and replicas[partition].topic_id
        }

    def _wanted(self, leader: LightReplicas, partition: TopicPartition) -> RequestedIsr | None:
        for broker_id in self._hosts[partition] - {leader.broker_id} - self.behind:
            self.brokers[broker_id].fetch(partition, leader)
        fresh = self.brokers.keys() - self.behind
        # A follower that has not yet learned of an election is late, not behind.
        wanted = leader.wanted_isr(partition, fresh, leaves=self.behind.__contains__)
        leader.acknowledged(partition)
        return wanted

    def _leader(self, partition: TopicPartition) -> LightReplicas | None:
        """The broker that leads in the newest epoch which a broker here knows."""
        hosts = [self.brokers[broker_id] for broker_id in self._hosts.get(partition, ())]
        newest = max(
            hosts, key=lambda host: host.replicas[partition].state.leader_epoch, default=None
        )
        if newest is None:
            return None
        leader = self.brokers.get(newest.replicas[partition].state.leader)
        if leader is None or partition not in leader.replicas:
            return None
        is_leader = leader.replicas[partition].state.leader == leader.broker_id
        return leader if is_leader else None

    def _remove_host(self, partition: TopicPartition, broker_id: int) -> None:
        hosts = self._hosts.get(partition)
        if hosts is not None:
            hosts.discard(broker_id)
            if not hosts:
                del self._hosts[partition]
