"""Writes under the controller's fence, and reads and writes of partition states.

Each write is a transaction that checks the version of ``/controller_epoch``, so that a deposed
controller cannot write (``KafkaZkClient.retryRequestsUntilConnected`` with a controller epoch). An
operation of unknown outcome is repeated, as in Kafka; a state that was written all the same then
has another version, and is read again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.reference.zookeeper.machines.encoding import CONTROLLER_EPOCH, ZnodeDecodeError
from featurewatch.reference.zookeeper.machines.task_queue import Task
from featurewatch.reference.zookeeper.machines.topics.context import (
    ControllerContext,
    PartitionLeadership,
)
from featurewatch.reference.zookeeper.machines.topics.znodes import (
    decode_state,
    encode_state,
    state_path,
    topic_path,
)
from featurewatch.reference.zookeeper.machines.zookeeper import (
    BadVersion,
    CheckVersion,
    Create,
    GetData,
    GetDataResult,
    Multi,
    NodeExists,
    NoNode,
    OperationDone,
    OperationResult,
    OutcomeUnknown,
    SetData,
    WriteOperation,
)


class ControllerMovedError(Exception):
    """Another controller was elected: this one must write nothing more and resign."""


@dataclass(frozen=True, slots=True)
class StateFailure:
    """A partition state that could not be read or written, in one sentence.

    A state that is absent is no error.
    """

    reason: str
    is_error: bool = True


class StateUpdates(NamedTuple):
    """The result of writes: states as they are now, failures, and what another has changed."""

    finished: dict[TopicPartition, PartitionLeadership | StateFailure]
    overtaken: list[TopicPartition]


MISSING: Final = StateFailure("the state is not in ZooKeeper", is_error=False)
EXISTS: Final = StateFailure("the state is in ZooKeeper already")


class FencedWriter:
    """Writes only while this controller's epoch is the newest; ``on_elected`` sets the fence."""

    def __init__(self) -> None:
        self._epoch_version = -1

    def on_elected(self, epoch_version: int) -> None:
        """Sets the version of ``/controller_epoch`` that each write checks."""
        self._epoch_version = epoch_version

    def write(self, operations: Sequence[WriteOperation]) -> Task[list[OperationResult]]:
        """Performs the operations together, each in a separate transaction.

        An operation of unknown outcome is repeated until its outcome is known.

        Raises:
            ControllerMovedError: if another controller was elected.
        """
        fence = CheckVersion(CONTROLLER_EPOCH, self._epoch_version)
        results: list[OperationResult] = [OutcomeUnknown()] * len(operations)
        open_indexes = [*range(len(operations))]
        while open_indexes:
            outcomes = yield tuple(Multi((fence, operations[index])) for index in open_indexes)
            for index, outcome in zip(open_indexes, outcomes, strict=True):
                results[index] = outcome
            if any(
                isinstance(outcome, BadVersion | NoNode) and outcome.index == 0
                for outcome in outcomes
            ):
                raise ControllerMovedError("another controller was elected")
            open_indexes = [
                index for index in open_indexes if isinstance(results[index], OutcomeUnknown)
            ]
        return results


class PartitionStateStore:
    """The states of partitions in ZooKeeper; ``context`` has the controller's epoch."""

    def __init__(self, context: ControllerContext, writer: FencedWriter) -> None:
        self._context = context
        self._writer = writer

    def read(
        self, partitions: Iterable[TopicPartition], *, accepts_newer: bool = False
    ) -> Task[dict[TopicPartition, PartitionLeadership | StateFailure]]:
        """Reads states; one that a newer controller wrote is a failure unless ``accepts_newer``."""
        wanted = [*partitions]
        if not wanted:
            return {}
        results = yield tuple(GetData(state_path(partition)) for partition in wanted)
        return {
            partition: self._decoded(partition, result, accepts_newer=accepts_newer)
            for partition, result in zip(wanted, results, strict=True)
        }

    def create(
        self, leaderships: Mapping[TopicPartition, PartitionLeadership]
    ) -> Task[dict[TopicPartition, PartitionLeadership | StateFailure]]:
        """Creates the states of new partitions, and the parents that are missing.

        Raises:
            ControllerMovedError: if another controller was elected.
        """
        topics = [*dict.fromkeys(topic_path(partition.topic) for partition in leaderships)]
        yield from self._writer.write([Create(f"{topic}/partitions", b"") for topic in topics])
        parents = [state_path(partition).removesuffix("/state") for partition in leaderships]
        yield from self._writer.write([Create(parent, b"") for parent in parents])
        results = yield from self._writer.write(
            [
                Create(state_path(partition), encode_state(leadership))
                for partition, leadership in leaderships.items()
            ]
        )
        created: dict[TopicPartition, PartitionLeadership | StateFailure] = {}
        for (partition, leadership), result in zip(leaderships.items(), results, strict=True):
            match result:
                case OperationDone():
                    created[partition] = leadership
                case NodeExists():
                    created[partition] = EXISTS
                case _:
                    created[partition] = StateFailure(f"the state cannot be created: {result}")
        # The first attempt may have succeeded although its outcome was lost.
        existing = [partition for partition, state in created.items() if state is EXISTS]
        stored = yield from self.read(existing)
        for partition in existing:
            if stored[partition] == leaderships[partition]:
                created[partition] = leaderships[partition]
        return created

    def update(
        self, leaderships: Mapping[TopicPartition, PartitionLeadership]
    ) -> Task[StateUpdates]:
        """Writes states that were read before, if they have not changed since.

        ``partition_epoch`` of each is the version that was read.

        Raises:
            ControllerMovedError: if another controller was elected.
        """
        results = yield from self._writer.write(
            [
                SetData(state_path(partition), encode_state(leadership), leadership.partition_epoch)
                for partition, leadership in leaderships.items()
            ]
        )
        updates = StateUpdates({}, [])
        for (partition, leadership), result in zip(leaderships.items(), results, strict=True):
            match result:
                case OperationDone():
                    version = leadership.partition_epoch + 1
                    updates.finished[partition] = replace(leadership, partition_epoch=version)
                case BadVersion():
                    updates.overtaken.append(partition)
                case NoNode():
                    updates.finished[partition] = MISSING
                case _:
                    reason = f"the state cannot be written: {result}"
                    updates.finished[partition] = StateFailure(reason)
        # The first attempt may have succeeded although its outcome was lost.
        stored = yield from self.read(updates.overtaken)
        for partition, state in stored.items():
            leadership = leaderships[partition]
            written = replace(leadership, partition_epoch=leadership.partition_epoch + 1)
            if state == written:
                updates.finished[partition] = written
                updates.overtaken.remove(partition)
        return updates

    def _decoded(
        self, partition: TopicPartition, result: OperationResult, *, accepts_newer: bool
    ) -> PartitionLeadership | StateFailure:
        if isinstance(result, NoNode):
            return MISSING
        if not isinstance(result, GetDataResult):
            return StateFailure(f"the state cannot be read: {result}")
        try:
            leadership = decode_state(partition, result.data, result.stat.version)
        except ZnodeDecodeError as error:
            return StateFailure(f"the state cannot be read: {error}")
        if leadership.controller_epoch > self._context.epoch and not accepts_newer:
            return StateFailure(
                "the state was already written by another controller, with epoch"
                f" {leadership.controller_epoch}"
            )
        return leadership
