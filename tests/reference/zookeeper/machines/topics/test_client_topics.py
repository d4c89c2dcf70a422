"""Topics, partitions, settings and producer ids that clients and brokers request."""

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from featurewatch.reference.zookeeper.machines.encoding import BROKER_IDS
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.machines.topics.requests import (
    ConfigChange,
    ConfigOperation,
    NewPartitions,
    NewTopic,
    ProducerIds,
    RequestFailed,
    TopicResult,
)
from featurewatch.reference.zookeeper.machines.topics.znodes import topic_config_path
from tests.reference.zookeeper.machines.topics.cluster import (
    P0,
    OperationsDriver,
    lines_for,
    make_cluster,
)


def perform(driver: OperationsDriver, operation: Any) -> Any:
    """Runs the operation of a request; its result."""
    results: list[Any] = []
    driver.controller.perform(operation, results.append)
    driver.settle()
    (result,) = results
    return result


def create(driver: OperationsDriver, *topics: NewTopic, dry_run: bool = False) -> Any:
    """CreateTopics."""
    return perform(driver, driver.controller.topics.create(topics, dry_run=dry_run))


def test_a_created_topic_has_its_leaders_when_the_response_leaves() -> None:
    """The settings are written first, then the assignment, then the states."""
    driver = OperationsDriver()
    driver.settle()
    results: list[Any] = []
    topic = NewTopic("t", 3, 2, configs={"retention.ms": "1"})
    driver.controller.perform(
        driver.controller.topics.create([topic], dry_run=False), results.append
    )
    journal = driver.settle()
    paths = [line.split()[1] for line in lines_for(journal, "W")]
    assert paths[:2] == ["/config/topics/t", "/brokers/topics/t"]
    result: TopicResult = results[0]["t"]
    assert result.error is ErrorCode.NONE
    assert sorted(result.assignments) == [0, 1, 2]
    assert driver.controller.context.topic_names == {result.topic_id: "t"}
    assert all(state.leader > 0 for state in driver.controller.context.leaderships.values())
    assert len({replicas[0] for replicas in result.assignments.values()}) == 3


