"""The strings in KIP-4's requests, which the server parses as a whole or not at all."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.reference.zookeeper.kip4.codes import AdminRequestFailedError
from featurewatch.reference.zookeeper.kip4.strings import (
    parse_manual_assignment,
    parse_partitions,
    parse_replica_assignment,
)

pytestmark = pytest.mark.form("document")

DOCUMENTS_REASSIGNMENT = """
{
"partitions": [
{"topic": "foo",
 "partition": 1,
 "replicas": [1,2,3] }
],
 "version":1
}
"""
DOCUMENTS_ELECTION = """
{"partitions":[
{"topic": "foo", "partition": 1},
{"topic": "foobar", "partition": 2}
]
}
"""


def test_the_documents_own_examples() -> None:
    """Both formats as the document prints them (A-22, A-29)."""
    assert parse_manual_assignment(DOCUMENTS_REASSIGNMENT) == {TopicPartition("foo", 1): (1, 2, 3)}
    assert parse_partitions(DOCUMENTS_ELECTION) == [
        TopicPartition("foo", 1),
        TopicPartition("foobar", 2),
    ]


def test_what_kafkas_own_tools_write_is_accepted() -> None:
    """``log_dirs`` with any directory, and no version."""
    entry = {"topic": "t", "partition": 0, "replicas": [1], "log_dirs": ["any"]}
    text = json.dumps({"partitions": [entry]})
    assert parse_manual_assignment(text) == {TopicPartition("t", 0): (1,)}


def entry(**changes: Any) -> dict[str, Any]:
    """An entry of a reassignment, with something wrong."""
    values: dict[str, Any] = {"topic": "t", "partition": 0, "replicas": [1, 2]}
    return {name: value for name, value in (values | changes).items() if value is not None}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "it is empty"),
        ("{", "it is not JSON"),
        ("[]", "it is not an object: []"),
        ({}, "partitions is missing"),
        ({"partitions": []}, "it names no partition"),
        ({"partitions": {}}, "partitions is not a list: {}"),
        ({"partitions": [entry()], "version": 2}, "its version is 2; known is 1"),
        ({"partitions": [1]}, "an entry of partitions is not an object: 1"),
        ({"partitions": [entry(topic="")]}, "topic is not a string with at least one character"),
        ({"partitions": [entry(partition=None)]}, "partition is missing"),
        ({"partitions": [entry(partition=-1)]}, "partition is not an integer from 0"),
        ({"partitions": [entry(partition=True)]}, "partition is not an integer from 0"),
        ({"partitions": [entry(replicas="1")]}, "replicas is not a list"),
        ({"partitions": [entry(replicas=[1, -2])]}, "replicas is not an integer from 0"),
        ({"partitions": [entry(), entry()]}, "it names 't'-0 twice"),
        ({"partitions": [entry(log_dirs=["/data"])]}, "log_dirs can only be any"),
        ("[" * 5_000, "it is not JSON"),
    ],
)
def test_a_bad_string_has_one_clear_reason(content: Any, reason: str) -> None:
    """Whatever is wrong in it, one line says what (A-23)."""
    text = content if isinstance(content, str) else json.dumps(content)
    with pytest.raises(AdminRequestFailedError) as raised:
        parse_manual_assignment(text)
    assert str(raised.value).startswith("The string cannot be read: ")
    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)


@given(
    st.text(max_size=200)
    | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps)
)
def test_any_string_is_parsed_or_refused(text: str) -> None:
    """No string ends the controller."""
    for parse in (parse_manual_assignment, parse_partitions, parse_replica_assignment):
        try:
            parse(text)
        except AdminRequestFailedError as error:
            assert len(str(error)) < 300


def test_replica_assignments_are_those_of_kafka_topics() -> None:
    """Partitions by commas, replicas by colons, blanks around numbers."""
    assert parse_replica_assignment("1:2,2:3") == ((1, 2), (2, 3))
    assert parse_replica_assignment(" 1 : 2 ") == ((1, 2),)
    for text in ("", "1,", "1:", "a", "-1", "1;2", "9999999999"):
        with pytest.raises(AdminRequestFailedError, match="is not a list of replicas"):
            parse_replica_assignment(text)
