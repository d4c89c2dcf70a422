"""The requests to the metadata controller and their responses, free of versions.

Fields are Kafka's, in snake case; ids of incarnations, directories and topics are Kafka's text of
a UUID (URL-safe base64 without padding). Where a field exists in some versions only, another
version has its default. Throttle times are left out: they are always 0.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

NO_UUID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
"""The text of the UUID that stands for none."""
DEFAULT_TIMEOUT_MS: Final = 60_000


class Listener(NamedTuple):
    """A listener that a node registers; ``security_protocol`` is Kafka's number."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


class Feature(NamedTuple):
    """The supported range of a feature that a node registers."""

    name: str
    min_supported_version: int
    max_supported_version: int


# -- nodes -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """A broker registers (``BrokerRegistrationRequest``, 62, versions 0-4)."""

    broker_id: int
    cluster_id: str
    incarnation_id: str
    listeners: tuple[Listener, ...]
    features: tuple[Feature, ...]
    rack: str | None = None
    is_migrating_zk_broker: bool = False
    log_dirs: tuple[str, ...] = ()
    previous_broker_epoch: int = -1


@dataclass(frozen=True, slots=True)
class BrokerRegistrationResponse:
    """The answer to a `BrokerRegistration`; the epoch is -1 where it was refused."""

    error_code: int
    broker_epoch: int = -1


@dataclass(frozen=True, slots=True)
class BrokerHeartbeat:
    """A broker reports, and says what it wants (``BrokerHeartbeatRequest``, 63, versions 0-2)."""

    broker_id: int
    broker_epoch: int
    current_metadata_offset: int
    want_fence: bool
    want_shut_down: bool
    offline_log_dirs: tuple[str, ...] = ()
    cordoned_log_dirs: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class BrokerHeartbeatResponse:
    """The answer to a `BrokerHeartbeat`."""

    error_code: int
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False


