"""Brokers that start, stop and bounce, and replicas whose log directory fails.

Follows ``KafkaController.processBrokerChange``, ``onBrokerStartup``, ``onBrokerFailure``,
``onReplicasBecomeOffline`` and ``processLogDirEventNotification``.
"""

from collections.abc import Iterable, Mapping

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.controller.partitions.states import PartitionState, ReplicaState
from featurewatch.reference.zookeeper.machines.encoding import ZnodeDecodeError
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.machines.task_queue import Task, perform
from featurewatch.reference.zookeeper.machines.topics.context import ClusterBroker, PartitionReplica
from featurewatch.reference.zookeeper.machines.topics.operations.deletion import TopicDeletion
from featurewatch.reference.zookeeper.machines.topics.operations.parts import OperationParts
from featurewatch.reference.zookeeper.machines.topics.operations.reassignment import Reassignments
from featurewatch.reference.zookeeper.machines.topics.znodes import (
    LOG_DIR_EVENTS,
    decode_log_dir_event,
)
from featurewatch.reference.zookeeper.machines.zookeeper import (
    Delete,
    GetChildren,
    GetChildrenResult,
    GetData,
    GetDataResult,
)


class BrokerChanges:
    """Applies changes of the registered brokers, which ``controller`` reads."""

    def __init__(
        self, parts: OperationParts, reassignments: Reassignments, deletion: TopicDeletion
    ) -> None:
        self._parts = parts
        self._context = parts.context
        self._reassignments = reassignments
        self._deletion = deletion

    def on_brokers(self, brokers: Mapping[int, ClusterBroker]) -> Task[None]:
        """Applies the brokers that are registered now: moved ones, new, bounced, then dead.

        All learn the address of a broker that has moved (``processBrokerModification``). A broker
        whose epoch has grown has restarted: it fails and then starts.
        """
        known = dict(self._context.brokers)
        new = sorted(brokers.keys() - known.keys())
        dead = sorted(known.keys() - brokers.keys())
        bounced = sorted(
            broker_id
            for broker_id in brokers.keys() & known.keys()
            if brokers[broker_id].epoch > known[broker_id].epoch
        )
        moved = [
            broker_id
            for broker_id in brokers.keys() & known.keys()
            if brokers[broker_id].epoch == known[broker_id].epoch
            and brokers[broker_id].endpoint != known[broker_id].endpoint
        ]
        if moved:
            self._context.brokers.update({broker_id: brokers[broker_id] for broker_id in moved})
            self._parts.send_metadata(self._context.registered_brokers, [])
        if new:
            yield from self._start(new, brokers)
        if bounced:
            yield from self._fail(bounced)
            yield from self._start(bounced, brokers)
        if dead:
            yield from self._fail(dead)

    def _start(self, broker_ids: list[int], brokers: Mapping[int, ClusterBroker]) -> Task[None]:
        """``onBrokerStartup``."""
        context, parts = self._context, self._parts
        others = context.registered_brokers
        for broker_id in broker_ids:
            context.remove_broker(broker_id)
            context.brokers[broker_id] = brokers[broker_id]
        if parts.dialect.informs_others_first:
            parts.send_metadata(others, [])
        led = [part for part in context.leaderships if not context.is_being_deleted(part)]
        parts.send_metadata(broker_ids, led)
        replicas = context.replicas_on(broker_ids)
        yield from parts.replicas.move(replicas, ReplicaState.ONLINE)
        yield from parts.partitions.elect_leaderless()
        yield from self._reassignments.on_brokers_started(broker_ids)
        yield from self._deletion.resume_topics({replica.partition.topic for replica in replicas})

    def _fail(self, broker_ids: list[int]) -> Task[None]:
        """``onBrokerFailure``."""
        for broker_id in broker_ids:
            self._context.remove_broker(broker_id)
        yield from self.lose_replicas(self._context.replicas_on(broker_ids))

    def lose_replicas(self, replicas: Iterable[PartitionReplica]) -> Task[None]:
        """Elects other leaders and takes the replicas offline (``onReplicasBecomeOffline``)."""
        context, parts = self._context, self._parts
        deleted: list[PartitionReplica] = []
        lost: list[PartitionReplica] = []
        for replica in replicas:
            is_deleted = context.is_being_deleted(replica.partition)
            (deleted if is_deleted else lost).append(replica)
        yield from parts.partitions.move(context.leaderless_partitions(), PartitionState.OFFLINE)
        candidates = context.partitions_in(PartitionState.OFFLINE, PartitionState.NEW)
        failures = yield from parts.partitions.elect_leaderless()
        yield from parts.replicas.move(lost, ReplicaState.OFFLINE)
        yield from self._deletion.fail(deleted)
        was_elected = any(
            partition not in failures and not context.is_being_deleted(partition)
            for partition in candidates
        )
        if not lost and not was_elected:
            parts.send_metadata(context.registered_brokers, [])

    # -- log directories ---------------------------------------------------------------------------

    def on_log_dir_events(self) -> Task[None]:
        """Sends LeaderAndIsr to brokers that lost a directory; their responses name the replicas.

        The notifications are removed in the end.
        """
        result = yield from perform(GetChildren(LOG_DIR_EVENTS, watch=True))
        names = sorted(result.names) if isinstance(result, GetChildrenResult) else []
        if not names:
            return
        paths = [f"{LOG_DIR_EVENTS}/{name}" for name in names]
        contents = yield tuple(GetData(path) for path in paths)
        broker_ids = set()
        for path, content in zip(paths, contents, strict=True):
            try:
                if isinstance(content, GetDataResult):
                    broker_ids.add(decode_log_dir_event(content.data))
            except ZnodeDecodeError as error:
                self._parts.log(f"cannot read {path}, which is removed: {error}")
        replicas = self._context.replicas_on(broker_ids)
        yield from self._parts.replicas.move(replicas, ReplicaState.ONLINE)
        yield from self._parts.writer.write([Delete(path) for path in paths])

    def on_leader_and_isr_response(
        self, broker_id: int, errors: Mapping[TopicPartition, int]
    ) -> Task[None]:
        """Takes replicas offline whose directory has failed, and notes those that work again."""
        if broker_id not in self._context.brokers:
            return
        failed = self._context.failed_directories[broker_id]
        before = {*failed}
        for partition, error in errors.items():
            if error == ErrorCode.KAFKA_STORAGE_ERROR:
                failed.add(partition)
            elif error == ErrorCode.NONE:
                failed.discard(partition)
        lost = [PartitionReplica(partition, broker_id) for partition in sorted(failed - before)]
        if lost:
            yield from self.lose_replicas(lost)
