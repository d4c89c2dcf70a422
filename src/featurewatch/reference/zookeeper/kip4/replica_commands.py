"""Reassignments and preferred elections as KIP-4's draft starts and verifies them.

Both requests start something and return at once; waiting is the client's part.
"""

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.reference.zookeeper.kip4.codes import AdminRequestFailedError, ReassignmentCode
from featurewatch.reference.zookeeper.kip4.controller_access import ControllerAccess
from featurewatch.reference.zookeeper.kip4.strings import parse_manual_assignment, parse_partitions
from featurewatch.reference.zookeeper.machines.topics.requests import (
    ReassignRequest,
    RequestElections,
)


class ReassignPartitionsCommandHelper:
    """Performs ReassignPartition and VerifyReassignPartition.

    Both methods raise `AdminRequestFailedError` and `NotControllerForAdminError`.
    """

    def __init__(self, controller: ControllerAccess) -> None:
        self._controller = controller

    async def reassign(self, manual_assignment: str) -> None:
        """Starts the reassignments of all partitions of the string, or of none."""
        self._controller.context()
        targets = {**parse_manual_assignment(manual_assignment)}
        await self._controller.perform(ReassignRequest(targets, all_or_nothing=True))

    def verify(self, manual_assignment: str) -> dict[TopicPartition, ReassignmentCode]:
        """The state of each partition of the string, in its order.

        A partition that is not being reassigned and has other replicas than the string says, in
        another order or not at all, has failed (``ReassignPartitionsCommand`` of Kafka 0.8).
        """
        context = self._controller.context()
        codes = {}
        for partition, replicas in parse_manual_assignment(manual_assignment).items():
            if partition in context.reassigning:
                codes[partition] = ReassignmentCode.IN_PROGRESS
            elif context.assignment(partition).replicas == replicas:
                codes[partition] = ReassignmentCode.COMPLETED
            else:
                codes[partition] = ReassignmentCode.FAILED
        return codes


class PreferredReplicaLeaderElectionCommandHelper:
    """Performs PreferredReplicaLeaderElection."""

    def __init__(self, controller: ControllerAccess) -> None:
        self._controller = controller

    async def elect(self, partitions_serialized: str | None) -> None:
        """Starts the elections of the string's partitions, or without a string of all.

        It returns when they are in ZooKeeper, where the next controller finds them if this one is
        deposed before it performs them.

        Raises:
            AdminRequestFailedError: if the string is bad, or names a partition that does not exist
                or is being deleted. Nothing is started then.
            NotControllerForAdminError: if this node is not the controller.
        """
        context = self._controller.context()
        partitions = None
        if partitions_serialized is not None:
            partitions = tuple(parse_partitions(partitions_serialized))
            for partition in partitions:
                if partition not in context.assignments:
                    raise AdminRequestFailedError(f"Partition {partition} does not exist.")
                if context.is_being_deleted(partition):
                    raise AdminRequestFailedError(f"Partition {partition} is being deleted.")
        await self._controller.perform(RequestElections(partitions))
