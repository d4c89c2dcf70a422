"""The bytes of KIP-4's draft: by hand from its schemas, by any values, and broken."""

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from featurewatch.kafka.decode import DecodeError, read_entity
from featurewatch.kafka.encode import write_entity
from featurewatch.kafka.messages import Request, response_class
from featurewatch.reference.zookeeper.wire.api_keys import KIP4_KEYS, ApiDialect
from featurewatch.reference.zookeeper.wire.frames import MalformedRequestError, read_request
from tests.messages import by_order as messages
from tests.reference.zookeeper.kip4.kip4_rig import request_frame

pytestmark = pytest.mark.form("document")

REQUESTS: list[type[Request[Any]]] = [
    messages.ClusterMetadataRequestV0,
    messages.CreateTopicRequestV0,
    messages.AlterTopicRequestV0,
    messages.DeleteTopicRequestV0,
    messages.DescribeTopicRequestV0,
    messages.ListTopicsRequestV0,
    messages.ReassignPartitionRequestV0,
    messages.VerifyReassignPartitionRequestV0,
    messages.PreferredReplicaLeaderElectionRequestV0,
]
CONFIGS = (messages.CreateTopicRequestV0.ConfigEntry("k", "v"),)
ADDED = (messages.AlterTopicRequestV0.ConfigEntry("k", "v"),)
DESCRIBED = messages.DescribeTopicResponseV0
BROKER = messages.ClusterMetadataResponseV0.Broker
VERIFIED = messages.VerifyReassignPartitionResponseV0


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
    (messages.ClusterMetadataRequestV0(), b""),
    (
        messages.CreateTopicRequestV0("t", 3, 2, None, CONFIGS),
        text("t")
        + (PRESENT + number(3) + PRESENT + number(2) + ABSENT)
        + (number(1) + text("k") + text("v")),
    ),
    (
        messages.CreateTopicRequestV0("t", None, None, "1:2", ()),
        text("t") + ABSENT + ABSENT + PRESENT + text("1:2") + number(0),
    ),
    (
        messages.AlterTopicRequestV0("t", 4, None, ADDED, ("d",)),
        text("t")
        + (PRESENT + number(4) + ABSENT)
        + (number(1) + text("k") + text("v"))
        + (number(1) + text("d")),
    ),
    (messages.DeleteTopicRequestV0("t"), text("t")),
    (messages.DescribeTopicRequestV0("t"), text("t")),
    (messages.ListTopicsRequestV0(), b""),
    (messages.ReassignPartitionRequestV0("{}"), text("{}")),
    (messages.VerifyReassignPartitionRequestV0("{}"), text("{}")),
    (messages.PreferredReplicaLeaderElectionRequestV0("{}"), PRESENT + text("{}")),
    (messages.PreferredReplicaLeaderElectionRequestV0(None), ABSENT),
]
RESULT = code(21) + PRESENT + text("why")
READ: list[tuple[bytes, Any]] = [
    (
        code(0)
        + (number(1) + number(1) + text("h") + number(9))
        + (PRESENT + number(1) + text("h") + number(9)),
        messages.ClusterMetadataResponseV0(0, (BROKER(1, "h", 9),), BROKER(1, "h", 9)),
    ),
    (code(0) + number(0) + ABSENT, messages.ClusterMetadataResponseV0(0, (), None)),
    (RESULT, messages.CreateTopicResponseV0(21, "why")),
    (code(0) + ABSENT, messages.AlterTopicResponseV0(0, None)),
    (RESULT, messages.DeleteTopicResponseV0(21, "why")),
    (RESULT + ABSENT, messages.DescribeTopicResponseV0(21, "why", None)),
    (
        (code(0) + ABSENT + PRESENT)
        + (text("t") + number(2) + number(3) + number(1) + text("k") + text("v"))
        + number(2)
        + (number(0) + PRESENT + number(1) + number(2) + number(1) + number(2))
        + (number(1) + number(1))
        + (number(1) + ABSENT + number(1) + number(2) + number(0)),
        messages.DescribeTopicResponseV0(
            0,
            None,
            DESCRIBED.TopicDescription(
                "t",
                DESCRIBED.TopicConfigDetails(2, 3, (DESCRIBED.ConfigEntry("k", "v"),)),
                (
                    DESCRIBED.TopicPartitionDetails(0, 1, (1, 2), (1,)),
                    DESCRIBED.TopicPartitionDetails(1, None, (2,), ()),
                ),
            ),
        ),
    ),
    (
        code(0) + ABSENT + PRESENT + number(1) + text("a") + PRESENT + number(1) + text("gone"),
        messages.ListTopicsResponseV0(0, None, ("a",), ("gone",)),
    ),
    (RESULT + ABSENT + ABSENT, messages.ListTopicsResponseV0(21, "why", None, None)),
    (RESULT, messages.ReassignPartitionResponseV0(21, "why")),
    (
        (number(1) + text("t") + number(5) + code(-1)) + code(0) + ABSENT,
        messages.VerifyReassignPartitionResponseV0(
            (VERIFIED.ReassignmentResult(VERIFIED.TopicAndPartition("t", 5), -1),),
            0,
            None,
        ),
    ),
    (RESULT, messages.PreferredReplicaLeaderElectionResponseV0(21, "why")),
]


