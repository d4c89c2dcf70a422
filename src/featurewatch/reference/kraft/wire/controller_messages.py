"""The requests to the metadata controller and their responses as Kafka's messages; pure.

Both sides use it: the controller reads requests and writes responses, brokers and controllers that
register write and read the other way.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast

from featurewatch.kafka.messages import message_class
from featurewatch.reference.kraft.machines.controller.requests import (
    AllocateProducerIds,
    AllocateProducerIdsResponse,
    AlterPartition,
    AlterPartitionData,
    AlterPartitionReassignments,
    AlterPartitionReassignmentsResponse,
    AlterPartitionResponse,
    AssignReplicasToDirs,
    AssignReplicasToDirsResponse,
    BrokerHeartbeat,
    BrokerHeartbeatResponse,
    BrokerRegistration,
    BrokerRegistrationResponse,
    BrokerState,
    ControllerRegistration,
    ControllerRequest,
    ControllerResponse,
    CreatePartitions,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreateTopics,
    CreateTopicsResponse,
    DeleteTopics,
    DeleteTopicsResponse,
    DeleteTopicState,
    DescribeCluster,
    DescribeClusterResponse,
    ElectLeaders,
    ElectLeadersResponse,
    FeatureUpdate,
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
from featurewatch.reference.kraft.machines.replicas import text_of
from featurewatch.reference.kraft.wire.translation import (
    ABSENT,
    Special,
    message_of,
    read_value,
)


class Api(NamedTuple):
    """The API of a request: its name, its key, its oldest and newest version, its response."""

    name: str
    key: int
    versions: tuple[int, int]
    response: type


APIS: Final[Mapping[type, Api]] = MappingProxyType(
    {
        CreateTopics: Api("CreateTopics", 19, (2, 7), CreateTopicsResponse),
        DeleteTopics: Api("DeleteTopics", 20, (1, 6), DeleteTopicsResponse),
        CreatePartitions: Api("CreatePartitions", 37, (0, 3), CreatePartitionsResponse),
        ElectLeaders: Api("ElectLeaders", 43, (0, 2), ElectLeadersResponse),
        IncrementalAlterConfigs: Api(
            "IncrementalAlterConfigs", 44, (0, 1), IncrementalAlterConfigsResponse
        ),
        AlterPartitionReassignments: Api(
            "AlterPartitionReassignments", 45, (0, 1), AlterPartitionReassignmentsResponse
        ),
        ListPartitionReassignments: Api(
            "ListPartitionReassignments", 46, (0, 0), ListPartitionReassignmentsResponse
        ),
        AlterPartition: Api("AlterPartition", 56, (2, 3), AlterPartitionResponse),
        UpdateFeatures: Api("UpdateFeatures", 57, (0, 2), UpdateFeaturesResponse),
        DescribeCluster: Api("DescribeCluster", 60, (0, 2), DescribeClusterResponse),
        BrokerRegistration: Api("BrokerRegistration", 62, (0, 4), BrokerRegistrationResponse),
        BrokerHeartbeat: Api("BrokerHeartbeat", 63, (0, 2), BrokerHeartbeatResponse),
        UnregisterBroker: Api("UnregisterBroker", 64, (0, 0), PlainResponse),
        AllocateProducerIds: Api("AllocateProducerIds", 67, (0, 0), AllocateProducerIdsResponse),
        ControllerRegistration: Api("ControllerRegistration", 70, (0, 0), PlainResponse),
        AssignReplicasToDirs: Api("AssignReplicasToDirs", 73, (0, 0), AssignReplicasToDirsResponse),
        UnregisterController: Api("UnregisterController", 94, (0, 0), PlainResponse),
    }
)
"""The API of each request to the controller, with the versions that are read and written."""

BY_KEY: Final[Mapping[int, type]] = MappingProxyType({api.key: form for form, api in APIS.items()})
"""The class of the requests of each API key."""

KIP_778_VERSIONS: Final = (0, 1)
"""The versions of UpdateFeatures in the form of KIP-778."""

_UPDATE_FEATURES: Final = 57


@cache
def request_class(key: int, version: int, *, as_written: bool = False) -> Any:
    """The message class of a request; ``as_written``: UpdateFeatures as in KIP-778."""
    name = f"{APIS[BY_KEY[key]].name}Request"
    is_draft = as_written and key == _UPDATE_FEATURES
    return message_class(f"Kip778{name}" if is_draft else name, version)


def controller_request_of(key: int, body: Any) -> ControllerRequest:
    """The request in a message of an API of `APIS`."""
    return cast("ControllerRequest", read_value(BY_KEY[key], body, _READ))


def controller_request_message(request: ControllerRequest, version: int) -> Any:
    """The message of a request in a version of its API."""
    api = APIS[type(request)]
    return message_of(message_class(f"{api.name}Request", version), request, _WRITTEN)


def controller_response_of(key: int, body: Any) -> ControllerResponse:
    """The response in a message that answers a request of this key."""
    return cast("ControllerResponse", read_value(APIS[BY_KEY[key]].response, body, _READ))


def controller_response_message(key: int, version: int, response: ControllerResponse) -> Any:
    """The message of a response to a request of this key, in the request's version."""
    kind = message_class(f"{APIS[BY_KEY[key]].name}Response", version)
    return message_of(kind, response, _WRITTEN)