REFUSED: Mapping[str, tuple[NewTopic, ErrorCode, str]] = {
    "exists": (NewTopic("t", 1, 1), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 't' already exists."),
    "name": (
        NewTopic("a/b", 1, 1),
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        "Topic name is invalid: 'a/b' contains one or more characters other than ASCII "
        "alphanumerics, '.', '_' and '-'",
    ),
    "long name": (
        NewTopic("x" * 250, 1, 1),
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        f"Topic name is invalid: the length of '{'x' * 250}' is longer than the max allowed "
        "length 249",
    ),
    "collision": (
        NewTopic("a_b", 1, 1),
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        "Topic 'a_b' collides with existing topics: a.b",
    ),
    "no partitions": (
        NewTopic("n", 0, 1),
        ErrorCode.INVALID_PARTITIONS,
        "Number of partitions must be larger than 0.",
    ),
    "too many replicas": (
        NewTopic("n", 1, 9),
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "Replication factor: 9 larger than available brokers: 3.",
    ),
    "both": (
        NewTopic("n", 1, 1, {0: (1,)}),
        ErrorCode.INVALID_REQUEST,
        "Both numPartitions or replicationFactor and replicasAssignments were set. Both cannot be "
        "used at the same time.",
    ),
    "gap": (
        NewTopic("n", assignments={1: (1,)}),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "partitions should be a consecutive 0-based integer sequence",
    ),
    "lengths": (
        NewTopic("n", assignments={0: (1,), 1: (1, 2)}),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "All partitions should have the same number of replicas",
    ),
    "no value": (
        NewTopic("n", 1, 1, configs={"k": None}),
        ErrorCode.INVALID_CONFIG,
        "Null value not supported for topic configs: k",
    ),
    "setting": (
        NewTopic("n", 1, 1, configs={"k": "v"}),
        ErrorCode.INVALID_CONFIG,
        "Unknown topic config name: k",
    ),
    "value": (
        NewTopic("n", 1, 1, configs={"retention.ms": "x"}),
        ErrorCode.INVALID_CONFIG,
        "Invalid value x for configuration retention.ms: Not a number of type LONG",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.form("released")
def test_what_cannot_be_created_has_kafkas_error(case: str) -> None:
    """Nothing is written.

    Both forms at once are INVALID_REQUEST (A-08 as released), and each reason has a own code
    (A-02 as released).
    """
    topic, error, message = REFUSED[case]
    driver = make_cluster((1, 2))
    driver.create_topic((1,), topic="a.b")
    result = create(driver, topic)[topic.name]
    assert (result.error, result.message) == (error, message)
    assert not lines_for(driver.settle(), "W")
    assert topic_config_path("n") not in driver.history.tree


def test_a_topic_twice_in_a_request_is_refused() -> None:
    """As is a topic that is marked for deletion; a dry run writes nothing."""
    driver = make_cluster((1, 2))
    twice = create(driver, NewTopic("n", 1, 1), NewTopic("n", 2, 1))
    assert twice["n"].message == "Found multiple entries for this topic."
    assert create(driver, NewTopic("n", 2, 2), dry_run=True)["n"].error is ErrorCode.NONE
    assert "/brokers/topics/n" not in driver.history.tree
    perform(driver, driver.controller.topics.delete(["t"]))
    assert create(driver, NewTopic("t", 1, 1))["t"].message == "Topic 't' is marked for deletion."


def test_no_request_occupies_the_controller_for_long() -> None:
    """A request for more partitions than KRaft would create is refused as a whole topic."""
    driver = make_cluster((1, 2))
    results = create(driver, NewTopic("m", 9_999, 1), NewTopic("n", 2, 1), dry_run=True)
    assert [result.error for result in results.values()] == [
        ErrorCode.NONE,
        ErrorCode.POLICY_VIOLATION,
    ]
    huge = [NewPartitions("t", (1 << 31) - 1)]
    added = perform(driver, driver.controller.partitions.create(huge, dry_run=False))
    assert added["t"].error is ErrorCode.POLICY_VIOLATION


def test_a_topic_without_a_live_replica_is_created_and_not_ready() -> None:
    """The error is that of a request that did not see its leaders in time."""
    driver = OperationsDriver()
    driver.settle()
    result = create(driver, NewTopic("t", assignments={0: (9,)}))["t"]
    assert result.error is ErrorCode.REQUEST_TIMED_OUT
    driver.start_broker(9)
    assert driver.controller.context.leaderships[P0].leader == 9


def test_partitions_are_added_after_those_that_exist() -> None:
    """The new ones are placed after the present ones, and have leaders."""
    driver = make_cluster((1, 2), (2, 3))
    work = driver.controller.partitions
    added = perform(driver, work.create([NewPartitions("t", 4)], dry_run=False))["t"]
    assert (added.error, sorted(added.assignments)) == (ErrorCode.NONE, [2, 3])
    assert len(driver.controller.context.leaderships) == 4
    fewer = perform(driver, work.create([NewPartitions("t", 3)], dry_run=False))["t"]
    assert fewer.message == (
        "Topic currently has 4 partitions, which is higher than the requested 3."
    )
    same = perform(driver, work.create([NewPartitions("t", 4)], dry_run=False))["t"]
    assert same.message == "Topic already has 4 partitions."
    unknown = perform(driver, work.create([NewPartitions("n", 4)], dry_run=False))["n"]
    assert unknown.message == "The topic 'n' does not exist."
    manual = [NewPartitions("t", 5, ((1, 9),)), NewPartitions("t", 6, ((1, 2),))]
    texts = [perform(driver, work.create([one], dry_run=False))["t"].message for one in manual]
    assert texts == [
        "Unknown broker(s) in replica assignment: 9.",
        "Increasing the number of partitions by 2 but 1 assignments provided.",
    ]
    driver.reassign(3, 1)
    moving = perform(driver, work.create([NewPartitions("t", 9)], dry_run=False))["t"]
    assert moving.error is ErrorCode.REASSIGNMENT_IN_PROGRESS


def test_a_deleted_topic_vanishes_when_the_brokers_have_deleted_it() -> None:
    """Unknown topics are refused, and so are all where deletion is switched off."""
    driver = make_cluster((1, 2))
    results = perform(driver, driver.controller.topics.delete(["t", "n"]))
    assert [result.error for result in results.values()] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    driver.stop_responses()
    assert "/brokers/topics/t" not in driver.history.tree

    fixed = make_cluster((1, 2))
    fixed.controller.topics._deletion.is_enabled = False
    refused = perform(fixed, fixed.controller.topics.delete(["t"]))
    assert refused["t"].error is ErrorCode.TOPIC_DELETION_DISABLED
    fixed.put("/admin/delete_topics/t", b"")
    fixed.settle()
    assert "/admin/delete_topics/t" not in fixed.history.tree
    assert "/brokers/topics/t" in fixed.history.tree
    assert fixed.log_lines[-1] == "topic t is not deleted: delete.topic.enable is false"


def test_settings_change_and_brokers_are_informed() -> None:
    """Each change is applied to what is there, and a znode below /config/changes names it."""
    driver = make_cluster((1, 2))
    operation, configs = ConfigOperation, driver.controller.configs
    policy, throttle = "cleanup.policy", "leader.replication.throttled.replicas"

    def alter(*changes: ConfigChange) -> ErrorCode:
        result: TopicResult = perform(driver, configs.alter({"t": changes}, dry_run=False))["t"]
        return result.error

    added = (
        ConfigChange("flush.ms", operation.SET, "1"),
        ConfigChange(policy, operation.APPEND, "compact"),
        ConfigChange(throttle, operation.APPEND, "0:1,0:2"),
        ConfigChange("gone", operation.DELETE, None),
    )
    assert alter(*added) is ErrorCode.NONE
    expected = {"flush.ms": "1", policy: "delete,compact", throttle: "0:1,0:2"}
    assert perform(driver, configs.read(["t", "n"])) == {"t": expected}
    (note,) = [path for path in driver.history.tree if path.startswith("/config/changes/")]
    assert orjson.loads(driver.history.tree[note].data)["entity_path"] == "topics/t"
    assert alter(ConfigChange(throttle, operation.SUBTRACT, "0:1")) is ErrorCode.NONE
    assert perform(driver, configs.read(["t"]))["t"] == {**expected, throttle: "0:2"}
    driver.put(topic_config_path("t"), b"not json")
    assert alter(ConfigChange("flush.ms", operation.SET, "2")) is ErrorCode.INVALID_CONFIG


_RESOURCE = "Invalid config value for resource ConfigResource(type=TOPIC, name='t'): "
REFUSED_CHANGES: list[tuple[list[tuple[str, int, str | None]], ErrorCode, str]] = [
    ([("nosuch", 0, "1")], ErrorCode.INVALID_CONFIG, "Unknown topic config name: nosuch"),
    (
        [("retention.ms", 0, "x")],
        ErrorCode.INVALID_CONFIG,
        f"{_RESOURCE}Invalid value x for configuration retention.ms: Not a number of type LONG",
    ),
    (
        [("retention.ms", 0, None)],
        ErrorCode.INVALID_REQUEST,
        "Null value not supported for : retention.ms",
    ),
    (
        [("retention.ms", 2, "1")],
        ErrorCode.INVALID_CONFIG,
        "Config value append is not allowed for config key: retention.ms",
    ),
    ([("nosuch", 3, "1")], ErrorCode.INVALID_CONFIG, "Unknown config name: nosuch"),
    (
        [("retention.ms", 9, "1")],
        ErrorCode.INVALID_REQUEST,
        "There is no operation 9 for config key: retention.ms",
    ),
    (
        [("retention.ms", 0, "1"), ("retention.ms", 0, "2")],
        ErrorCode.INVALID_REQUEST,
        "Error due to duplicate config keys",
    ),
    (
        [("min.compaction.lag.ms", 0, "10"), ("max.compaction.lag.ms", 0, "5")],
        ErrorCode.INVALID_CONFIG,
        "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)",
    ),
]


@pytest.mark.parametrize(("changes", "error", "message"), REFUSED_CHANGES)
@pytest.mark.form("released")
def test_settings_that_cannot_be_changed_have_the_error_of_a_broker_of_kafka_391(
    changes: list[tuple[str, int, str | None]], error: ErrorCode, message: str
) -> None:
    """Clients may send the request to any node, so all must answer alike (A-14 as released)."""
    driver = make_cluster((1, 2))
    wanted = {"t": tuple(ConfigChange(*change) for change in changes), "n": ()}
    results = perform(driver, driver.controller.configs.alter(wanted, dry_run=False))
    assert (results["t"].error, results["t"].message) == (error, message)
    assert results["n"] == TopicResult(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'n' does not exist."
    )
    assert not lines_for(driver.settle(), "W")


def test_blocks_of_producer_ids_never_overlap() -> None:
    """Each follows the last, whoever wrote it; one that cannot be read gives none."""
    driver = make_cluster((1, 2))
    blocks = driver.controller.producer_ids
    taken = [perform(driver, blocks.allocate(broker_id)) for broker_id in (1, 2, 1)]
    assert taken == [ProducerIds(0), ProducerIds(1000), ProducerIds(2000)]
    driver.put("/latest_producer_id_block", b"[]")
    assert isinstance(perform(driver, blocks.allocate(1)), RequestFailed)
    assert driver.log_lines[-1].startswith("cannot read /latest_producer_id_block")


def test_replicas_that_a_broker_places_on_the_controller_move_before_the_start() -> None:
    """The controller's node is registered as a broker, and hosts nothing."""
    driver = OperationsDriver((1, 2, 3, 100))
    driver.settle()
    driver.create_topic((100, 1), (2, 100, 3), (100,))
    replicas = [
        driver.controller.context.assignments[partition].replicas
        for partition in driver.controller.context.partitions_of("t")
    ]
    assert replicas == [(2, 1), (2, 1, 3), (3,)]
    assert [driver.assignment(P0._replace(number=number)).replicas for number in range(3)] == (
        replicas
    )
    assert 100 not in {request.broker_id for request in driver.requests}
    assert f"{BROKER_IDS}/100" in driver.history.tree