@pytest.mark.parametrize(("request_", "expected"), WRITTEN)
def test_requests_have_the_bytes_of_the_documents_schemas(request_: Any, expected: bytes) -> None:
    """ClusterMetadata and ListTopics have no fields, the others theirs and nothing else
    (A-04, A-12, A-15, A-16, A-20, A-22, A-26, A-29)."""
    assert write_entity(request_) == expected
    received = read_request(request_frame(request_), ApiDialect.CONTROLLER)
    assert received.body == request_


@pytest.mark.parametrize(("written", "expected"), READ)
def test_responses_have_the_bytes_of_the_documents_schemas(written: bytes, expected: Any) -> None:
    """Field for field (A-05, A-11, A-16, A-17, A-19, A-20, A-24,
    A-27, A-30)."""
    message, end = read_entity(type(expected), written)
    assert (message, end) == (expected, len(written))
    assert write_entity(message) == written


def test_a_reader_of_the_schema_alone_reads_its_list_of_topics() -> None:
    """The list of marked topics, which the text has and the schema has not, follows it (A-21)."""
    written = write_entity(messages.ListTopicsResponseV0(0, None, ("a",), ("b",)))
    by_the_schema = code(0) + ABSENT + PRESENT + number(1) + text("a")
    assert written == by_the_schema + PRESENT + number(1) + text("b")


def response_of(kind: type[Request[Any]]) -> Any:
    """The class of the response to a request."""
    return response_class(kind.__new__(kind))


def test_each_key_has_a_request_and_a_response() -> None:
    """Every request names its response's (A-41)."""
    assert [kind.__api_key__ for kind in REQUESTS] == [*KIP4_KEYS]
    assert [response_of(kind).__api_key__ for kind in REQUESTS] == [*KIP4_KEYS]


def values_for(field: Any) -> st.SearchStrategy[Any]:
    """Any value of a field."""
    if field.struct is not None:
        one = messages_of(field.struct)
    elif field.kind == "string":
        one = st.text(max_size=20)
    else:
        bits = {"int16": 15, "int32": 31}[field.kind]
        one = st.integers(-(1 << bits), (1 << bits) - 1)
    if field.is_array:
        one = st.lists(one, max_size=4).map(tuple)
    return st.none() | one if field.is_optional else one


def messages_of(kind: Any) -> st.SearchStrategy[Any]:
    """Any message of a class."""
    return st.builds(kind, **{field.name: values_for(field) for field in kind.__fields__})


@settings(max_examples=300)
@given(st.sampled_from(REQUESTS).flatmap(lambda k: messages_of(k) | messages_of(response_of(k))))
def test_messages_are_read_as_they_were_written(message: Any) -> None:
    """Any request and response."""
    written = write_entity(message)
    assert read_entity(type(message), written) == (message, len(written))


@settings(max_examples=300)
@given(st.sampled_from(REQUESTS), st.binary(max_size=60), st.integers(0, 60))
def test_any_bytes_give_a_request_or_one_error(
    kind: type[Request[Any]], body: bytes, cut: int
) -> None:
    """No length is trusted, and every optional field is absent or read whole."""
    head = struct.pack(">hhih", kind.__api_key__, 0, 7, -1)
    try:
        read_request((head + body)[: len(head) + cut], ApiDialect.CONTROLLER)
    except MalformedRequestError as error:
        assert "\n" not in str(error)
    try:
        read_entity(response_of(kind), body, max_items=100)
    except DecodeError as error:
        assert "\n" not in str(error)


def test_a_request_of_a_version_that_the_draft_has_not_is_refused() -> None:
    """There is version 0."""
    with pytest.raises(MalformedRequestError, match="version 1 of API key 30405 is not served"):
        read_request(struct.pack(">hhih", 30_405, 1, 7, -1), ApiDialect.CONTROLLER)