@dataclass(frozen=True, slots=True)
class UnregisterBroker:
    """Removes the registration of a broker (``UnregisterBrokerRequest``, 64)."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class UnregisterController:
    """Removes the registration of a controller (``UnregisterControllerRequest``, KIP-1312)."""

    controller_id: int


@dataclass(frozen=True, slots=True)
class PlainResponse:
    """The answer that has an error and a text, and nothing else.

    It answers `UnregisterBroker`, `UnregisterController` and `ControllerRegistration`.
    """

    error_code: int
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class ControllerRegistration:
    """A controller registers (``ControllerRegistrationRequest``, 70)."""

    controller_id: int
    incarnation_id: str
    zk_migration_ready: bool
    listeners: tuple[Listener, ...]
    features: tuple[Feature, ...]


# -- features and the cluster ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FeatureUpdate:
    """One level to finalize (``FeatureUpdateKey``).

    ``allow_downgrade`` is that of version 0; ``upgrade_type`` the number on the wire of the later
    ones: 1, 2 and 3, or in the form of KIP-778 0, 1 and 2 (``DowngradeType``).
    """

    feature: str
    max_version_level: int
    allow_downgrade: bool = False
    upgrade_type: int = 1


@dataclass(frozen=True, slots=True)
class UpdateFeatures:
    """Changes levels (``UpdateFeaturesRequest``, 57, versions 0-2).

    ``validate_only`` is ``DryRun`` in the form of KIP-778, which has the same layout.
    """

    feature_updates: tuple[FeatureUpdate, ...]
    validate_only: bool = False
    timeout_ms: int = DEFAULT_TIMEOUT_MS


class UpdatableFeatureResult(NamedTuple):
    """The result for one feature, in versions 0 and 1."""

    feature: str
    error_code: int
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateFeaturesResponse:
    """The answer to an `UpdateFeatures`."""

    error_code: int
    error_message: str | None = None
    results: tuple[UpdatableFeatureResult, ...] = ()


@dataclass(frozen=True, slots=True)
class DescribeCluster:
    """Asks for the nodes (``DescribeClusterRequest``, 60): of type 1 brokers, 2 controllers."""

    endpoint_type: int = 2
    include_fenced_brokers: bool = False


class DescribeClusterBroker(NamedTuple):
    """A node in a `DescribeClusterResponse`, in which every node is called a broker."""

    broker_id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False


@dataclass(frozen=True, slots=True)
class DescribeClusterResponse:
    """The answer to a `DescribeCluster`; ``controller_id`` is the active controller, -1: unknown.

    It is answered by every controller from what is committed there.
    """

    error_code: int
    error_message: str | None = None
    endpoint_type: int = 2
    cluster_id: str = ""
    controller_id: int = -1
    brokers: tuple[DescribeClusterBroker, ...] = ()


# -- topics ----------------------------------------------------------------------------------------


class CreatableReplicaAssignment(NamedTuple):
    """The brokers of one partition, given by the client."""

    partition_index: int
    broker_ids: tuple[int, ...]


class CreatableTopicConfig(NamedTuple):
    """A setting of a new topic."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class CreatableTopic:
    """A topic to create; counts are -1 for the default or with ``assignments``."""

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: tuple[CreatableReplicaAssignment, ...] = ()
    configs: tuple[CreatableTopicConfig, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTopics:
    """Creates topics (``CreateTopicsRequest``, 19, versions 2-7)."""

    topics: tuple[CreatableTopic, ...]
    validate_only: bool = False
    timeout_ms: int = DEFAULT_TIMEOUT_MS


class CreatableTopicConfigs(NamedTuple):
    """A setting of a topic that was created; ``config_source`` is Kafka's number."""

    name: str
    value: str | None
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False


@dataclass(frozen=True, slots=True)
class CreatableTopicResult:
    """The result for one topic."""

    name: str
    topic_id: str = NO_UUID
    error_code: int = 0
    error_message: str | None = None
    topic_config_error_code: int = 0
    num_partitions: int = -1
    replication_factor: int = -1
    configs: tuple[CreatableTopicConfigs, ...] | None = None


@dataclass(frozen=True, slots=True)
class CreateTopicsResponse:
    """The answer to a `CreateTopics`."""

    topics: tuple[CreatableTopicResult, ...]


class DeleteTopicState(NamedTuple):
    """A topic to delete, by name or by id; names of versions 1-5 come as such, too."""

    name: str | None = None
    topic_id: str = NO_UUID


@dataclass(frozen=True, slots=True)
class DeleteTopics:
    """Deletes topics (``DeleteTopicsRequest``, 20, versions 1-6)."""

    topics: tuple[DeleteTopicState, ...]
    timeout_ms: int = DEFAULT_TIMEOUT_MS


class DeletableTopicResult(NamedTuple):
    """The result for one topic."""

    name: str | None
    topic_id: str = NO_UUID
    error_code: int = 0
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteTopicsResponse:
    """The answer to a `DeleteTopics`."""

    responses: tuple[DeletableTopicResult, ...]


@dataclass(frozen=True, slots=True)
class CreatePartitionsTopic:
    """A topic to give more partitions; ``assignments`` has the brokers of each new one, or None."""

    name: str
    count: int
    assignments: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class CreatePartitions:
    """Adds partitions to topics (``CreatePartitionsRequest``, 37, versions 0-3)."""

    topics: tuple[CreatePartitionsTopic, ...]
    validate_only: bool = False
    timeout_ms: int = DEFAULT_TIMEOUT_MS


class CreatePartitionsTopicResult(NamedTuple):
    """The result for one topic."""

    name: str
    error_code: int = 0
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class CreatePartitionsResponse:
    """The answer to a `CreatePartitions`."""

    results: tuple[CreatePartitionsTopicResult, ...]


# -- partitions ------------------------------------------------------------------------------------


class BrokerState(NamedTuple):
    """A member of a new ISR and its epoch; -1 where the version has none."""

    broker_id: int
    broker_epoch: int = -1


@dataclass(frozen=True, slots=True)
class AlterPartitionData:
    """The new ISR of one partition; that of versions 0-2 (``NewIsr``) comes with epochs of -1."""

    partition_index: int
    leader_epoch: int
    new_isr_with_epochs: tuple[BrokerState, ...]
    partition_epoch: int
    leader_recovery_state: int = 0


class AlterPartitionTopic(NamedTuple):
    """The partitions of one topic."""

    topic_id: str
    partitions: tuple[AlterPartitionData, ...]


@dataclass(frozen=True, slots=True)
class AlterPartition:
    """A leader changes the ISR of partitions (``AlterPartitionRequest``, 56, versions 2-3)."""

    broker_id: int
    broker_epoch: int
    topics: tuple[AlterPartitionTopic, ...]


@dataclass(frozen=True, slots=True)
class AlterPartitionResult:
    """The partition as it is now, or what is wrong."""

    partition_index: int
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    isr: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    partition_epoch: int = 0


class AlterPartitionTopicResult(NamedTuple):
    """The results of one topic."""

    topic_id: str
    partitions: tuple[AlterPartitionResult, ...]


@dataclass(frozen=True, slots=True)
class AlterPartitionResponse:
    """The answer to an `AlterPartition`."""

    error_code: int
    topics: tuple[AlterPartitionTopicResult, ...] = ()


class DirectoryPartition(NamedTuple):
    """A partition that a broker holds in a directory; in a response with its error."""

    partition_index: int
    error_code: int = 0


class DirectoryTopic(NamedTuple):
    """The partitions of one topic in a directory."""

    topic_id: str
    partitions: tuple[DirectoryPartition, ...]


class Directory(NamedTuple):
    """A log directory and what a broker holds in it."""

    id: str
    topics: tuple[DirectoryTopic, ...]


@dataclass(frozen=True, slots=True)
class AssignReplicasToDirs:
    """A broker tells in which directories replicas are (``AssignReplicasToDirsRequest``, 73)."""

    broker_id: int
    broker_epoch: int
    directories: tuple[Directory, ...]


@dataclass(frozen=True, slots=True)
class AssignReplicasToDirsResponse:
    """The answer to an `AssignReplicasToDirs`."""

    error_code: int
    directories: tuple[Directory, ...] = ()


@dataclass(frozen=True, slots=True)
class ElectLeadersTopic:
    """The partitions of a topic that need an election."""

    topic: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ElectLeaders:
    """Elects leaders (``ElectLeadersRequest``, 43, versions 0-2).

    ``election_type`` is 0 for the preferred leader, 1 for an unclean election; without
    ``topic_partitions`` (None) all partitions are meant.
    """

    topic_partitions: tuple[ElectLeadersTopic, ...] | None
    election_type: int = 0
    timeout_ms: int = DEFAULT_TIMEOUT_MS


class PartitionResult(NamedTuple):
    """The result of the election of one partition."""

    partition_id: int
    error_code: int = 0
    error_message: str | None = None


class ReplicaElectionResult(NamedTuple):
    """The results of one topic."""

    topic: str
    partition_result: tuple[PartitionResult, ...]


@dataclass(frozen=True, slots=True)
class ElectLeadersResponse:
    """The answer to an `ElectLeaders`."""

    error_code: int
    replica_election_results: tuple[ReplicaElectionResult, ...] = ()


class ReassignablePartition(NamedTuple):
    """The replicas that a partition should have; None cancels its reassignment."""

    partition_index: int
    replicas: tuple[int, ...] | None


class ReassignableTopic(NamedTuple):
    """The partitions of one topic."""

    name: str
    partitions: tuple[ReassignablePartition, ...]


@dataclass(frozen=True, slots=True)
class AlterPartitionReassignments:
    """Begins or cancels reassignments (``AlterPartitionReassignmentsRequest``, 45)."""

    topics: tuple[ReassignableTopic, ...]
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    allow_replication_factor_change: bool = True


class ReassignablePartitionResponse(NamedTuple):
    """The result for one partition."""

    partition_index: int
    error_code: int = 0
    error_message: str | None = None


class ReassignableTopicResponse(NamedTuple):
    """The results of one topic."""

    name: str
    partitions: tuple[ReassignablePartitionResponse, ...]


@dataclass(frozen=True, slots=True)
class AlterPartitionReassignmentsResponse:
    """The answer to an `AlterPartitionReassignments`."""

    error_code: int
    error_message: str | None = None
    responses: tuple[ReassignableTopicResponse, ...] = ()
    allow_replication_factor_change: bool = True


class ListedTopic(NamedTuple):
    """The partitions of a topic whose reassignments are listed."""

    name: str
    partition_indexes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ListPartitionReassignments:
    """Lists reassignments (``ListPartitionReassignmentsRequest``, 46); None: of all topics."""

    topics: tuple[ListedTopic, ...] | None
    timeout_ms: int = DEFAULT_TIMEOUT_MS


class OngoingPartitionReassignment(NamedTuple):
    """A partition that is being reassigned."""

    partition_index: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


class OngoingTopicReassignment(NamedTuple):
    """The partitions of one topic."""

    name: str
    partitions: tuple[OngoingPartitionReassignment, ...]


@dataclass(frozen=True, slots=True)
class ListPartitionReassignmentsResponse:
    """The answer to a `ListPartitionReassignments`."""

    error_code: int
    error_message: str | None = None
    topics: tuple[OngoingTopicReassignment, ...] = ()


# -- producer ids and settings ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AllocateProducerIds:
    """A broker takes a block of producer ids (``AllocateProducerIdsRequest``, 67)."""

    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class AllocateProducerIdsResponse:
    """The answer to an `AllocateProducerIds`."""

    error_code: int
    producer_id_start: int = 0
    producer_id_len: int = 0


class AlterableConfig(NamedTuple):
    """A setting to change; ``config_operation``: 0 set, 1 delete, 2 append, 3 subtract."""

    name: str
    config_operation: int
    value: str | None


@dataclass(frozen=True, slots=True)
class AlterConfigsResource:
    """The settings of a resource; ``resource_type`` is Kafka's number (2 topic, 4 broker)."""

    resource_type: int
    resource_name: str
    configs: tuple[AlterableConfig, ...]


@dataclass(frozen=True, slots=True)
class IncrementalAlterConfigs:
    """Changes settings (``IncrementalAlterConfigsRequest``, 44)."""

    resources: tuple[AlterConfigsResource, ...]
    validate_only: bool = False


class AlterConfigsResourceResponse(NamedTuple):
    """The result for one resource."""

    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str


@dataclass(frozen=True, slots=True)
class IncrementalAlterConfigsResponse:
    """The answer to an `IncrementalAlterConfigs`."""

    responses: tuple[AlterConfigsResourceResponse, ...]


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
