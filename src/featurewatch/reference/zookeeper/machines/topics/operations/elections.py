"""Elections that a person, a tool or the balance of leaders requests.

Follows ``KafkaController.processReplicaLeaderElection`` and ``checkAndTriggerAutoLeaderRebalance``.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.controller.partitions.selectors import select_preferred
from featurewatch.controller.partitions.states import PartitionState
from featurewatch.reference.zookeeper.machines.encoding import ZnodeDecodeError
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.machines.task_queue import Task, perform
from featurewatch.reference.zookeeper.machines.topics.operations.parts import OperationParts
from featurewatch.reference.zookeeper.machines.topics.partition_machine import (
    PREFERRED_ELECTION,
    UNCLEAN_ELECTION,
)
from featurewatch.reference.zookeeper.machines.topics.results import NO_ERROR, PartitionResult
from featurewatch.reference.zookeeper.machines.topics.znodes import (
    PREFERRED_ELECTION as PREFERRED_ELECTION_PATH,
)
from featurewatch.reference.zookeeper.machines.topics.znodes import (
    decode_preferred_elections,
    encode_preferred_elections,
)
from featurewatch.reference.zookeeper.machines.zookeeper import (
    Create,
    Delete,
    Exists,
    GetData,
    GetDataResult,
    NodeExists,
    OperationDone,
    OperationResult,
)

DEFAULT_IMBALANCE_PERCENT: Final = 10
"""``leader.imbalance.per.broker.percentage``."""

_UNKNOWN: Final = PartitionResult(
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist."
)
_DELETED: Final = PartitionResult(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted")
_NOT_NEEDED: Final = PartitionResult(
    ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
)
_MAX_ZNODE_BYTES: Final = 1_000_000
"""ZooKeeper drops the connection of a write beyond ``jute.maxbuffer``, 1 MiB by default."""
_TOO_MANY: Final = PartitionResult(
    ErrorCode.INVALID_REQUEST,
    "The partitions do not fit into one request to ZooKeeper: name fewer of them.",
)


class RequestedElections:
    """Elections of the preferred replica, and unclean ones."""

    def __init__(self, parts: OperationParts) -> None:
        self._parts = parts
        self._context = parts.context

    def elect(
        self, partitions: Iterable[TopicPartition], *, unclean: bool = False
    ) -> Task[dict[TopicPartition, PartitionResult]]:
        """Elects the preferred replica, or with ``unclean`` any live one if no leader is alive."""
        results: dict[TopicPartition, PartitionResult] = {}
        chosen = []
        for partition in dict.fromkeys(partitions):
            refused = self._refused(partition, unclean=unclean)
            if refused is None:
                chosen.append(partition)
            else:
                results[partition] = refused
        election = UNCLEAN_ELECTION if unclean else PREFERRED_ELECTION
        failures = yield from self._parts.partitions.move(chosen, PartitionState.ONLINE, election)
        code = (
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
            if unclean
            else ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        )
        for partition in chosen:
            reason = failures.get(partition)
            results[partition] = NO_ERROR if reason is None else PartitionResult(code, reason)
        return results

    def request(
        self, partitions: Iterable[TopicPartition] | None
    ) -> Task[dict[TopicPartition, PartitionResult]]:
        """Writes the elections that are needed to their znode, whose watch starts them.

        They are performed by the next controller if this one dies before. None requests those of
        all partitions that are not being deleted. Returns the result of each partition; if one is
        refused, nothing is written. An earlier request, whoever wrote it, is performed first.
        """
        if partitions is None:
            partitions = (
                partition
                for partition in self._context.assignments
                if not self._context.is_being_deleted(partition)
            )
        results = {partition: self._refused(partition, unclean=False) for partition in partitions}
        refused = {
            partition: result
            for partition, result in results.items()
            if result is not None and result is not _NOT_NEEDED
        }
        if refused:
            return refused
        needed = [partition for partition, result in results.items() if result is None]
        data = encode_preferred_elections(needed)
        if len(data) > _MAX_ZNODE_BYTES:
            return dict.fromkeys(needed, _TOO_MANY)
        written: OperationResult = NodeExists()
        while needed and isinstance(written, NodeExists):
            yield from self.on_requested()
            written = yield from self._parts.write(Create(PREFERRED_ELECTION_PATH, data))
        if needed and not isinstance(written, OperationDone):
            reason = f"{PREFERRED_ELECTION_PATH} cannot be written: {written}"
            failed = PartitionResult(ErrorCode.UNKNOWN_SERVER_ERROR, reason)
            return dict.fromkeys(needed, failed)
        return dict.fromkeys(results, NO_ERROR)

    def on_requested(self) -> Task[None]:
        """Elects what the znode requests, and removes it, whatever the result."""
        yield from perform(Exists(PREFERRED_ELECTION_PATH, watch=True))
        result = yield from perform(GetData(PREFERRED_ELECTION_PATH))
        if not isinstance(result, GetDataResult):
            return
        try:
            yield from self.elect(decode_preferred_elections(result.data))
        except ZnodeDecodeError as error:
            self._parts.log(f"cannot read {PREFERRED_ELECTION_PATH}, which is removed: {error}")
        yield from self._parts.write(Delete(PREFERRED_ELECTION_PATH))

    def balance(self, imbalance_percent: int = DEFAULT_IMBALANCE_PERCENT) -> Task[None]:
        """Elects the preferred replicas of brokers that lead too few of their partitions.

        A broker counts if more than ``imbalance_percent`` of the partitions that prefer it have
        another leader. Nothing happens while a partition is being reassigned.
        """
        context = self._context
        preferred: defaultdict[int, list[TopicPartition]] = defaultdict(list)
        for partition, assignment in context.assignments.items():
            if assignment.replicas and not context.is_being_deleted(partition):
                preferred[assignment.replicas[0]].append(partition)
        for broker_id, partitions in sorted(preferred.items()):
            moved = [
                partition
                for partition in partitions
                if partition in context.leaderships
                and context.leaderships[partition].leader != broker_id
            ]
            if len(moved) * 100 <= imbalance_percent * len(partitions) or context.reassigning:
                continue
            electable = [partition for partition in moved if self._can_lead(partition)]
            yield from self._parts.partitions.move(
                electable, PartitionState.ONLINE, PREFERRED_ELECTION
            )

    def _can_lead(self, partition: TopicPartition) -> bool:
        isr = self._context.leaderships[partition].isr
        seen = self._context.election_input(partition, isr)
        return select_preferred(self._parts.dialect.selectors, seen) is not None

    def _refused(self, partition: TopicPartition, *, unclean: bool) -> PartitionResult | None:
        context = self._context
        if partition not in context.assignments:
            return _UNKNOWN
        if context.is_being_deleted(partition):
            return _DELETED
        leadership = context.leaderships.get(partition)
        if leadership is None:
            return None
        if unclean:
            is_needed = leadership.leader not in context.live_brokers
        else:
            is_needed = [leadership.leader] != [*context.assignment(partition).replicas[:1]]
        return None if is_needed else _NOT_NEEDED
