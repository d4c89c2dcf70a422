"""Starts, cancels, lists and follows the reassignments of a cluster's partitions (KIP-455, KIP-4).

    async with ReassignmentAdmin(Bootstrap(parse_addresses("kafka-1:9092"))) as admin:
        targets = {TopicPartition("orders", 0): (4, 5, 6)}
        await admin.reassign(targets, max_wait_s=3600)

What is sent goes to the controller; brokers are asked for their directories and throttles.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from featurewatch.admin.errors import (
    AdminError,
    OutcomeUnknownError,
    RequestError,
    UnreachableError,
    UpdateRefusedError,
)
from featurewatch.admin.reassignments import messages
from featurewatch.admin.reassignments.reader import PartitionReader, check_response
from featurewatch.admin.reassignments.requests import NoSuchVersionError
from featurewatch.admin.reassignments.types import (
    BrokerReplica,
    ClusterTopics,
    PartitionError,
    ReassignmentProgress,
    ReassignmentStatus,
    Replicas,
    Targets,
)
from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition

_POLL_S: Final = 0.5
_SETTLED_S: Final = 5.0
_NO_FACTOR_CHECK: Final = (
    "The broker does not support the AllowReplicationFactorChange option for the "
    "AlterPartitionReassignments API. Consider re-sending the request without the option or "
    "updating the server version"
)
_UNSUPPORTED_VERSION: Final = 35

Results = Mapping[TopicPartition, PartitionError | None]
"""The error of each partition, None where it was accepted."""


class ReassignmentAdmin(PartitionReader):
    """Reassignments of one cluster.

    Each call raises `UnreachableError` (nothing was changed), or `OutcomeUnknownError` where a
    change was sent and has no response: `running` and `topics` then show what is the case.
    """

    async def running(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, ReplicaAssignment]:
        """The reassignments that run now, of these partitions or (None) of all.

        Raises:
            UpdateRefusedError: The login may not read them.
        """
        wanted = None if partitions is None else tuple(partitions)
        response = await self.to_controller(
            messages.LIST_REASSIGNMENTS,
            (0, 0),
            lambda _: messages.list_request(wanted, self.timeout_s),
            changes=False,
        )
        check_response(messages.api_error(int(response.error_code), response.error_message))
        return messages.read_list(response)

    async def start(self, targets: Targets, *, allow_factor_change: bool = True) -> Results:
        """Requests reassignments and returns at once with what the controller accepted (KIP-4)."""
        return await self._alter(targets, allow_factor_change=allow_factor_change)

    async def cancel(self, partitions: Iterable[TopicPartition]) -> Results:
        """Cancels the reassignments of these partitions, which go back to what they had."""
        return await self._alter(dict.fromkeys(partitions))

    async def verify(self, targets: Targets) -> dict[TopicPartition, ReassignmentStatus]:
        """Whether each reassignment is completed, in progress or failed (KIP-4).

        A partition that does not exist, and one with other replicas that nobody moves, failed.
        """
        running = await self.running()
        present = await self.topics(partition.topic for partition in targets)
        return {
            partition: _status(partition in running, replicas, present, partition)
            for partition, replicas in targets.items()
        }

    async def reassign(
        self,
        targets: Targets,
        *,
        max_wait_s: float,
        report: Callable[[ReassignmentProgress], None] | None = None,
    ) -> dict[TopicPartition, ReassignmentStatus]:
        """Requests reassignments, and returns when the replicas have moved (KIP-4).

        Raises:
            UpdateRefusedError: One or more could not be started.
            UnreachableError: They did not end in ``max_wait_s`` seconds; they go on.
        """
        results = await self.start(targets)
        if errors := [f"{one}: {error.text}" for one, error in results.items() if error]:
            raise UpdateRefusedError("; ".join(errors))
        return await self.wait(targets, max_wait_s=max_wait_s, report=report)

    async def wait(
        self,
        targets: Targets,
        *,
        max_wait_s: float,
        report: Callable[[ReassignmentProgress], None] | None = None,
    ) -> dict[TopicPartition, ReassignmentStatus]:
        """Repeats `verify` until no partition is in progress; raises as `reassign` does.

        A cluster that does not respond for a time is tried again. A broker may know of the end
        some seconds after the controller: a partition counts as failed when it stays so.
        """
        import asyncio

        deadline = self.monotonic() + max_wait_s
        why = "the reassignment is still in progress"
        ended: float | None = None
        while True:
            try:
                statuses = await self.verify(targets)
                if report is not None:
                    report(await self.progress(targets, statuses))
                if ReassignmentStatus.IN_PROGRESS in statuses.values():
                    ended = None
                else:
                    ended = self.monotonic() if ended is None else ended
                    has_failed = ReassignmentStatus.FAILED in statuses.values()
                    if not has_failed or self.monotonic() > ended + _SETTLED_S:
                        return statuses
            except OutcomeUnknownError:
                raise
            except UnreachableError as error:
                why = str(error)
            if self.monotonic() + _POLL_S > deadline:
                raise UnreachableError(f"not completed in {max_wait_s:g} s: {why}")
            await asyncio.sleep(_POLL_S)

    async def progress(
        self, targets: Targets, statuses: Mapping[TopicPartition, ReassignmentStatus]
    ) -> ReassignmentProgress:
        """How many partitions are done, and how many bytes the added replicas lack."""
        done = sum(status is not ReassignmentStatus.IN_PROGRESS for status in statuses.values())
        moving = [
            partition
            for partition, status in statuses.items()
            if status is ReassignmentStatus.IN_PROGRESS
        ]
        left = await self._bytes_left(moving) if moving else 0
        return ReassignmentProgress(done, len(targets), left)

    async def _alter(
        self,
        targets: Mapping[TopicPartition, Replicas | None],
        *,
        allow_factor_change: bool = True,
    ) -> Results:
        if not targets:
            raise RequestError("there is nothing to reassign: name a partition")
        versions = (0, 1) if allow_factor_change else (1, 1)
        try:
            response = await self.to_controller(
                messages.ALTER_REASSIGNMENTS,
                versions,
                lambda version: messages.alter_request(
                    targets,
                    version,
                    timeout_s=self.timeout_s,
                    allow_factor_change=allow_factor_change,
                ),
                changes=True,
            )
        except NoSuchVersionError:
            return dict.fromkeys(targets, PartitionError(_UNSUPPORTED_VERSION, _NO_FACTOR_CHECK))
        answered = messages.read_alter(response)
        if answered.error is not None:
            return dict.fromkeys(targets, answered.error)
        missing = PartitionError(-1, "The server did not answer for this partition.")
        return {partition: answered.partitions.get(partition, missing) for partition in targets}

    async def _bytes_left(self, moving: Iterable[TopicPartition]) -> int | None:
        wanted = tuple(moving)
        try:
            running = await self.running(wanted)
            present = await self.topics(partition.topic for partition in wanted)
            replicas = [
                BrokerReplica(partition, broker_id)
                for partition in running
                if partition in present.partitions
                for broker_id in {
                    *running[partition].adding,
                    present.partitions[partition].leader,
                }
                if broker_id in present.brokers
            ]
            found = await self.directories(replicas, present.brokers)
        except AdminError:
            return None
        left = 0
        for partition, assignment in running.items():
            leader = BrokerReplica(partition, present.partitions[partition].leader)
            if leader not in found:
                continue
            for broker_id in assignment.adding:
                copy = found.get(BrokerReplica(partition, broker_id))
                left += max(found[leader].size - (copy.size if copy else 0), 0)
        return left


def _status(
    is_running: bool, replicas: Replicas, present: ClusterTopics, partition: TopicPartition
) -> ReassignmentStatus:
    if is_running:
        return ReassignmentStatus.IN_PROGRESS
    found = present.partitions.get(partition)
    if found is not None and found.replicas == replicas:
        return ReassignmentStatus.COMPLETED
    return ReassignmentStatus.FAILED
