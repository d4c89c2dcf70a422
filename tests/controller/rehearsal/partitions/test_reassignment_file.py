"""The file of kafka-reassign-partitions: every fault is one line, in Kafka's words."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.controller.partitions.kraft_election import KraftElectionRules
from featurewatch.controller.rehearsal.partitions import kraft
from featurewatch.controller.rehearsal.partitions.reassignment_file import (
    MAX_FILE_BYTES,
    ReassignmentFileError,
    parse_reassignment,
    target_error,
)
from tests.controller.rehearsal.partitions.cluster_states import P0, cluster


def entry(topic: object = "t", partition: object = 0, replicas: object = (1, 2)) -> dict[str, Any]:
    """One entry of a file."""
    return {"topic": topic, "partition": partition, "replicas": replicas}


def file(*entries: object, **more: object) -> bytes:
    """A file."""
    return json.dumps({"version": 1, "partitions": entries, **more}).encode()


def test_what_the_tool_writes_is_read() -> None:
    """With log_dirs or without; the version may be left out."""
    written = {**entry(replicas=[3, 1]), "log_dirs": ["any", "any"]}
    for content in (file(written), json.dumps({"partitions": [entry(replicas=[3, 1])]}).encode()):
        assert parse_reassignment(content).targets == {P0: (3, 1)}


FAULTS = (
    (b"", "The input string is not a valid JSON (Input is a zero-length"),
    (b"not json", "The input string is not a valid JSON ("),
    (b"\xff\xfe", "The input string is not a valid JSON ("),
    (b"[" * 100_000, "The input string is not a valid JSON ("),
    (b"[]", "the file is not an object: []"),
    (b'{"version": 2, "partitions": []}', "Not supported version field value 2"),
    (b'{"version": true, "partitions": []}', "Not supported version field value True"),
    (b"{}", "Partition reassignment list cannot be empty"),
    (file(), "Partition reassignment list cannot be empty"),
    (b'{"partitions": {}}', "partitions is not a list: {}"),
    (file(7), "an entry of partitions is not an object: 7"),
    (file({"topic": "t"}), "an entry of partitions has no partition"),
    (file(entry(topic=7)), "topic is not a string: 7"),
    (file(entry(partition="0")), "partition is not a number: 0"),
    (file(entry(partition=True)), "partition is not a number: True"),
    (file(entry(partition=1 << 40)), "partition is not a 32-bit number: 1099511627776"),
    (file(entry(replicas="12")), "replicas is not a list: 12"),
    (file(entry(replicas=[1.5])), "replicas is not a number: 1.5"),
    (file(entry(replicas=[])), "Partition replica list cannot be empty"),
    (
        file(entry(), entry(replicas=[3])),
        "Partition reassignment contains duplicate topic partitions: t-0",
    ),
    (
        file(entry(replicas=[1, 2, 1])),
        "Partition replica lists may not contain duplicate entries: t-0 contains multiple entries "
        "for 1",
    ),
    (
        file({**entry(), "log_dirs": ["any"]}),
        "Size of replicas list [1, 2] is different from size of log dirs list [any] for partition "
        "t-0",
    ),
    (b" " * (MAX_FILE_BYTES + 1), "it is larger than 64 MiB: split the reassignment"),
)


@pytest.mark.parametrize(("content", "text"), FAULTS, ids=[text[:40] for _, text in FAULTS])
def test_a_fault_is_one_line(content: bytes, text: str) -> None:
    """Kafka's text where it has one."""
    with pytest.raises(ReassignmentFileError) as error:
        parse_reassignment(content)
    assert str(error.value).startswith(text)
    assert str(error.value).isprintable()


def test_a_fault_in_many_entries_is_a_short_line() -> None:
    """The first ones are named, the others counted; a topic's name is quoted."""
    twice = [entry(partition=number) for number in range(1000)] * 2
    with pytest.raises(ReassignmentFileError, match=r"t-4 and 995 more$"):
        parse_reassignment(file(*twice))
    with pytest.raises(ReassignmentFileError) as error:
        parse_reassignment(file(*[entry(topic="\x1b[31m" + "x" * 5000)] * 2))
    assert len(str(error.value)) < 1000
    assert str(error.value).isprintable()


@pytest.mark.fuzz
@given(
    st.one_of(
        st.binary(),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
            lambda values: (
                st.lists(values)
                | st.dictionaries(
                    st.sampled_from(
                        ["version", "partitions", "topic", "partition", "replicas", "log_dirs"]
                    ),
                    values,
                )
            ),
        ).map(lambda value: json.dumps(value).encode()),
    )
)
def test_any_content_is_read_or_refused(content: bytes) -> None:
    """Nothing else is raised."""
    try:
        assert parse_reassignment(content).targets
    except ReassignmentFileError as error:
        assert str(error).isprintable()


@pytest.mark.parametrize("rules", [KraftElectionRules((4, 3)), None])
def test_the_tool_checks_the_cluster_before_it_sends(rules: KraftElectionRules | None) -> None:
    """Brokers first, then topics, then partitions; a fenced broker is unknown to it."""
    state = cluster(rules, (1, 2))
    assert target_error(state, {P0: (3, 4)}) is None
    assert target_error(state, {P0: (3, 9)}) == "Unknown broker id 9"
    assert target_error(state, {TopicPartition("x", 0): (-1,)}) == "Unknown broker id -1"
    assert target_error(state, {TopicPartition("x", 0): (1,)}) == "Topic x not found."
    assert target_error(state, {TopicPartition("t", 9): (1,)}) == "Unable to find partition: t-9"
    fenced = kraft.stop_broker(state, 4, in_order=True).after
    assert target_error(fenced, {P0: (1, 4)}) == "Unknown broker id 4"
