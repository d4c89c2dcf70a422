"""The messages of the controller: written and read in each version, and as kio writes them."""

import io
import struct
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from kio.serial import entity_reader, entity_writer

from featurewatch.kafka.decode import read_entity
from featurewatch.kafka.encode import write_entity
from featurewatch.kafka.messages import message_class
from featurewatch.reference.kraft.machines.controller.requests import (
    AllocateProducerIds,
    AllocateProducerIdsResponse,
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterPartition,
    AlterPartitionData,
    AlterPartitionReassignments,
    AlterPartitionReassignmentsResponse,
    AlterPartitionResponse,
    AlterPartitionResult,
    AlterPartitionTopic,
    AlterPartitionTopicResult,
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
    DescribeCluster,
    DescribeClusterBroker,
    DescribeClusterResponse,
    Directory,
    DirectoryPartition,
    DirectoryTopic,
    ElectLeaders,
    ElectLeadersResponse,
    ElectLeadersTopic,
    FeatureUpdate,
    IncrementalAlterConfigs,
    IncrementalAlterConfigsResponse,
    ListedTopic,
    ListPartitionReassignments,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    PartitionResult,
    PlainResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
    ReplicaElectionResult,
    UnregisterBroker,
    UnregisterController,
    UpdatableFeatureResult,
    UpdateFeatures,
    UpdateFeaturesResponse,
)
from featurewatch.reference.kraft.machines.metadata.state import Feature, Listener
from featurewatch.reference.kraft.wire.controller_messages import (
    APIS,
    controller_request_message,
    controller_request_of,
    controller_response_message,
    controller_response_of,
    request_class,
)
from featurewatch.reference.kraft.wire.envelope import (
    EnvelopeError,
    envelope_error,
    envelope_response,
    forwarded_request,
)
from tests.kafka.kio_messages import is_in_kio, kio_class
from tests.reference.kraft.forwarded import PRINCIPAL, envelope, frame

ID = "3Db5QLSqSZieL3rJBUUegA"
OTHER = "x1Yy0LSqSZieL3rJBUUegQ"
LISTENERS = (Listener("PLAINTEXT", "localhost", 65_535, 2),)
FEATURES = (Feature("metadata.version", 7, 30), Feature("kraft.version", 0, 1))

