"""What ``topics`` prints and reads where no real cluster shows it in a moment."""

import pytest

from featurewatch.admin.cluster.configs import TopicConfig
from featurewatch.admin.cluster.values import PartitionDetails, TopicDetails
from featurewatch.cli.kafka_tools.errors import KafkaToolError
from featurewatch.cli.kafka_tools.topics import (
    matching,
    missing_topic,
    parse_setting_changes,
)
from featurewatch.cli.kafka_tools.topics_describe import PartitionFilter, topic_lines
from featurewatch.controller.kraft.map_order import sized_hash_map_order
from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.kafka.messages.config_entries import ConfigValue
from featurewatch.streams.types import NodeId

pytestmark = pytest.mark.form("released")


def nodes(*ids: int) -> tuple[NodeId, ...]:
    """Node ids."""
    return tuple(map(NodeId, ids))


def details(*partitions: PartitionDetails) -> TopicDetails:
    """A topic without an id."""
    return TopicDetails("t", None, False, partitions)


def lines(topic: TopicDetails, condition: PartitionFilter, live: tuple[int, ...]) -> list[str]:
    """What is printed of a topic with min.insync.replicas=2, of which partition 0 moves."""
    config = TopicConfig("t", (ConfigValue("min.insync.replicas", "2", 5),))
    moved = {TopicPartition("t", 0): ReplicaAssignment((1, 2, 3), (3,), (1,))}
    return list(topic_lines(topic, config, moved, condition=condition, live=frozenset(live)))


MOVING = PartitionDetails(0, NodeId(1), nodes(1, 2, 3), nodes(1, 2))
LEADERLESS = PartitionDetails(1, None, nodes(2), nodes(2), nodes(), nodes(2))


def test_a_reassignment_and_a_missing_leader_are_shown() -> None:
    """Replicas that are being added do not count as replicas; no leader is shown as none (A-19 as
    released).

    A setting that is not the topic's own is read and not listed (A-18 as released).
    """
    assert lines(details(MOVING, LEADERLESS), PartitionFilter(), (1, 2, 3)) == [
        "Topic: t\tPartitionCount: 2\tReplicationFactor: 2\tConfigs: ",
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2\tAdding Replicas: 3\t"
        "Removing Replicas: 1\tElr: N/A\tLastKnownElr: N/A",
        "\tTopic: t\tPartition: 1\tLeader: none\tReplicas: 2\tIsr: 2\tElr: \tLastKnownElr: 2",
    ]


@pytest.mark.parametrize(
    ("condition", "live", "expected"),
    [
        (PartitionFilter(under_replicated=True), (1, 2, 3), []),
        (PartitionFilter(unavailable=True), (1, 2, 3), [1]),
        (PartitionFilter(unavailable=True), (2, 3), [0, 1]),
        (PartitionFilter(under_min_isr=True), (1, 2, 3), [1]),
        (PartitionFilter(at_min_isr=True), (1, 2, 3), [0]),
    ],
)
def test_a_condition_selects_partitions(
    condition: PartitionFilter, live: tuple[int, ...], expected: list[int]
) -> None:
    """Only partitions that it holds for, and no line of the topic."""
    printed = lines(details(MOVING, LEADERLESS), condition, live)
    assert [int(line.split("\t")[2].removeprefix("Partition: ")) for line in printed] == expected


def test_settings_that_cannot_be_read_are_an_error() -> None:
    """As the tool, which ends where it comes to such a topic."""
    config = TopicConfig("t", (), 29, "Topic authorization failed.")
    with pytest.raises(KafkaToolError, match="Topic authorization failed"):
        list(
            topic_lines(details(MOVING), config, {}, condition=PartitionFilter(), live=frozenset())
        )


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (None, ["a", "a.b", "ab", "b"]),
        ("a.b,b", ["a.b", "b"]),
        ("a\\.b", ["a.b"]),
        (" 'a' , \"b\" ", []),
        ("\"a|b'", ["a", "b"]),
        ("a.*", ["a", "a.b", "ab"]),
        ("", []),
    ],
)
def test_expressions_match_whole_names(expression: str | None, expected: list[str]) -> None:
    """A comma is an alternative; blanks and quotes around all do not count."""
    assert matching(["b", "ab", "a.b", "a"], expression) == expected


@pytest.mark.parametrize("expression", ["(", "[", "[a-z&&[^b]]", "*", "\\Qa\\E", "\\p{Alpha}"])
def test_an_expression_that_is_another_one_in_java_is_refused(expression: str) -> None:
    """It would select other topics than Kafka's tool does, or it is invalid."""
    if expression == "a{2":
        assert matching(["aa"], expression) == ["a{2"]
        return
    with pytest.raises(KafkaToolError, match="is an invalid regex"):
        matching(["a"], expression)


def test_the_name_of_a_missing_topic_depends_on_the_release() -> None:
    """3.9 prints Java's wrapper."""
    assert str(missing_topic("t", "3.9")).endswith("Topic 'Optional[t]' does not exist as expected")
    assert str(missing_topic("t", "4.3")).endswith("Topic 't' does not exist as expected")


def test_settings_are_read_as_by_kafka_configs() -> None:
    """Commas in square brackets are of the value; names to delete are a list (A-14 as released)."""
    assert parse_setting_changes(["a=1,b=[x,y],c="], ["d,e", "f"]) == (
        {"a": "1", "b": "x,y", "c": ""},
        ["d", "e", "f"],
    )
    assert parse_setting_changes(None, None) == ({}, [])
    for wrong in ("a", "a=1=2", "a=1,,b=2"):
        with pytest.raises(KafkaToolError, match="Invalid entity config"):
            parse_setting_changes([wrong], None)


def test_maps_that_are_made_for_their_keys() -> None:
    """The order of ``new HashMap<>(n)``, seen with Java 17."""
    assert sized_hash_map_order(["a", "b", "q"]) == ["a", "q", "b"]
    assert sized_hash_map_order(["b"]) == ["b"]
    assert sized_hash_map_order([]) == []
