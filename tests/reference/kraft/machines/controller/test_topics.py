"""Topics are created, extended and deleted; settings and producer ids."""

import pytest

from featurewatch.reference.kraft.machines.controller.requests import (
    NO_UUID,
    AllocateProducerIds,
    AllocateProducerIdsResponse,
    AlterableConfig,
    AlterConfigsResource,
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreatePartitions,
    CreatePartitionsTopic,
    CreateTopics,
    DeleteTopics,
    DeleteTopicState,
    IncrementalAlterConfigs,
)
from featurewatch.streams.kraft.records.directory_ids import MIGRATING
from tests.reference.kraft.machines.controller.driven import Driven, led, uuid


def three(level: int = 30) -> Driven:
    """A cluster of three brokers."""
    driven = led(level=level)
    driven.start(1, 2, 3)
    return driven


def create(driven: Driven, topic: CreatableTopic) -> CreatableTopicResult:
    """Creates one topic."""
    (found,) = driven.ask(CreateTopics((topic,))).topics
    assert isinstance(found, CreatableTopicResult)
    return found


def given(*replicas: tuple[int, ...], name: str = "a") -> CreatableTopic:
    """A topic with given replicas."""
    assignments = tuple(CreatableReplicaAssignment(at, one) for at, one in enumerate(replicas))
    return CreatableTopic(name, assignments=assignments)


def test_creation() -> None:
    """Replicas are placed on all brokers, and the topic, its settings and partitions follow."""
    driven = three()
    config = CreatableTopicConfig("retention.ms", "1000")
    result = create(driven, CreatableTopic("a", 3, 2, configs=(config,)))
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 3, 2)
    assert result.configs is not None
    assert [(one.name, one.value) for one in result.configs] == [("retention.ms", "1000")]
    kinds = [one.type for one in driven.records[-5:]]
    assert kinds == ["TOPIC_RECORD", "CONFIG_RECORD", *["PARTITION_RECORD"] * 3]
    leaders = {driven.partition(result.topic_id, at).leader for at in range(3)}
    assert leaders == {1, 2, 3}
    partition = driven.partition(result.topic_id)
    assert partition.isr == partition.replicas
    assert partition.directories == tuple(uuid(500 + one) for one in partition.replicas)
    assert create(driven, CreatableTopic("b")).num_partitions == 1


@pytest.mark.parametrize(
    ("topic", "error", "text"),
    [
        (CreatableTopic("a/b"), 17, "Topic name is invalid"),
        (CreatableTopic("__cluster_metadata"), 42, "internal topic"),
        (CreatableTopic("known"), 36, "Topic 'known' already exists."),
        (CreatableTopic("x_y"), 17, "collides with existing topic: x.y"),
        (CreatableTopic("a", 1, 4), 38, "only 3 broker(s) are registered"),
        (CreatableTopic("a", 0, 1), 37, "invalid non-positive value"),
        (CreatableTopic("a", -2, 1), 37, "invalid non-positive value"),
        (CreatableTopic("a", 1, 0), 38, "must be larger than 0"),
        (CreatableTopic("a", 20_000, 1), 44, "excessively large batch"),
        (CreatableTopic("a", configs=(CreatableTopicConfig("b", None),)), 40, "Null value"),
        (given((1, 1)), 39, "includes the broker 1 more than once"),
        (given((1, 9)), 39, "no such broker is registered"),
        (given(()), 39, "empty replica list"),
        (given((1, 2), (1,)), 39, "not consistent with previous partitions"),
        (CreatableTopic("a", 2, -1, given((1,)).assignments), 42, "numPartitions"),
        (CreatableTopic("a", -1, 2, given((1,)).assignments), 42, "replication factor"),
        (
            CreatableTopic("a", assignments=(CreatableReplicaAssignment(1, (1,)),)),
            39,
            "consecutive 0-based",
        ),
        (
            CreatableTopic("a", assignments=(CreatableReplicaAssignment(0, (1,)),) * 2),
            39,
            "Found multiple manual partition assignments for partition 0",
        ),
    ],
)
def test_a_refused_creation(topic: CreatableTopic, error: int, text: str) -> None:
    """The reason is Kafka's, nothing is written, and others of the request are created."""
    driven = three()
    for name in ("known", "x.y"):
        create(driven, CreatableTopic(name))
    refused, other = driven.ask(CreateTopics((topic, CreatableTopic("other")))).topics
    assert (refused.error_code, refused.topic_id) == (error, NO_UUID)
    assert text in (refused.error_message or "")
    assert other.error_code == 0
    assert sorted(driven.controller.committed.ids) == ["known", "other", "x.y"]


