"""Partitions are moved to other replicas (KIP-455; ``ReplicationControlManager``)."""

from featurewatch.reference.kraft.machines.controller import partitions
from featurewatch.reference.kraft.machines.controller.errors import (
    INVALID_REPLICA_ASSIGNMENT,
    NO_REASSIGNMENT_IN_PROGRESS,
    NONE,
    UNKNOWN_TOPIC_OR_PARTITION,
    text_of,
)
from featurewatch.reference.kraft.machines.controller.requests import (
    AlterPartitionReassignments,
    AlterPartitionReassignmentsResponse,
    ListedTopic,
    ListPartitionReassignments,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from featurewatch.reference.kraft.machines.controller.topics import (
    RefusedError,
    check_assignment,
)
from featurewatch.reference.kraft.machines.controller.work import Work


def alter(work: Work, request: AlterPartitionReassignments) -> AlterPartitionReassignmentsResponse:
    """Begins or cancels the reassignment of each partition for which that is possible."""
    responses = []
    allows = request.allow_replication_factor_change
    for name, listed in request.topics:
        results = []
        for one in listed:
            try:
                _alter(work, name, one, allows_factor=allows)
                results.append(ReassignablePartitionResponse(one.partition_index))
            except RefusedError as refusal:
                results.append(
                    ReassignablePartitionResponse(one.partition_index, refusal.error, refusal.text)
                )
        responses.append(ReassignableTopicResponse(name, tuple(results)))
    return AlterPartitionReassignmentsResponse(NONE, None, tuple(responses), allows)


def _alter(work: Work, name: str, one: ReassignablePartition, *, allows_factor: bool) -> None:
    topic_id = work.state.ids.get(name)
    if topic_id is None:
        text = f"Unable to find a topic named {name}."
        raise RefusedError(UNKNOWN_TOPIC_OR_PARTITION, text)
    key = (topic_id, one.partition_index)
    partition = work.state.partitions.get(key)
    if partition is None:
        text = f"Unable to find partition {name}:{one.partition_index}."
        raise RefusedError(UNKNOWN_TOPIC_OR_PARTITION, text)
    if one.replicas is not None:
        present = len(partition.replicas) - len(partition.adding)
        check_assignment(work, one.replicas, None if allows_factor else present)
        partitions.reassign(work, key, one.replicas)
        return
    if not partition.adding and not partition.removing:
        raise RefusedError(NO_REASSIGNMENT_IN_PROGRESS, text_of(NO_REASSIGNMENT_IN_PROGRESS))
    if not partitions.cancel(work, key):
        text = (
            f"Unable to revert partition assignment for {name}:{one.partition_index} because it"
            " would require an unclean leader election."
        )
        raise RefusedError(INVALID_REPLICA_ASSIGNMENT, text)


def ongoing(work: Work, request: ListPartitionReassignments) -> ListPartitionReassignmentsResponse:
    """The partitions that are being reassigned, of the topics that are asked for."""
    listed = request.topics
    if listed is None:
        listed = tuple(
            ListedTopic(topic.name, tuple(range(topic.partitions)))
            for topic in sorted(work.state.topics.values(), key=lambda one: one.name)
        )
    found = []
    for name, indexes in listed:
        moving = tuple(
            OngoingPartitionReassignment(
                index, partition.replicas, partition.adding, partition.removing
            )
            for index in indexes
            if (partition := work.state.partitions.get((work.state.ids.get(name, ""), index)))
            and (partition.adding or partition.removing)
        )
        if moving:
            found.append(OngoingTopicReassignment(name, moving))
    return ListPartitionReassignmentsResponse(NONE, None, tuple(found))
