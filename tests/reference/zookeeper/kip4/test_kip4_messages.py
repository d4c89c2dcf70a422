"""The bytes of KIP-4's draft: by hand from its schemas, by any values, and broken."""

import struct
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from featurewatch.admin.kip4 import messages
from featurewatch.admin.kip4.messages import DraftConfig, DraftRequest
from featurewatch.kafka.decode import DecodeError, read_entity
from featurewatch.kafka.encode import write_entity
from featurewatch.reference.zookeeper.wire.api_keys import KIP4_KEYS, ApiDialect
from featurewatch.reference.zookeeper.wire.frames import MalformedRequestError, read_request
from featurewatch.reference.zookeeper.wire.kip4_messages import message_classes
from tests.reference.zookeeper.kip4.kip4_rig import request_frame

REQUESTS: list[type[DraftRequest[Any]]] = [
    messages.ClusterMetadataRequest,
    messages.CreateTopicRequest,
    messages.AlterTopicRequest,
    messages.DeleteTopicRequest,
    messages.DescribeTopicRequest,
    messages.ListTopicsRequest,
    messages.ReassignPartitionRequest,
    messages.VerifyReassignPartitionRequest,
    messages.PreferredReplicaLeaderElectionRequest,
]
CONFIGS = (DraftConfig("k", "v"),)


def text(value: str) -> bytes:
    """``string``: its length in two bytes, then UTF-8."""
    return struct.pack(">h", len(value)) + value.encode()


def number(value: int) -> bytes:
    """``int32``, also the length of an array."""
    return struct.pack(">i", value)


def code(value: int) -> bytes:
    """``int16``."""
    return struct.pack(">h", value)


ABSENT, PRESENT = b"\0", b"\1"
WRITTEN: list[tuple[Any, bytes]] = [
    (messages.ClusterMetadataRequest(), b""),
    (
        messages.CreateTopicRequest("t", 3, 2, None, CONFIGS),
        text("t")
        + (PRESENT + number(3) + PRESENT + number(2) + ABSENT)
        + (number(1) + text("k") + text("v")),
    ),
    (
        messages.CreateTopicRequest("t", None, None, "1:2", ()),
        text("t") + ABSENT + ABSENT + PRESENT + text("1:2") + number(0),
    ),
    (
        messages.AlterTopicRequest("t", 4, None, CONFIGS, ("d",)),
        text("t")
        + (PRESENT + number(4) + ABSENT)
        + (number(1) + text("k") + text("v"))
        + (number(1) + text("d")),
    ),
    (messages.DeleteTopicRequest("t"), text("t")),
    (messages.DescribeTopicRequest("t"), text("t")),
    (messages.ListTopicsRequest(), b""),
    (messages.ReassignPartitionRequest("{}"), text("{}")),
    (messages.VerifyReassignPartitionRequest("{}"), text("{}")),
    (messages.PreferredReplicaLeaderElectionRequest("{}"), PRESENT + text("{}")),
    (messages.PreferredReplicaLeaderElectionRequest(None), ABSENT),
]
RESULT = code(21) + PRESENT + text("why")
READ: list[tuple[bytes, Any]] = [
    (
        code(0)
        + (number(1) + number(1) + text("h") + number(9))
        + (PRESENT + number(1) + text("h") + number(9)),
        messages.ClusterMetadataResponse(
            0, (messages.DraftBroker(1, "h", 9),), messages.DraftBroker(1, "h", 9)
        ),
    ),
    (code(0) + number(0) + ABSENT, messages.ClusterMetadataResponse(0, (), None)),
    (RESULT, messages.CreateTopicResponse(21, "why")),
    (code(0) + ABSENT, messages.AlterTopicResponse(0, None)),
    (RESULT, messages.DeleteTopicResponse(21, "why")),
    (RESULT + ABSENT, messages.DescribeTopicResponse(21, "why", None)),
    (
        (code(0) + ABSENT + PRESENT)
        + (text("t") + number(2) + number(3) + number(1) + text("k") + text("v"))
        + number(2)
        + (number(0) + PRESENT + number(1) + number(2) + number(1) + number(2))
        + (number(1) + number(1))
        + (number(1) + ABSENT + number(1) + number(2) + number(0)),
        messages.DescribeTopicResponse(
            0,
            None,
            messages.DraftTopic(
                "t",
                messages.DraftTopicConfig(2, 3, CONFIGS),
                (
                    messages.DraftPartition(0, 1, (1, 2), (1,)),
                    messages.DraftPartition(1, None, (2,), ()),
                ),
            ),
        ),
    ),
    (
        code(0) + ABSENT + PRESENT + number(1) + text("a") + PRESENT + number(1) + text("gone"),
        messages.ListTopicsResponse(0, None, ("a",), ("gone",)),
    ),
    (RESULT + ABSENT + ABSENT, messages.ListTopicsResponse(21, "why", None, None)),
    (RESULT, messages.ReassignPartitionResponse(21, "why")),
    (
        (number(1) + text("t") + number(5) + code(-1)) + code(0) + ABSENT,
        messages.VerifyReassignPartitionResponse(
            (messages.DraftReassignmentResult(messages.DraftTopicAndPartition("t", 5), -1),),
            0,
            None,
        ),
    ),
    (RESULT, messages.PreferredReplicaLeaderElectionResponse(21, "why")),
]


