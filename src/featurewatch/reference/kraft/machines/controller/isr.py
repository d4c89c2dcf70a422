"""What leaders and administrators ask of partitions: ISRs, directories, elections.

Follows ``ReplicationControlManager.alterPartition``, ``handleAssignReplicasToDirs`` and
``electLeaders``.
"""

from featurewatch.controller.partitions.kraft_election import KraftElection
from featurewatch.reference.kraft.machines.controller import partitions
from featurewatch.reference.kraft.machines.controller.errors import (
    ELECTION_NOT_NEEDED,
    ELIGIBLE_LEADERS_NOT_AVAILABLE,
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NEW_LEADER_ELECTED,
    NONE,
    NOT_CONTROLLER,
    NOT_LEADER_OR_FOLLOWER,
    PREFERRED_LEADER_NOT_AVAILABLE,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
    text_of,
)
from featurewatch.reference.kraft.machines.controller.nodes import epoch_error
from featurewatch.reference.kraft.machines.controller.requests import (
    AlterPartition,
    AlterPartitionData,
    AlterPartitionResponse,
    AlterPartitionResult,
    AlterPartitionTopicResult,
    AssignReplicasToDirs,
    AssignReplicasToDirsResponse,
    BrokerState,
    Directory,
    DirectoryPartition,
    DirectoryTopic,
    ElectLeaders,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from featurewatch.reference.kraft.machines.controller.work import Work
from featurewatch.reference.kraft.machines.metadata.state import (
    NO_LEADER,
    Partition,
    PartitionKey,
)

_PREFERRED, _UNCLEAN = 0, 1
_RECOVERED, _RECOVERING = 0, 1


def alter_partition(work: Work, request: AlterPartition) -> AlterPartitionResponse:
    """Changes ISRs as leaders ask."""
    if error := epoch_error(work, request.broker_id, request.broker_epoch):
        return AlterPartitionResponse(error)
    return AlterPartitionResponse(
        NONE,
        tuple(
            AlterPartitionTopicResult(
                topic_id,
                tuple(_alter(work, request.broker_id, topic_id, one) for one in found),
            )
            for topic_id, found in request.topics
        ),
    )


def _alter(
    work: Work, broker_id: int, topic_id: str, one: AlterPartitionData
) -> AlterPartitionResult:
    key = (topic_id, one.partition_index)
    if topic_id not in work.state.topics:
        return AlterPartitionResult(one.partition_index, UNKNOWN_TOPIC_ID)
    error = _alter_error(work, broker_id, work.state.partitions.get(key), one)
    if error:
        return AlterPartitionResult(one.partition_index, error)
    isr = tuple(member.broker_id for member in one.new_isr_with_epochs)
    partitions.alter_isr(work, key, isr, recovering=one.leader_recovery_state == _RECOVERING)
    after = work.state.partitions[key]
    if after.leader != broker_id:  # the reassignment that this ISR completes removes the leader
        return AlterPartitionResult(one.partition_index, NEW_LEADER_ELECTED)
    return AlterPartitionResult(
        one.partition_index,
        NONE,
        after.leader,
        after.leader_epoch,
        after.isr,
        after.recovery_state,
        after.partition_epoch,
    )


def _alter_error(
    work: Work, broker_id: int, partition: Partition | None, one: AlterPartitionData
) -> int:
    """``validateAlterPartitionData``."""
    if partition is None:
        return UNKNOWN_TOPIC_OR_PARTITION
    is_ahead = one.leader_epoch > partition.leader_epoch
    if is_ahead or one.partition_epoch > partition.partition_epoch:
        return NOT_CONTROLLER  # another controller must have changed it
    if one.leader_epoch < partition.leader_epoch:
        return FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return INVALID_REQUEST
    if one.partition_epoch < partition.partition_epoch:
        return INVALID_UPDATE_VERSION
    isr = [member.broker_id for member in one.new_isr_with_epochs]
    is_valid = bool(isr) and len({*isr}) == len(isr) and {*isr} <= {*partition.replicas}
    if not is_valid or partition.leader not in isr:
        return INVALID_REQUEST
    recovery = one.leader_recovery_state
    if recovery not in (_RECOVERED, _RECOVERING):
        return INVALID_REQUEST
    if recovery == _RECOVERING and (len(isr) > 1 or partition.recovery_state == _RECOVERED):
        return INVALID_REQUEST
    if not all(_is_eligible(work, member) for member in one.new_isr_with_epochs):
        return INELIGIBLE_REPLICA
    return NONE


def _is_eligible(work: Work, member: BrokerState) -> bool:
    """Whether a broker may be in an ISR: not fenced, and in the life that the leader knows."""
    broker = work.state.brokers.get(member.broker_id)
    return broker is not None and broker.is_active and member.broker_epoch in (-1, broker.epoch)


# -- directories -----------------------------------------------------------------------------------


def assign_directories(work: Work, request: AssignReplicasToDirs) -> AssignReplicasToDirsResponse:
    """Notes in which directories the replicas of a broker are (KIP-858)."""
    if not work.gates.directories:
        return AssignReplicasToDirsResponse(UNSUPPORTED_VERSION)
    if error := epoch_error(work, request.broker_id, request.broker_epoch):
        return AssignReplicasToDirsResponse(error)
    lost: list[PartitionKey] = []
    results = tuple(
        Directory(
            directory.id,
            tuple(
                DirectoryTopic(
                    topic.topic_id,
                    tuple(
                        DirectoryPartition(
                            index,
                            _assign(
                                work, request.broker_id, directory.id, (topic.topic_id, index), lost
                            ),
                        )
                        for index, _ in topic.partitions
                    ),
                )
                for topic in directory.topics
            ),
        )
        for directory in request.directories
    )
    partitions.remove_broker(work, request.broker_id, lost)
    return AssignReplicasToDirsResponse(NONE, results)


def _assign(
    work: Work, broker_id: int, directory: str, key: PartitionKey, lost: list[PartitionKey]
) -> int:
    if key[0] not in work.state.topics:
        return UNKNOWN_TOPIC_ID
    partition = work.state.partitions.get(key)
    if partition is None:
        return UNKNOWN_TOPIC_OR_PARTITION
    if broker_id not in partition.replicas:
        return NOT_LEADER_OR_FOLLOWER
    partitions.assign_directory(work, key, broker_id, directory)
    if not work.state.brokers[broker_id].has_online(directory):
        lost.append(key)
    return NONE


# -- elections -------------------------------------------------------------------------------------


def elect_leaders(work: Work, request: ElectLeaders) -> ElectLeadersResponse:
    """Elects preferred leaders, or any for partitions that have none."""
    if request.election_type not in (_PREFERRED, _UNCLEAN):
        return ElectLeadersResponse(INVALID_REQUEST)
    is_unclean = request.election_type == _UNCLEAN
    if request.topic_partitions is None:
        named = {topic.name: [*range(topic.partitions)] for topic in work.state.topics.values()}
    else:
        named = {one.topic: [*one.partitions] for one in request.topic_partitions}
    results = []
    for topic, indexes in sorted(named.items()):
        found = [
            PartitionResult(at, *_elect(work, topic, at, is_unclean=is_unclean)) for at in indexes
        ]
        if request.topic_partitions is None:  # those that need none are left out
            found = [one for one in found if one.error_code != ELECTION_NOT_NEEDED]
        results.append(ReplicaElectionResult(topic, tuple(found)))
    return ElectLeadersResponse(NONE, tuple(results))


def _elect(work: Work, topic: str, index: int, *, is_unclean: bool) -> tuple[int, str | None]:
    topic_id = work.state.ids.get(topic)
    if topic_id is None:
        return UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic}"
    partition = work.state.partitions.get((topic_id, index))
    if partition is None:
        return UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic}-{index}"
    has_leader = partition.leader != NO_LEADER
    has_preferred = partition.leader == partition.replicas[0]
    if has_leader if is_unclean else has_preferred:
        return ELECTION_NOT_NEEDED, text_of(ELECTION_NOT_NEEDED)
    election = KraftElection.UNCLEAN if is_unclean else KraftElection.PREFERRED
    if partitions.elect(work, (topic_id, index), election):
        return NONE, None
    error = ELIGIBLE_LEADERS_NOT_AVAILABLE if is_unclean else PREFERRED_LEADER_NOT_AVAILABLE
    return error, text_of(error)