def test_the_size_of_a_request() -> None:
    """All topics of a request together lead to ten thousand records at most."""
    driven = three()
    topics = tuple(CreatableTopic(name, 6_000, 1) for name in ("a", "b"))
    results = driven.ask(CreateTopics(topics)).topics
    assert [one.error_code for one in results] == [0, 44]


def test_duplicates() -> None:
    """A topic that is named twice is not created."""
    driven = three()
    results = driven.ask(CreateTopics((CreatableTopic("a"), CreatableTopic("a")))).topics
    assert [one.error_code for one in results] == [42, 42]
    assert not driven.controller.committed.topics


def test_validation_only() -> None:
    """It has the results of the real request, and writes nothing."""
    driven = three()
    before = driven.controller.committed
    (result,) = driven.ask(CreateTopics((CreatableTopic("a", 3, 3),), validate_only=True)).topics
    assert (result.error_code, result.num_partitions) == (0, 3)
    assert driven.controller.committed == before


def test_fenced_brokers() -> None:
    """They come last, are not in sync, and cannot have a partition alone."""
    driven = three()
    driven.heartbeat(3, fence=True)
    result = create(driven, CreatableTopic("a", 4, 3))
    partitions = [driven.partition(result.topic_id, at) for at in range(4)]
    assert all(one.replicas[-1] == 3 and 3 not in one.isr for one in partitions)
    assert create(driven, given((3,), name="b")).error_code == 39
    assert create(driven, given((3, 1), name="c")).error_code == 0
    driven.heartbeat(1, fence=True)
    driven.heartbeat(2, fence=True)
    refused = create(driven, CreatableTopic("d"))
    assert refused.error_code == 38
    assert "All brokers are currently fenced" in (refused.error_message or "")


@pytest.mark.parametrize(("level", "version"), [(7, 0), (16, 0), (17, 1), (22, 1), (23, 2)])
def test_versions_of_partitions(level: int, version: int) -> None:
    """The version of a PartitionRecord, and whether it names directories, follow from the level."""
    driven = three(level)
    topic = driven.create("a", (1, 2))
    assert driven.records[-1].version == version
    assert (driven.partition(topic).directories[0] == MIGRATING) is (version == 0)


# -- more partitions -------------------------------------------------------------------------------


def test_more_partitions() -> None:
    """New partitions follow the old ones, placed or given."""
    driven = three()
    topic = driven.create("a", (1, 2))
    placed = CreatePartitionsTopic("a", 3)
    assert driven.ask(CreatePartitions((placed,), validate_only=True)).results[0].error_code == 0
    assert driven.controller.committed.topics[topic].partitions == 1
    assert driven.ask(CreatePartitions((placed,))).results[0].error_code == 0
    assert [len(driven.partition(topic, at).replicas) for at in range(3)] == [2, 2, 2]
    more = CreatePartitionsTopic("a", 4, ((3, 1),))
    assert driven.ask(CreatePartitions((more,))).results[0].error_code == 0
    assert driven.partition(topic, 3).replicas == (3, 1)


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (CreatePartitionsTopic("b", 2), 3),
        (CreatePartitionsTopic("a", 1), 37),
        (CreatePartitionsTopic("a", 0), 37),
        (CreatePartitionsTopic("a", 1 << 31), 44),
        (CreatePartitionsTopic("a", 3, ((1, 2),)), 39),
        (CreatePartitionsTopic("a", 2, ((1,),)), 39),
        (CreatePartitionsTopic("a", 2, ((8, 9),)), 39),
    ],
)
def test_refused_partitions(topic: CreatePartitionsTopic, error: int) -> None:
    """Nothing is written."""
    driven = three()
    driven.create("a", (1, 2))
    before = driven.controller.committed
    assert driven.ask(CreatePartitions((topic,))).results[0].error_code == error
    assert driven.controller.committed == before


# -- deletion --------------------------------------------------------------------------------------


def test_deletion() -> None:
    """A topic is deleted by name or id, with its partitions and settings."""
    driven = three()
    empty = driven.controller.committed
    first, second = driven.create("a", (1, 2), (2, 1)), driven.create("b", (1,))
    alter(driven, 2, "a", AlterableConfig("x", 0, "1"))
    result = driven.ask(DeleteTopics((DeleteTopicState("a"), DeleteTopicState(None, second))))
    assert [(one.name, one.topic_id, one.error_code) for one in result.responses] == [
        ("a", first, 0),
        ("b", second, 0),
    ]
    assert driven.controller.committed._replace(offset=0) == empty._replace(offset=0)


