"""Starts, cancels, lists and follows the reassignments of a cluster's partitions (KIP-455, KIP-4).

    async with ReassignmentAdmin.connect("kafka-1:9092") as admin:
        targets = {TopicPartition("orders", 0): (2, 3, 1)}
        await admin.reassign(targets, max_wait_s=3600)

What is sent goes to the controller; brokers are asked for their directories and throttles.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from featurewatch.admin.api_errors import NOT_CONTROLLER, UNSUPPORTED_VERSION, ResponseError
from featurewatch.admin.cluster import configs
from featurewatch.admin.cluster.configs import (
    ConfigOwner,
    OwnConfigs,
    ResourceKind,
    SettingChange,
)
from featurewatch.admin.cluster.reader import ClusterReader, running
from featurewatch.admin.cluster.values import BrokerNode, BrokerReplica, ClusterTopics
from featurewatch.admin.errors import (
    AdminError,
    OutcomeUnknownError,
    RequestError,
    UnreachableError,
    UpdateRefusedError,
)
from featurewatch.admin.reassignments import requests
from featurewatch.admin.reassignments.throttles import (
    BROKER_SETTINGS,
    TOPIC_SETTINGS,
    ConfigChanges,
)
from featurewatch.admin.reassignments.types import (
    ReassignmentProgress,
    ReassignmentStatus,
    Replicas,
    Targets,
)
from featurewatch.admin.session import NoSuchVersionError
from featurewatch.controller.partitions.assignment import TopicPartition

_POLL_S: Final = 0.5
_SETTLED_S: Final = 5.0
_NO_FACTOR_CHECK: Final = (
    "The broker does not support the AllowReplicationFactorChange option for the "
    "AlterPartitionReassignments API. Consider re-sending the request without the option or "
    "updating the server version"
)

Results = Mapping[TopicPartition, ResponseError | None]
"""The error of each partition, None where it was accepted."""


class ReassignmentAdmin(ClusterReader):
    """Reassignments of one cluster.

    Each call raises `UnreachableError` (nothing was changed), or `OutcomeUnknownError` where a
    change was sent and has no response: `reassignments` and `topics` then show what is the case.
    """

    serves_controllers = True

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
        running = await self.reassignments()
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
            UnreachableError: They did not end within ``max_wait_s`` seconds; they continue.
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
        deadline = self._monotonic() + max_wait_s
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
                    ended = self._monotonic() if ended is None else ended
                    has_failed = ReassignmentStatus.FAILED in statuses.values()
                    if not has_failed or self._monotonic() > ended + _SETTLED_S:
                        return statuses
            except OutcomeUnknownError:
                raise
            except UnreachableError as error:
                why = str(error)
            if self._monotonic() + _POLL_S > deadline:
                raise UnreachableError(f"not completed in {max_wait_s:g} s: {why}")
            await self._pause(_POLL_S)

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

    async def move_directories(
        self, targets: Mapping[BrokerReplica, str], brokers: Mapping[int, BrokerNode]
    ) -> dict[BrokerReplica, ResponseError | None]:
        """Requests that replicas move to other directories of their brokers."""
        results: dict[BrokerReplica, ResponseError | None] = {}
        for broker_id in sorted({replica.broker_id for replica in targets}):
            wanted = {
                replica.partition: directory
                for replica, directory in targets.items()
                if replica.broker_id == broker_id
            }
            response = await self.exchange_with(
                running(broker_id, brokers).address, requests.move_request(wanted), changes=True
            )
            for partition, error in requests.read_move(response).items():
                results[BrokerReplica(partition, broker_id)] = error
        return results

    async def set_configs(
        self, changes: ConfigChanges, brokers: Mapping[int, BrokerNode]
    ) -> dict[ConfigOwner, ResponseError | None]:
        """Changes settings: a broker's own at that broker, as only it accepts them."""
        results: dict[ConfigOwner, ResponseError | None] = {}
        of_topics = []
        for owner, values in changes.items():
            settings = [
                SettingChange.delete(name) if value is None else SettingChange(name, value)
                for name, value in values.items()
            ]
            if owner.kind is ResourceKind.TOPIC:
                of_topics.append((owner, settings))
                continue
            request = configs.alter_request([(owner, settings)])
            node = running(int(owner.name), brokers)
            response = await self.exchange_with(node.address, request, changes=True)
            results |= configs.altered(response)
        if of_topics:
            request = configs.alter_request(of_topics)
            response = await self.perform(
                lambda _: request,
                lambda answer: any(item.error_code == NOT_CONTROLLER for item in answer.responses),
            )
            results |= configs.altered(response)
        return results

    async def throttles(
        self, topics: Iterable[str], brokers: Mapping[int, BrokerNode]
    ) -> OwnConfigs:
        """The throttles that are set on these topics and brokers."""
        return await self.own_configs(topics, TOPIC_SETTINGS, brokers, BROKER_SETTINGS)

    async def _alter(
        self,
        targets: Mapping[TopicPartition, Replicas | None],
        *,
        allow_factor_change: bool = True,
    ) -> Results:
        if not targets:
            raise RequestError("there is nothing to reassign: name a partition")
        try:
            response = await self.perform(
                lambda timeout_ms: requests.alter_request(
                    targets, timeout_ms, allow_factor_change=allow_factor_change
                )
            )
        except NoSuchVersionError:
            return dict.fromkeys(targets, ResponseError(UNSUPPORTED_VERSION, _NO_FACTOR_CHECK))
        answered = requests.read_alter(response)
        if answered.error is not None:
            return dict.fromkeys(targets, answered.error)
        missing = ResponseError(-1, "The server did not answer for this partition.")
        return {partition: answered.partitions.get(partition, missing) for partition in targets}

    async def _bytes_left(self, moving: Iterable[TopicPartition]) -> int | None:
        wanted = tuple(moving)
        try:
            running = await self.reassignments(wanted)
            present = await self.topics(partition.topic for partition in wanted)
            replicas = [
                BrokerReplica(partition, broker_id)
                for partition in running
                if partition in present.partitions
                for broker_id in {
                    *running[partition].adding,
                    present.partitions[partition].leader,
                }
                if broker_id is not None and broker_id in present.brokers
            ]
            found = await self.directories(replicas, present.brokers)
        except AdminError:
            return None
        left = 0
        for partition, assignment in running.items():
            details = present.partitions.get(partition)
            if details is None or details.leader is None:
                continue
            leader = BrokerReplica(partition, details.leader)
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
