"""The requests to the metadata controller and their responses, free of versions.

Fields are Kafka's, in snake case; ids of incarnations, directories and topics are Kafka's text of
a UUID (URL-safe base64 without padding). Where a field exists in some versions only, another
version has its default. Throttle times are left out: they are always 0.
"""

from featurewatch.reference.kraft.machines.controller.requests.defaults import (
    DEFAULT_TIMEOUT_MS,
    NO_UUID,
)
from featurewatch.reference.kraft.machines.controller.requests.features import (
    DescribeCluster,
    DescribeClusterBroker,
    DescribeClusterResponse,
    FeatureUpdate,
    UpdatableFeatureResult,
    UpdateFeatures,
    UpdateFeaturesResponse,
)
from featurewatch.reference.kraft.machines.controller.requests.leaders import (
    AlterPartitionReassignments,
    AlterPartitionReassignmentsResponse,
    ElectLeaders,
    ElectLeadersResponse,
    ElectLeadersTopic,
    ListedTopic,
    ListPartitionReassignments,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    PartitionResult,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
    ReplicaElectionResult,
)
from featurewatch.reference.kraft.machines.controller.requests.nodes import (
    BrokerHeartbeat,
    BrokerHeartbeatResponse,
    BrokerRegistration,
    BrokerRegistrationResponse,
    ControllerRegistration,
    PlainResponse,
    UnregisterBroker,
    UnregisterController,
)
from featurewatch.reference.kraft.machines.controller.requests.partitions import (
    AlterPartition,
    AlterPartitionData,
    AlterPartitionResponse,
    AlterPartitionResult,
    AlterPartitionTopic,
    AlterPartitionTopicResult,
    AssignReplicasToDirs,
    AssignReplicasToDirsResponse,
    BrokerState,
    Directory,
    DirectoryPartition,
    DirectoryTopic,
)
from featurewatch.reference.kraft.machines.controller.requests.settings import (
    AllocateProducerIds,
    AllocateProducerIdsResponse,
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigs,
    IncrementalAlterConfigsResponse,
)
from featurewatch.reference.kraft.machines.controller.requests.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreatePartitions,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
    CreateTopics,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopics,
    DeleteTopicsResponse,
    DeleteTopicState,
)

__all__ = [
    "DEFAULT_TIMEOUT_MS",
    "NO_UUID",
    "AllocateProducerIds",
    "AllocateProducerIdsResponse",
    "AlterConfigsResource",
    "AlterConfigsResourceResponse",
    "AlterPartition",
    "AlterPartitionData",
    "AlterPartitionReassignments",
    "AlterPartitionReassignmentsResponse",
    "AlterPartitionResponse",
    "AlterPartitionResult",
    "AlterPartitionTopic",
    "AlterPartitionTopicResult",
    "AlterableConfig",
    "AssignReplicasToDirs",
    "AssignReplicasToDirsResponse",
    "BrokerHeartbeat",
    "BrokerHeartbeatResponse",
    "BrokerRegistration",
    "BrokerRegistrationResponse",
    "BrokerState",
    "ControllerRegistration",
    "ControllerRequest",
    "ControllerResponse",
    "CreatableReplicaAssignment",
    "CreatableTopic",
    "CreatableTopicConfig",
    "CreatableTopicConfigs",
    "CreatableTopicResult",
    "CreatePartitions",
    "CreatePartitionsResponse",
    "CreatePartitionsTopic",
    "CreatePartitionsTopicResult",
    "CreateTopics",
    "CreateTopicsResponse",
    "DeletableTopicResult",
    "DeleteTopicState",
    "DeleteTopics",
    "DeleteTopicsResponse",
    "DescribeCluster",
    "DescribeClusterBroker",
    "DescribeClusterResponse",
    "Directory",
    "DirectoryPartition",
    "DirectoryTopic",
    "ElectLeaders",
    "ElectLeadersResponse",
    "ElectLeadersTopic",
    "FeatureUpdate",
    "IncrementalAlterConfigs",
    "IncrementalAlterConfigsResponse",
    "ListPartitionReassignments",
    "ListPartitionReassignmentsResponse",
    "ListedTopic",
    "OngoingPartitionReassignment",
    "OngoingTopicReassignment",
    "PartitionResult",
    "PlainResponse",
    "ReassignablePartition",
    "ReassignablePartitionResponse",
    "ReassignableTopic",
    "ReassignableTopicResponse",
    "ReplicaElectionResult",
    "UnregisterBroker",
    "UnregisterController",
    "UpdatableFeatureResult",
    "UpdateFeatures",
    "UpdateFeaturesResponse",
]

ControllerRequest = (
    BrokerRegistration
    | BrokerHeartbeat
    | UnregisterBroker
    | UnregisterController
    | ControllerRegistration
    | UpdateFeatures
    | DescribeCluster
    | CreateTopics
    | DeleteTopics
    | CreatePartitions
    | AlterPartition
    | AssignReplicasToDirs
    | ElectLeaders
    | AlterPartitionReassignments
    | ListPartitionReassignments
    | AllocateProducerIds
    | IncrementalAlterConfigs
)
ControllerResponse = (
    BrokerRegistrationResponse
    | BrokerHeartbeatResponse
    | PlainResponse
    | UpdateFeaturesResponse
    | DescribeClusterResponse
    | CreateTopicsResponse
    | DeleteTopicsResponse
    | CreatePartitionsResponse
    | AlterPartitionResponse
    | AssignReplicasToDirsResponse
    | ElectLeadersResponse
    | AlterPartitionReassignmentsResponse
    | ListPartitionReassignmentsResponse
    | AllocateProducerIdsResponse
    | IncrementalAlterConfigsResponse
)