REQUESTS: tuple[ControllerRequest, ...] = (
    BrokerRegistration(5, "c", ID, LISTENERS, FEATURES, "rack", True, (ID, OTHER), 77),
    BrokerRegistration(5, "c", ID, LISTENERS, FEATURES),
    BrokerHeartbeat(5, 77, 1 << 40, True, True, (ID,), (OTHER,)),
    BrokerHeartbeat(5, 77, 3, False, False),
    UnregisterBroker(5),
    UnregisterController(3000),
    ControllerRegistration(3000, ID, True, LISTENERS, FEATURES),
    UpdateFeatures(
        (FeatureUpdate("metadata.version", 29, True, 3), FeatureUpdate("a", 0)), True, 5
    ),
    DescribeCluster(2, True),
    CreateTopics(
        (
            CreatableTopic(
                "a",
                assignments=(CreatableReplicaAssignment(0, (1, 2)),),
                configs=(
                    CreatableTopicConfig("retention.ms", "5"),
                    CreatableTopicConfig("b", None),
                ),
            ),
            CreatableTopic("b", 3, 2),
        ),
        True,
        9,
    ),
    DeleteTopics((DeleteTopicState("a"), DeleteTopicState(None, ID)), 9),
    CreatePartitions(
        (CreatePartitionsTopic("a", 4, ((1, 2), (2, 3))), CreatePartitionsTopic("b", 5)), True, 9
    ),
    AlterPartition(
        5,
        77,
        (AlterPartitionTopic(ID, (AlterPartitionData(2, 9, (BrokerState(5, 77),), 12, 1),)),),
    ),
    AssignReplicasToDirs(
        5, 77, (Directory(ID, (DirectoryTopic(OTHER, (DirectoryPartition(3),)),)),)
    ),
    ElectLeaders((ElectLeadersTopic("a", (0, 1)),), 1, 9),
    ElectLeaders(None, 1, 9),
    AlterPartitionReassignments(
        (
            ReassignableTopic(
                "a", (ReassignablePartition(0, (1, 2)), ReassignablePartition(1, None))
            ),
        ),
        9,
        False,
    ),
    ListPartitionReassignments((ListedTopic("a", (0, 1)),), 9),
    ListPartitionReassignments(None, 9),
    AllocateProducerIds(5, 77),
    IncrementalAlterConfigs((AlterConfigsResource(4, "", (AlterableConfig("a", 1, None),)),), True),
)
RESPONSES: tuple[tuple[int, ControllerResponse], ...] = (
    (62, BrokerRegistrationResponse(0, 77)),
    (63, BrokerHeartbeatResponse(0, True, False, True)),
    (63, BrokerHeartbeatResponse(77)),
    (64, PlainResponse(102, "unknown")),
    (70, PlainResponse(0)),
    (94, PlainResponse(42, "no")),
    (57, UpdateFeaturesResponse(0, None, (UpdatableFeatureResult("a", 95, "no"),))),
    (
        60,
        DescribeClusterResponse(
            0, None, 2, "c", 3000, (DescribeClusterBroker(3000, "localhost", 9, "r", True),)
        ),
    ),
    (
        19,
        CreateTopicsResponse(
            (
                CreatableTopicResult(
                    "a",
                    ID,
                    num_partitions=3,
                    replication_factor=2,
                    configs=(CreatableTopicConfigs("retention.ms", "5", True, 1, True),),
                ),
                CreatableTopicResult("b", error_code=36, error_message="exists"),
            )
        ),
    ),
    (20, DeleteTopicsResponse((DeletableTopicResult("a", ID, 3, "unknown"),))),
    (37, CreatePartitionsResponse((CreatePartitionsTopicResult("a", 37, "no"),))),
    (
        56,
        AlterPartitionResponse(
            0, (AlterPartitionTopicResult(ID, (AlterPartitionResult(2, 0, 5, 9, (5,), 1, 12),)),)
        ),
    ),
    (56, AlterPartitionResponse(41)),
    (
        73,
        AssignReplicasToDirsResponse(
            0, (Directory(ID, (DirectoryTopic(OTHER, (DirectoryPartition(3, 100),)),)),)
        ),
    ),
    (
        43,
        ElectLeadersResponse(
            0, (ReplicaElectionResult("a", (PartitionResult(0, 84), PartitionResult(1, 3, "no"))),)
        ),
    ),
    (
        45,
        AlterPartitionReassignmentsResponse(
            0,
            None,
            (ReassignableTopicResponse("a", (ReassignablePartitionResponse(0, 85, "none"),)),),
            False,
        ),
    ),
    (45, AlterPartitionReassignmentsResponse(41, "no")),
    (
        46,
        ListPartitionReassignmentsResponse(
            0,
            None,
            (
                OngoingTopicReassignment(
                    "a", (OngoingPartitionReassignment(0, (1, 2), (2,), (3,)),)
                ),
            ),
        ),
    ),
    (67, AllocateProducerIdsResponse(0, 5000, 1000)),
    (
        44,
        IncrementalAlterConfigsResponse((AlterConfigsResourceResponse(40, "no", 2, "a"),)),
    ),
)

FIELDS: dict[str, tuple[int, int]] = {
    "BrokerRegistration.is_migrating_zk_broker": (1, 4),
    "BrokerRegistration.log_dirs": (2, 4),
    "BrokerRegistration.previous_broker_epoch": (3, 4),
    "BrokerHeartbeat.offline_log_dirs": (1, 2),
    "BrokerHeartbeat.cordoned_log_dirs": (2, 2),
    "FeatureUpdate.allow_downgrade": (0, 0),
    "FeatureUpdate.upgrade_type": (1, 2),
    "UpdateFeatures.validate_only": (1, 2),
    "UpdateFeaturesResponse.results": (0, 1),
    "DescribeCluster.endpoint_type": (1, 2),
    "DescribeCluster.include_fenced_brokers": (2, 2),
    "DescribeClusterResponse.endpoint_type": (1, 2),
    "DescribeClusterBroker.is_fenced": (2, 2),
    "CreatableTopicResult.topic_id": (7, 7),
    "CreatableTopicResult.num_partitions": (5, 7),
    "CreatableTopicResult.replication_factor": (5, 7),
    "CreatableTopicResult.configs": (5, 7),
    "DeleteTopicState.topic_id": (6, 6),
    "DeletableTopicResult.topic_id": (6, 6),
    "DeletableTopicResult.error_message": (5, 6),
    "BrokerState.broker_epoch": (3, 3),
    "AlterPartitionReassignments.allow_replication_factor_change": (1, 1),
    "AlterPartitionReassignmentsResponse.allow_replication_factor_change": (1, 1),
    "ElectLeaders.election_type": (1, 2),
    "ElectLeadersResponse.error_code": (1, 2),
}
"""The first and last version of the fields that only some versions have."""


