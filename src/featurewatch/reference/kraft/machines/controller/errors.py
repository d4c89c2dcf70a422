"""Kafka's numbers of the errors that a metadata controller answers, and answers of nothing else."""

from collections.abc import Callable
from typing import Any, Final

from featurewatch.kafka.errors import kafka_error
from featurewatch.reference.kraft.machines.controller.requests import (
    AllocateProducerIds,
    AllocateProducerIdsResponse,
    AlterConfigsResourceResponse,
    AlterPartition,
    AlterPartitionReassignments,
    AlterPartitionReassignmentsResponse,
    AlterPartitionResponse,
    AssignReplicasToDirs,
    AssignReplicasToDirsResponse,
    BrokerHeartbeat,
    BrokerHeartbeatResponse,
    BrokerRegistration,
    BrokerRegistrationResponse,
    ControllerRegistration,
    ControllerRequest,
    ControllerResponse,
    CreatableTopicResult,
    CreatePartitions,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
    CreateTopics,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopics,
    DeleteTopicsResponse,
    DescribeCluster,
    DescribeClusterResponse,
    ElectLeaders,
    ElectLeadersResponse,
    IncrementalAlterConfigs,
    IncrementalAlterConfigsResponse,
    ListPartitionReassignments,
    ListPartitionReassignmentsResponse,
    PlainResponse,
    UnregisterBroker,
    UnregisterController,
    UpdateFeatures,
    UpdateFeaturesResponse,
)

NONE: Final = 0
UNKNOWN_TOPIC_OR_PARTITION: Final = 3
NOT_LEADER_OR_FOLLOWER: Final = 6
INVALID_TOPIC_EXCEPTION: Final = 17
UNSUPPORTED_VERSION: Final = 35
TOPIC_ALREADY_EXISTS: Final = 36
INVALID_PARTITIONS: Final = 37
INVALID_REPLICATION_FACTOR: Final = 38
INVALID_REPLICA_ASSIGNMENT: Final = 39
INVALID_CONFIG: Final = 40
NOT_CONTROLLER: Final = 41
INVALID_REQUEST: Final = 42
POLICY_VIOLATION: Final = 44
FENCED_LEADER_EPOCH: Final = 74
STALE_BROKER_EPOCH: Final = 77
PREFERRED_LEADER_NOT_AVAILABLE: Final = 80
ELIGIBLE_LEADERS_NOT_AVAILABLE: Final = 83
ELECTION_NOT_NEEDED: Final = 84
NO_REASSIGNMENT_IN_PROGRESS: Final = 85
INVALID_UPDATE_VERSION: Final = 95
UNKNOWN_TOPIC_ID: Final = 100
BROKER_ID_NOT_REGISTERED: Final = 102
INELIGIBLE_REPLICA: Final = 107
NEW_LEADER_ELECTED: Final = 108
MISMATCHED_ENDPOINT_TYPE: Final = 114


def text_of(error: int) -> str:
    """Kafka's text of an error."""
    found = kafka_error(error)
    return found.text if found else f"error {error}"


def failed(request: ControllerRequest, error: int) -> ControllerResponse:
    """The response that says of everything in a request that it failed."""
    return _FAILED[type(request)](request, error, text_of(error))


def _failed_topics(request: CreateTopics, error: int, text: str) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        tuple(
            CreatableTopicResult(topic.name, error_code=error, error_message=text)
            for topic in request.topics
        )
    )


def _failed_deletions(request: DeleteTopics, error: int, text: str) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        tuple(
            DeletableTopicResult(topic.name, topic.topic_id, error, text)
            for topic in request.topics
        )
    )


def _failed_partitions(
    request: CreatePartitions, error: int, text: str
) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        tuple(CreatePartitionsTopicResult(topic.name, error, text) for topic in request.topics)
    )


def _failed_settings(
    request: IncrementalAlterConfigs, error: int, text: str
) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        tuple(
            AlterConfigsResourceResponse(error, text, one.resource_type, one.resource_name)
            for one in request.resources
        )
    )


_FAILED: Final[dict[type, Callable[[Any, int, str], ControllerResponse]]] = {
    BrokerRegistration: lambda _, error, __: BrokerRegistrationResponse(error),
    BrokerHeartbeat: lambda _, error, __: BrokerHeartbeatResponse(error),
    UnregisterBroker: lambda _, error, text: PlainResponse(error, text),
    UnregisterController: lambda _, error, text: PlainResponse(error, text),
    ControllerRegistration: lambda _, error, text: PlainResponse(error, text),
    UpdateFeatures: lambda _, error, text: UpdateFeaturesResponse(error, text),
    DescribeCluster: lambda it, error, text: DescribeClusterResponse(error, text, it.endpoint_type),
    CreateTopics: _failed_topics,
    DeleteTopics: _failed_deletions,
    CreatePartitions: _failed_partitions,
    AlterPartition: lambda _, error, __: AlterPartitionResponse(error),
    AssignReplicasToDirs: lambda _, error, __: AssignReplicasToDirsResponse(error),
    ElectLeaders: lambda _, error, __: ElectLeadersResponse(error),
    AlterPartitionReassignments: lambda _, error, text: AlterPartitionReassignmentsResponse(
        error, text
    ),
    ListPartitionReassignments: lambda _, error, text: ListPartitionReassignmentsResponse(
        error, text
    ),
    AllocateProducerIds: lambda _, error, __: AllocateProducerIdsResponse(error),
    IncrementalAlterConfigs: _failed_settings,
}
