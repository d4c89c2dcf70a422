"""Shared parts of the operations: the two state machines, and writes of topics' assignments."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.reference.zookeeper.machines.protocol import WriteLog
from featurewatch.reference.zookeeper.machines.task_queue import Task
from featurewatch.reference.zookeeper.machines.topics.broker_requests import SendBrokerRequest
from featurewatch.reference.zookeeper.machines.topics.context import ControllerContext
from featurewatch.reference.zookeeper.machines.topics.dialect import OperationsDialect
from featurewatch.reference.zookeeper.machines.topics.partition_machine import PartitionMachine
from featurewatch.reference.zookeeper.machines.topics.replica_machine import ReplicaMachine
from featurewatch.reference.zookeeper.machines.topics.request_batch import RequestBatch
from featurewatch.reference.zookeeper.machines.topics.state_store import (
    FencedWriter,
    PartitionStateStore,
    StateFailure,
)
from featurewatch.reference.zookeeper.machines.topics.topic_config import TopicConfigs
from featurewatch.reference.zookeeper.machines.topics.znodes import (
    TopicZnode,
    encode_topic,
    topic_path,
)
from featurewatch.reference.zookeeper.machines.zookeeper import (
    ANY_VERSION,
    OperationDone,
    OperationResult,
    SetData,
    WriteOperation,
)


@dataclass(frozen=True, slots=True)
class OperationParts:
    """The shared parts; made by `make_parts`."""

    context: ControllerContext
    dialect: OperationsDialect
    writer: FencedWriter
    store: PartitionStateStore
    batch: RequestBatch
    configs: TopicConfigs
    partitions: PartitionMachine
    replicas: ReplicaMachine
    log: Callable[[str], None]
    """Writes a warning of one line."""

    def write(self, operation: WriteOperation) -> Task[OperationResult]:
        """Performs one write under the controller's fence.

        Raises:
            ControllerMovedError: if another controller was elected.
        """
        (result,) = yield from self.writer.write([operation])
        return result

    def write_topic(
        self, topic: str, changes: dict[TopicPartition, ReplicaAssignment]
    ) -> Task[bool]:
        """Writes the assignment of a topic as it is in memory, with ``changes``; whether it did.

        Raises:
            ControllerMovedError: if another controller was elected.
        """
        context = self.context
        assignments = {
            partition.number: changes.get(partition, context.assignments[partition])
            for partition in context.partitions_of(topic)
        }
        znode = TopicZnode(assignments, context.topic_ids.get(topic))
        data = encode_topic(znode, self.dialect.assignment_schema)
        result = yield from self.write(SetData(topic_path(topic), data, ANY_VERSION))
        if not isinstance(result, OperationDone):
            self.log(f"cannot write the assignment of topic {topic}: {result}")
        return isinstance(result, OperationDone)

    def raise_leader_epoch(self, partition: TopicPartition) -> Task[bool]:
        """Writes a partition's state with the next leader epoch; whether it did.

        Raises:
            ControllerMovedError: if another controller was elected.
        """
        while True:
            states = yield from self.store.read([partition])
            state = states[partition]
            if isinstance(state, StateFailure):
                self.log(f"cannot raise the leader epoch of partition {partition}: {state.reason}")
                return False
            raised = state.changed(
                state.leader, state.isr, self.context.epoch, recovering=state.recovering
            )
            updates = yield from self.store.update({partition: raised})
            written = updates.finished.get(partition)
            if isinstance(written, StateFailure):
                self.log(f"cannot raise the leader epoch of {partition}: {written.reason}")
                return False
            if written is not None:
                self.context.leaderships[partition] = written
                return True

    def send_metadata(
        self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition]
    ) -> None:
        """Sends UpdateMetadata for partitions to brokers; without partitions, the brokers alone."""
        self.batch.add_update_metadata(broker_ids, partitions)
        self.batch.send()


def make_parts(
    broker_id: int,
    dialect: OperationsDialect,
    emit: Callable[[SendBrokerRequest | WriteLog], None],
    *,
    unclean_default: bool = False,
) -> OperationParts:
    """The parts of the controller on a broker; ``unclean_default`` is its own setting."""
    context = ControllerContext(broker_id)
    writer = FencedWriter()
    store = PartitionStateStore(context, writer)
    batch = RequestBatch(context, emit)
    configs = TopicConfigs(unclean_default=unclean_default)
    return OperationParts(
        context,
        dialect,
        writer,
        store,
        batch,
        configs,
        PartitionMachine(context, dialect, store, batch, configs, emit),
        ReplicaMachine(context, dialect, store, batch, emit),
        lambda line: emit(WriteLog(line, warning=True)),
    )