def as_read(value: Any, version: int) -> Any:
    """A value with the defaults of the fields that a version lacks."""
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(as_read(item, version) for item in value)
    if is_dataclass(value):
        names = [field.name for field in fields(value)]
    elif hasattr(value, "_fields"):
        names = list(value._fields)
    else:
        return value
    kept = {}
    for name in names:
        first, last = FIELDS.get(f"{type(value).__name__}.{name}", (0, 99))
        if first <= version <= last:
            kept[name] = as_read(getattr(value, name), version)
    if isinstance(value, ElectLeadersResponse):
        kept.setdefault("error_code", 0)
    if isinstance(value, CreatableTopicResult) and "configs" in kept:
        kept["configs"] = ()  # a client reads no settings
    return type(value)(**kept)


def of_kio(message: Any, data: bytes) -> bytes:
    """The bytes as kio reads and writes them, where it has the version."""
    name, version = type(message).__name__, message.__version__
    if not is_in_kio(name, version):
        return data
    kind = kio_class(name, version)
    read, _ = entity_reader(kind)(data, 0)
    buffer = io.BytesIO()
    entity_writer(kind)(buffer, read)
    return buffer.getvalue()


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: type(one).__name__)
def test_requests(request_: ControllerRequest) -> None:
    """A broker's request is what the controller reads, as far as the version has its fields."""
    api = APIS[type(request_)]
    for version in range(api.versions[0], api.versions[1] + 1):
        wanted = as_read(request_, version)
        if isinstance(request_, DeleteTopics) and version < 6:
            wanted = DeleteTopics((DeleteTopicState("a"),), request_.timeout_ms)
        message = controller_request_message(wanted, version)
        data = write_entity(message)
        assert of_kio(message, data) == data
        body, end = read_entity(request_class(api.key, version), data)
        assert end == len(data)
        assert controller_request_of(api.key, body) == wanted


@pytest.mark.parametrize(("key", "response"), RESPONSES)
def test_responses(key: int, response: ControllerResponse) -> None:
    """A response is what the broker reads, as far as the version has its fields."""
    api = next(api for api in APIS.values() if api.key == key)
    for version in range(api.versions[0], api.versions[1] + 1):
        message = controller_response_message(key, version, response)
        data = write_entity(message)
        assert of_kio(message, data) == data
        body, end = read_entity(message_class(f"{api.name}Response", version), data)
        assert end == len(data)
        assert controller_response_of(key, body) == as_read(response, version)


# -- envelopes -------------------------------------------------------------------------------------

OFFERED = {19: (2, 7), 58: (0, 0), 62: (0, 4)}


CREATE = controller_request_message(CreateTopics((CreatableTopic("a", 3, 2),)), 7)
REGISTER = controller_request_message(REQUESTS[0], 4)


def test_a_request_is_forwarded() -> None:
    """The client's request is read, and its response is written with its correlation id."""
    found = forwarded_request(envelope(frame(CREATE)), OFFERED, request_class)
    assert (found.key, found.version, found.correlation_id) == (19, 7, 8)
    assert controller_request_of(19, found.body) == CreateTopics((CreatableTopic("a", 3, 2),))
    response = controller_response_message(19, 7, CreateTopicsResponse(()))
    wrapped = envelope_response(8, response)
    assert wrapped.error_code == 0
    assert wrapped.response_data == struct.pack(">ib", 8, 0) + write_entity(response)


def test_the_envelope_says_that_another_node_is_the_controller() -> None:
    """The code may be anywhere in the response."""
    topic = CreatableTopicResult("a", error_code=41)
    response = controller_response_message(19, 7, CreateTopicsResponse((topic,)))
    assert envelope_response(8, response) == envelope_error(41)


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (envelope(frame(REGISTER)), 42),
        (envelope(frame(envelope(frame(CREATE)))), 42),
        (envelope(frame(CREATE)[:-4]), 42),
        (envelope(b""), 42),
        (envelope(frame(CREATE), host=b"\x7f\0"), 42),
        (envelope(frame(CREATE), principal=None), 97),
        (envelope(frame(CREATE), principal=b""), 97),
        (envelope(frame(CREATE), principal=b"\0\1" + PRINCIPAL[2:]), 97),
        (envelope(frame(CREATE), principal=PRINCIPAL[:6]), 97),
    ],
    ids=[
        *("not forwardable", "nested", "cut off", "empty", "address", "no principal"),
        *("empty principal", "version of principal", "cut off principal"),
    ],
)
def test_refused_envelopes(found: Any, code: int) -> None:
    """Each with Kafka's error."""
    with pytest.raises(EnvelopeError) as refused:
        forwarded_request(found, OFFERED, request_class)
    assert refused.value.code == code