# -- fields of versions that are laid out differently ----------------------------------------------


def _isr_with_epochs(partition: Any) -> tuple[BrokerState, ...]:
    """Before version 3 the ISR of an AlterPartition has no epochs."""
    if hasattr(partition, "new_isr"):
        return tuple(BrokerState(broker_id) for broker_id in partition.new_isr)
    return tuple(
        BrokerState(member.broker_id, member.broker_epoch)
        for member in partition.new_isr_with_epochs
    )


def _deleted_topics(request: Any) -> tuple[DeleteTopicState, ...]:
    """Before version 6 a DeleteTopics has names alone."""
    if hasattr(request, "topic_names"):
        return tuple(DeleteTopicState(name) for name in request.topic_names)
    return tuple(DeleteTopicState(topic.name, text_of(topic.topic_id)) for topic in request.topics)


def _new_partitions(topic: Any) -> tuple[tuple[int, ...], ...] | None:
    if topic.assignments is None:
        return None
    return tuple(assignment.broker_ids for assignment in topic.assignments)


class _Assignment(NamedTuple):
    broker_ids: tuple[int, ...]


def _assignments(topic: CreatePartitionsTopic) -> tuple[_Assignment, ...] | None:
    if topic.assignments is None:
        return None
    return tuple(map(_Assignment, topic.assignments))


def _type_of(update: Any) -> Any:
    """KIP-778's DowngradeType is at the place of the released UpgradeType."""
    return getattr(update, "downgrade_type", getattr(update, "upgrade_type", ABSENT))


def _dry_run(request: Any) -> Any:
    """KIP-778's DryRun is at the place of the released ValidateOnly."""
    return getattr(request, "dry_run", getattr(request, "validate_only", ABSENT))


_READ: Final[Special] = MappingProxyType(
    {
        (AlterPartitionData, "new_isr_with_epochs"): _isr_with_epochs,
        (DeleteTopics, "topics"): _deleted_topics,
        (CreatePartitionsTopic, "assignments"): _new_partitions,
        (FeatureUpdate, "upgrade_type"): _type_of,
        (UpdateFeatures, "validate_only"): _dry_run,
        (ElectLeadersResponse, "error_code"): lambda response: getattr(response, "error_code", 0),
    }
)
_WRITTEN: Final[Special] = MappingProxyType(
    {
        (AlterPartitionData, "new_isr"): lambda partition: tuple(
            member.broker_id for member in partition.new_isr_with_epochs
        ),
        (DeleteTopics, "topic_names"): lambda request: tuple(
            topic.name for topic in request.topics
        ),
        (CreatePartitionsTopic, "assignments"): _assignments,
    }
)
