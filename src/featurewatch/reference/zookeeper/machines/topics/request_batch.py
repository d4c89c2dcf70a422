"""Collects the requests of one change of states, and sends them broker by broker.

Follows ``AbstractControllerBrokerRequestBatch``: each broker gets LeaderAndIsr, UpdateMetadata and
StopReplica in this order, each at most once. Brokers that are not registered are left out.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.reference.zookeeper.machines.topics.broker_requests import (
    BrokerRequest,
    LeaderAndIsrRequest,
    LeaderAndIsrState,
    MetadataState,
    SendBrokerRequest,
    StopReplicaRequest,
    StopReplicaState,
    UpdateMetadataRequest,
)
from featurewatch.reference.zookeeper.machines.topics.context import (
    LEADER_OF_DELETED,
    ControllerContext,
)

EPOCH_OF_DELETED: Final = -2
"""The leader epoch in StopReplica if the topic is being deleted."""
NO_EPOCH: Final = -1


class RequestBatch:
    """The requests that a change of states has caused so far."""

    def __init__(
        self, context: ControllerContext, emit: Callable[[SendBrokerRequest], None]
    ) -> None:
        self._context = context
        self._emit = emit
        self._leader_and_isr: defaultdict[int, dict[TopicPartition, LeaderAndIsrState]]
        self._stop_replica: defaultdict[int, dict[TopicPartition, StopReplicaState]]
        self._clear()

    def _clear(self) -> None:
        self._leader_and_isr = defaultdict(dict)
        self._stop_replica = defaultdict(dict)
        self._metadata_brokers: set[int] = set()
        self._metadata: dict[TopicPartition, MetadataState] = {}

    def add_leader_and_isr(
        self, broker_ids: Iterable[int], partition: TopicPartition, *, is_new: bool
    ) -> None:
        """Adds LeaderAndIsr for brokers, and UpdateMetadata for all; needs a leadership."""
        leadership = self._context.leaderships[partition]
        assignment = self._context.assignment(partition)
        for broker_id in broker_ids:
            states = self._leader_and_isr[broker_id]
            earlier = states.get(partition)
            states[partition] = LeaderAndIsrState(
                partition=partition,
                controller_epoch=leadership.controller_epoch,
                leader=leadership.leader,
                leader_epoch=leadership.leader_epoch,
                isr=leadership.isr,
                partition_epoch=leadership.partition_epoch,
                replicas=assignment.replicas,
                adding=assignment.adding,
                removing=assignment.removing,
                is_new=is_new or (earlier is not None and earlier.is_new),
                recovering=leadership.recovering,
            )
        self.add_update_metadata(self._context.brokers, [partition])

    def add_stop_replica(self, broker_id: int, partition: TopicPartition, *, deletes: bool) -> None:
        """Adds StopReplica for one broker."""
        leadership = self._context.leaderships.get(partition)
        epoch = NO_EPOCH if leadership is None else leadership.leader_epoch
        if self._context.is_being_deleted(partition):
            epoch = EPOCH_OF_DELETED
        states = self._stop_replica[broker_id]
        earlier = states.get(partition)
        deletes = deletes or (earlier is not None and earlier.deletes)
        states[partition] = StopReplicaState(partition, epoch, deletes)

    def add_update_metadata(
        self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition]
    ) -> None:
        """Adds UpdateMetadata for brokers; partitions without a leadership are left out."""
        self._metadata_brokers.update(broker_ids)
        context = self._context
        for partition in partitions:
            leadership = context.leaderships.get(partition)
            if leadership is None:
                continue
            deleted = context.is_being_deleted(partition)
            replicas = context.assignment(partition).replicas
            self._metadata[partition] = MetadataState(
                partition=partition,
                controller_epoch=leadership.controller_epoch,
                leader=LEADER_OF_DELETED if deleted else leadership.leader,
                leader_epoch=0 if deleted else leadership.leader_epoch,
                isr=leadership.isr,
                partition_epoch=0 if deleted else leadership.partition_epoch,
                replicas=replicas,
                offline=tuple(
                    broker_id
                    for broker_id in replicas
                    if not context.is_online(broker_id, partition)
                ),
            )

    def send(self) -> None:
        """Emits the requests and forgets them."""
        context = self._context
        endpoints = {
            broker_id: broker.endpoint
            for broker_id, broker in context.brokers.items()
            if broker.endpoint is not None
        }
        for broker_id in self._receivers(self._leader_and_isr):
            states = (*self._leader_and_isr[broker_id].values(),)
            leaders = tuple(sorted({state.leader for state in states} & context.brokers.keys()))
            request = LeaderAndIsrRequest(
                *self._header(broker_id), states, leaders, self._topic_ids(states), endpoints
            )
            self._send(broker_id, request)
        metadata, brokers = (*self._metadata.values(),), (*context.registered_brokers,)
        if context.own_endpoint is not None:
            # Clients find the controller by its place among the live brokers.
            brokers = (*brokers, context.broker_id)
            endpoints[context.broker_id] = context.own_endpoint
        topic_ids = self._topic_ids(metadata)
        for broker_id in self._receivers(self._metadata_brokers):
            header = self._header(broker_id)
            update = UpdateMetadataRequest(*header, metadata, brokers, topic_ids, endpoints)
            self._send(broker_id, update)
        for broker_id in self._receivers(self._stop_replica):
            stops = (*self._stop_replica[broker_id].values(),)
            self._send(broker_id, StopReplicaRequest(*self._header(broker_id), stops))
        self._clear()

    def discard(self) -> None:
        """Forgets the requests, because the change of states has failed as a whole."""
        self._clear()

    def _receivers(self, broker_ids: Iterable[int]) -> list[int]:
        return sorted({*broker_ids} & self._context.brokers.keys())

    def _topic_ids(
        self, states: Iterable[LeaderAndIsrState] | Iterable[MetadataState]
    ) -> dict[str, str]:
        known = self._context.topic_ids
        topics = {state.partition.topic for state in states} & known.keys()
        return {topic: known[topic] for topic in sorted(topics)}

    def _header(self, broker_id: int) -> tuple[int, int, int]:
        context = self._context
        return context.broker_id, context.epoch, context.brokers[broker_id].epoch

    def _send(self, broker_id: int, request: BrokerRequest) -> None:
        self._emit(SendBrokerRequest(broker_id, request))