@pytest.mark.parametrize(("request_", "expected"), WRITTEN)
def test_requests_have_the_bytes_of_the_documents_schemas(request_: Any, expected: bytes) -> None:
    """ClusterMetadata and ListTopics have no fields, the others theirs and nothing else
    (A-04, A-12, A-15, A-16, A-20, A-22, A-26, A-29)."""
    assert write_entity(request_) == expected
    received = read_request(request_frame(request_), ApiDialect.CONTROLLER)
    assert values_of(received.body) == values_of(request_)


@pytest.mark.parametrize(("written", "expected"), READ)
def test_responses_have_the_bytes_of_the_documents_schemas(written: bytes, expected: Any) -> None:
    """Field for field, in both readings of the document (A-05, A-11, A-16, A-17, A-19, A-20, A-24,
    A-27, A-30)."""
    assert read_entity(type(expected), written) == (expected, len(written))
    server = message_classes(expected.__api_key__).response
    message, end = read_entity(server, written)
    assert (values_of(message), end) == (values_of(expected), len(written))
    assert write_entity(message) == written


def test_a_reader_of_the_schema_alone_reads_its_list_of_topics() -> None:
    """The list of marked topics, which the text has and the schema has not, follows it (A-21)."""
    response = message_classes(30_405).response
    values = {"error_code": 0, "error_description": None}
    written = write_entity(response(**values, topics_list=("a",), marked_for_deletion=("b",)))
    by_the_schema = code(0) + ABSENT + PRESENT + number(1) + text("a")
    assert written == by_the_schema + PRESENT + number(1) + text("b")


def test_each_key_has_a_client_class() -> None:
    """The two readings have the same keys, and every request names its response's (A-41)."""
    assert [kind.__api_key__ for kind in REQUESTS] == [*KIP4_KEYS]
    assert [kind.response_class.__api_key__ for kind in REQUESTS] == [*KIP4_KEYS]


def values_of(value: Any) -> Any:
    """A message as nested tuples, whatever its classes and fields are called."""
    if is_dataclass(value):
        return tuple(values_of(getattr(value, item.name)) for item in fields(value))
    return tuple(map(values_of, value)) if isinstance(value, tuple) else value


def values_for(hint: Any, kafka_type: str | None) -> st.SearchStrategy[Any]:
    """Any value of a field."""
    parts = [part for part in get_args(hint) if part is not Ellipsis]
    if type(None) in parts:
        (inner,) = [part for part in parts if part is not type(None)]
        return st.none() | values_for(inner, kafka_type)
    if parts:
        return st.lists(values_for(parts[0], kafka_type), max_size=4).map(tuple)
    if is_dataclass(hint):
        return messages_of(hint)
    bits = {"int16": 15, "int32": 31}.get(str(kafka_type), 0)
    return st.text(max_size=20) if bits == 0 else st.integers(-(1 << bits), (1 << bits) - 1)


def messages_of(kind: Any) -> st.SearchStrategy[Any]:
    """Any message of a class."""
    hints = get_type_hints(kind)
    return st.builds(
        kind,
        **{
            item.name: values_for(hints[item.name], item.metadata.get("kafka_type"))
            for item in fields(kind)
        },
    )


@settings(max_examples=300)
@given(st.sampled_from(REQUESTS).flatmap(lambda k: messages_of(k) | messages_of(k.response_class)))
def test_both_readings_have_the_same_bytes(message: Any) -> None:
    """Any request and response, written by the client and read by the server, and back."""
    written = write_entity(message)
    classes = message_classes(message.__api_key__)
    server = classes.request if isinstance(message, DraftRequest) else classes.response
    received, end = read_entity(server, written)
    assert (values_of(received), end) == (values_of(message), len(written))
    assert write_entity(received) == written
    assert read_entity(type(message), written) == (message, len(written))


@settings(max_examples=300)
@given(st.sampled_from(REQUESTS), st.binary(max_size=60), st.integers(0, 60))
def test_any_bytes_give_a_request_or_one_error(
    kind: type[DraftRequest[Any]], body: bytes, cut: int
) -> None:
    """No length is trusted, and every optional field is absent or read whole."""
    head = struct.pack(">hhih", kind.__api_key__, 0, 7, -1)
    try:
        read_request((head + body)[: len(head) + cut], ApiDialect.CONTROLLER)
    except MalformedRequestError as error:
        assert "\n" not in str(error)
    try:
        read_entity(kind.response_class, body, max_items=100)
    except DecodeError as error:
        assert "\n" not in str(error)


def test_a_request_of_a_version_that_the_draft_has_not_is_refused() -> None:
    """There is version 0."""
    with pytest.raises(MalformedRequestError, match="version 1 of API key 30405 is not served"):
        read_request(struct.pack(">hhih", 30_405, 1, 7, -1), ApiDialect.CONTROLLER)