@pytest.mark.parametrize(
    ("states", "errors"),
    [
        ([DeleteTopicState("b")], [3]),
        ([DeleteTopicState(None, uuid(9))], [100]),
        ([DeleteTopicState()], [42]),
        ([DeleteTopicState("a", uuid(9))], [42]),
        ([DeleteTopicState("a")] * 2, [42, 42]),
    ],
)
def test_refused_deletions(states: list[DeleteTopicState], errors: list[int]) -> None:
    """What is unknown, unclear or named twice is not deleted."""
    driven = three()
    driven.create("a", (1,))
    before = driven.controller.committed
    result = driven.ask(DeleteTopics(tuple(states)))
    assert [one.error_code for one in result.responses] == errors
    assert driven.controller.committed == before


# -- settings and producer ids ---------------------------------------------------------------------


def alter(driven: Driven, kind: int, name: str, *configs: AlterableConfig) -> int:
    """Changes settings of a resource; returns the error."""
    request = IncrementalAlterConfigs((AlterConfigsResource(kind, name, configs),))
    (found,) = driven.ask(request).responses
    return int(found.error_code)


def test_settings() -> None:
    """They are set, deleted, and lists are added to and taken from."""
    driven = three()
    driven.create("a", (1,))
    for operation, value, expected in [
        (0, "x", "x"),
        (2, "y,z", "x,y,z"),
        (2, "x", "x,y,z"),
        (3, "y", "x,z"),
        (1, None, None),
    ]:
        assert alter(driven, 2, "a", AlterableConfig("cleanup.policy", operation, value)) == 0
        assert driven.controller.committed.setting(2, "a", "cleanup.policy") == expected
    assert not driven.controller.committed.configs
    assert alter(driven, 4, "", AlterableConfig("log.x", 0, "1")) == 0
    count = len(driven.records)
    assert alter(driven, 4, "", AlterableConfig("log.x", 0, "1")) == 0
    assert len(driven.records) == count + 1, "brokers read files again at an unchanged value"


@pytest.mark.parametrize(
    ("kind", "name", "config", "error"),
    [
        (2, "b", AlterableConfig("x", 0, "1"), 3),
        (4, "b", AlterableConfig("x", 0, "1"), 42),
        (3, "1", AlterableConfig("x", 0, "1"), 42),
        (2, "a", AlterableConfig("x", 9, "1"), 42),
        (2, "a", AlterableConfig("x", 0, None), 40),
    ],
)
def test_refused_settings(kind: int, name: str, config: AlterableConfig, error: int) -> None:
    """One bad change of a resource refuses all of them; other resources are changed."""
    driven = three()
    driven.create("a", (1,))
    good = AlterableConfig("y", 0, "1")
    request = IncrementalAlterConfigs(
        (AlterConfigsResource(kind, name, (good, config)), AlterConfigsResource(4, "1", (good,)))
    )
    results = driven.ask(request).responses
    assert [one.error_code for one in results] == [error, 0]
    assert [*driven.controller.committed.configs] == [(4, "1")]


def test_settings_that_are_named_twice() -> None:
    """A resource, or a setting of one, may be in a request once."""
    driven = three()
    one = AlterableConfig("x", 0, "1")
    assert alter(driven, 4, "1", one, one) == 42
    resource = AlterConfigsResource(4, "1", (one,))
    found = driven.ask(IncrementalAlterConfigs((resource, resource), validate_only=True)).responses
    assert [one.error_code for one in found] == [0, 42]
    assert not driven.controller.committed.configs


def test_producer_ids() -> None:
    """Each block is given once, whoever asks, and whoever leads."""
    driven = three()
    epoch = driven.controller.committed.brokers[1].epoch
    ask = AllocateProducerIds(1, epoch)
    assert driven.ask(ask) == AllocateProducerIdsResponse(0, 0, 1000)
    assert driven.ask(ask) == AllocateProducerIdsResponse(0, 1000, 1000)
    assert driven.ask(AllocateProducerIds(1, epoch + 1)).error_code == 77
    driven.lose()
    driven.lead()
    assert driven.ask(ask) == AllocateProducerIdsResponse(0, 2000, 1000)
