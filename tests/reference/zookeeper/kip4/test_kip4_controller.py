"""KIP-4's requests to the reference controller, sent and answered as bytes."""

import ast
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import orjson
import pytest

from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.reference.zookeeper import kip4
from featurewatch.reference.zookeeper.kip4.codes import AdminRequestFailedError
from featurewatch.reference.zookeeper.kip4.replica_commands import (
    PreferredReplicaLeaderElectionCommandHelper,
    ReassignPartitionsCommandHelper,
)
from featurewatch.reference.zookeeper.kip4.topic_command import TopicCommandHelper
from featurewatch.reference.zookeeper.machines.encoding import broker_path
from featurewatch.reference.zookeeper.machines.topics.requests import (
    NOT_CONTROLLER,
    PartitionResults,
    RequestElections,
    TopicRequest,
    TopicResponse,
)
from featurewatch.reference.zookeeper.machines.zookeeper import Create, Delete
from featurewatch.reference.zookeeper.wire.responses import ClusterView
from tests.messages import by_order as messages
from tests.messages import changed
from tests.reference.zookeeper.kip4.kip4_rig import VIEW, Kip4Rig
from tests.reference.zookeeper.machines.controller_rig import P0

pytestmark = pytest.mark.form("document")

P1 = TopicPartition("t", 1)
DESCRIBED = messages.DescribeTopicResponseV0
CONFIG = messages.CreateTopicRequestV0.ConfigEntry
BROKER = messages.ClusterMetadataResponseV0.Broker
ALTER = messages.AlterTopicRequestV0("t", None, None, (), ())
NOT_A_CONTROLLER = "Target broker (id=101) is not serving a controller's role."


def moves(*targets: tuple[int, list[int]], topic: str = "t") -> str:
    """A ManualAssignment."""
    entries = [
        {"topic": topic, "partition": number, "replicas": replicas} for number, replicas in targets
    ]
    return json.dumps({"partitions": entries, "version": 1})


def elections(*numbers: int, topic: str = "t") -> str:
    """A PartitionsSerialized."""
    return json.dumps({"partitions": [{"topic": topic, "partition": number} for number in numbers]})


CHANGES: list[Any] = [
    messages.CreateTopicRequestV0("new", 1, 1, None, ()),
    changed(ALTER, partitions=2),
    messages.ReassignPartitionRequestV0(moves((0, [3]))),
    messages.DeleteTopicRequestV0("t"),
]
ADMIN_REQUESTS: list[Any] = [
    messages.DescribeTopicRequestV0("t"),
    messages.ListTopicsRequestV0(),
    messages.VerifyReassignPartitionRequestV0(moves((0, [3]))),
    messages.PreferredReplicaLeaderElectionRequestV0(None),
    *CHANGES,
]


# -- errors ----------------------------------------------------------------------------------------


async def refuse(_: TopicRequest) -> TopicResponse:
    """The response of a node whose controller is not elected, or is deposed."""
    return NOT_CONTROLLER


@pytest.mark.parametrize("request_", ADMIN_REQUESTS)
async def test_another_broker_answers_22_with_its_own_id(request_: Any) -> None:
    """The controller alone processes admin messages (A-01)."""
    response = await Kip4Rig(perform=refuse, is_controller=False).send(request_)
    assert (response.error_code, response.error_description) == (22, NOT_A_CONTROLLER)


@pytest.mark.parametrize("request_", CHANGES)
async def test_a_controller_that_is_deposed_meanwhile_answers_22(request_: Any) -> None:
    """Its view of the cluster is of no use then (A-01)."""
    response = await Kip4Rig(perform=refuse).send(request_)
    assert (response.error_code, response.error_description) == (22, NOT_A_CONTROLLER)


@pytest.mark.parametrize("request_", CHANGES[:3])
async def test_what_nobody_expects_is_21(request_: Any, caplog: pytest.LogCaptureFixture) -> None:
    """An error of the controller's own is a failure in one line: the draft's description of the
    code, and the cause (A-02, A-47)."""

    async def fail(_: TopicRequest) -> TopicResponse:
        raise LookupError("a bug\nin the controller")

    response = await Kip4Rig(perform=fail).send(request_)
    assert response.error_code == 21
    assert response.error_description.startswith(
        "Unexpected error occurred while processing Admin request. LookupError: a bug"
    )
    assert "\n" not in response.error_description
    assert "of KIP-4 failed" in caplog.text


async def test_an_error_in_cluster_metadata_is_21(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no description; the lists are empty, and the connection stays (A-02)."""

    def fail() -> ClusterView:
        raise LookupError("a bug")

    rig = Kip4Rig()
    monkeypatch.setattr(rig.api, "_view", fail)
    response = await rig.send(messages.ClusterMetadataRequestV0())
    assert response == messages.ClusterMetadataResponseV0(21, (), None)


async def test_success_is_0_without_a_description_and_a_failure_has_its_cause() -> None:
    """In each response that has one (A-02, A-03)."""
    rig = Kip4Rig()
    for request in ADMIN_REQUESTS:
        response = await rig.accepted(request)
        assert response.error_description is None
    exists = messages.CreateTopicRequestV0("new", 1, 1, None, ())
    assert await rig.refused(exists) == "Topic 'new' already exists."


# -- the cluster -----------------------------------------------------------------------------------


async def test_cluster_metadata_has_the_brokers_and_the_controller() -> None:
    """From any node, the controller or not (A-01, A-04, A-05)."""
    controller = BROKER(101, "controller", 9101)
    expected = messages.ClusterMetadataResponseV0(
        0, (BROKER(1, "one", 9001), controller), controller
    )
    assert await Kip4Rig().send(messages.ClusterMetadataRequestV0()) == expected
    assert await Kip4Rig(is_controller=False).send(messages.ClusterMetadataRequestV0()) == expected


@pytest.mark.parametrize("controller_id", [-1, 77])
async def test_the_controller_is_empty_where_none_is_known(controller_id: int) -> None:
    """None is elected, or it is no registered broker (A-05, A-06)."""
    rig = Kip4Rig(view=replace(VIEW, controller_id=controller_id))
    response = await rig.send(messages.ClusterMetadataRequestV0())
    assert (response.error_code, len(response.brokers), response.controller) == (0, 2, None)


# -- topics ----------------------------------------------------------------------------------------


async def test_a_topic_by_numbers_is_placed_by_the_cluster() -> None:
    """With its own settings; an empty array means defaults (A-08, A-10, A-11)."""
    rig = Kip4Rig()
    configs = (CONFIG("retention.ms", "5"),)
    await rig.accepted(messages.CreateTopicRequestV0("a", 4, 2, None, configs))
    partitions = rig.context.partitions_of("a")
    assert len(partitions) == 4
    assert {len({*rig.context.assignments[part].replicas}) for part in partitions} == {2}
    data = rig.history.tree["/config/topics/a"].data
    assert orjson.loads(data) == {"version": 1, "config": {"retention.ms": "5"}}
    await rig.accepted(messages.CreateTopicRequestV0("b", 1, 1, None, ()))
    data = rig.history.tree["/config/topics/b"].data
    assert orjson.loads(data) == {"version": 1, "config": {}}


async def test_a_topic_by_assignment_has_its_numbers_from_it() -> None:
    """(A-08, A-09)"""
    rig = Kip4Rig()
    await rig.accepted(messages.CreateTopicRequestV0("a", None, None, "3:1,1:2", ()))
    replicas = {
        part.number: rig.context.assignments[part].replicas
        for part in rig.context.partitions_of("a")
    }
    assert replicas == {0: (3, 1), 1: (1, 2)}


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (("a", None, None, None), "Give partitions and replicas, or a replica assignment."),
        (("a", 1, None, None), "Give partitions and replicas, or a replica assignment."),
        (("a", None, 1, None), "Give partitions and replicas, or a replica assignment."),
        (("a", 1, 1, "1"), "Give either partitions and replicas or a replica assignment"),
        (("a", 1, None, "1"), "Give either partitions and replicas or a replica assignment"),
        (("a", None, 1, "1"), "Give either partitions and replicas or a replica assignment"),
        (("a", 0, 1, None), "Number of partitions must be larger than 0."),
        (("a", -1, 1, None), "Number of partitions must be larger than 0."),
        (("a", 1, -1, None), "Replication factor must be larger than 0."),
        (("a", 1, 9, None), "Replication factor: 9 larger than available brokers: 3."),
        (("t", 1, 1, None), "Topic 't' already exists."),
        (("a b", 1, 1, None), "Topic name is invalid: 'a b' contains one or more characters"),
        (("", 1, 1, None), "Topic name is invalid: the empty string is not allowed"),
        (("a", None, None, "1:2,3"), "All partitions should have the same number of replicas"),
        (("a", None, None, "x"), "'x' is not a list of replicas"),
    ],
)
async def test_the_server_validates_a_new_topic(
    values: tuple[str, int | None, int | None, str | None], reason: str
) -> None:
    """Neither of the two forms, both, or bad values create nothing (A-02, A-03, A-08, A-11)."""
    assert (await Kip4Rig().refused(messages.CreateTopicRequestV0(*values, configs=()))).startswith(
        reason
    )


async def test_a_setting_is_given_once() -> None:
    """Of a new topic, and as one to add or to delete (A-10, A-14)."""
    rig = Kip4Rig()
    twice = (CONFIG("flush.ms", "1"), CONFIG("flush.ms", "2"))
    creation = messages.CreateTopicRequestV0("a", 1, 1, None, twice)
    assert await rig.refused(creation) == "A setting is given twice."
    assert "a" not in rig.context.topics
    both = changed(ALTER, added_configs=twice[:1], deleted_configs=("flush.ms",))
    assert await rig.refused(both) == "A setting is given twice."


async def test_partitions_are_added() -> None:
    """By a number, or by the assignment of all partitions, or by both (A-11, A-12, A-13)."""
    rig = Kip4Rig()
    await rig.accepted(changed(ALTER, partitions=2))
    assert len(rig.context.partitions_of("t")) == 2
    await rig.accepted(changed(ALTER, partitions=3, replica_assignment=assignments(rig) + ",3:2"))
    assert rig.context.assignments[TopicPartition("t", 2)] == ReplicaAssignment((3, 2))
    await rig.accepted(changed(ALTER, replica_assignment=assignments(rig) + ",2:1"))
    assert rig.context.assignments[TopicPartition("t", 3)] == ReplicaAssignment((2, 1))
    assert rig.context.reassigning == set()


def assignments(rig: Kip4Rig) -> str:
    """The replicas of all partitions of t, as AlterTopic has them."""
    lists = [rig.context.assignments[part].replicas for part in sorted(rig.context.assignments)]
    return ",".join(":".join(map(str, replicas)) for replicas in lists)


async def test_a_new_assignment_of_existing_partitions_moves_them() -> None:
    """Those alone that have other replicas; others may be added at once (A-13)."""
    rig = Kip4Rig()
    await rig.accepted(changed(ALTER, replica_assignment="1:2,2:3"))
    assert rig.context.reassigning == set()
    await rig.accepted(changed(ALTER, replica_assignment="1:3,2:3"))
    assert rig.context.reassigning == {P0}
    assert rig.context.assignments[P0] == ReplicaAssignment((1, 3, 2), (3,), (2,))


async def test_settings_are_added_and_deleted() -> None:
    """A deleted one is named by its key alone and has its default again (A-12, A-14)."""
    rig = Kip4Rig()
    two = (CONFIG("flush.ms", "1"), CONFIG("retention.ms", "2"))
    await rig.accepted(changed(ALTER, added_configs=two))
    change = (CONFIG("retention.ms", "3"),)
    await rig.accepted(changed(ALTER, added_configs=change, deleted_configs=("flush.ms", "never")))
    description = (await rig.accepted(messages.DescribeTopicRequestV0("t"))).description
    assert description.config.configs == (DESCRIBED.ConfigEntry("retention.ms", "3"),)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, "The request changes nothing."),
        ({"topic_name": "x", "partitions": 2}, "The topic 'x' does not exist."),
        ({"partitions": 1}, "Topic already has 1 partitions."),
        (
            {"partitions": -1},
            "Topic currently has 1 partitions, which is higher than the requested",
        ),
        ({"partitions": 3, "replica_assignment": "1:2,2:1"}, "The replica assignment has 2 part"),
        ({"replica_assignment": "1:2,2"}, "Inconsistent replication factor between partitions"),
        ({"replica_assignment": "1:9"}, "t-0: Replica assignment has brokers that are not alive"),
        ({"replica_assignment": "1:1"}, "t-0: Duplicate replica ids in partition reassignment"),
        ({"replica_assignment": "1:3,9:1"}, "Unknown broker(s) in replica assignment: 9."),
        ({"deleted_configs": ("a", "a")}, "A setting is given twice."),
        ({"added_configs": (CONFIG("k", "v"),)}, "Unknown topic config name: k"),
        ({"added_configs": (CONFIG("flush.ms", "-1"),)}, "Invalid config value for resource"),
    ],
)
async def test_a_bad_change_changes_nothing(changes: dict[str, Any], reason: str) -> None:
    """Not even the settings beside it, which are valid (A-13)."""
    valid: dict[str, Any] = {"added_configs": (CONFIG("flush.ms", "1"),)} if changes else {}
    assert (await Kip4Rig().refused(changed(ALTER, **(valid | changes)))).startswith(reason)


async def test_a_list_that_failed_has_no_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lists are there if, and only if, the call succeeded (A-20)."""
    standby = Kip4Rig(perform=refuse, is_controller=False)
    listed = await standby.send(messages.ListTopicsRequestV0())
    assert (listed.error_code, listed.topics, listed.marked_for_deletion) == (22, None, None)

    def fail(_: Kip4Rig) -> NoReturn:
        raise LookupError("a bug in the controller")

    monkeypatch.setattr(Kip4Rig, "context_or_none", fail)
    listed = await Kip4Rig().send(messages.ListTopicsRequestV0())
    assert (listed.error_code, listed.topics, listed.marked_for_deletion) == (21, None, None)


async def test_a_verification_that_failed_has_no_results() -> None:
    """Of a node that is not the controller, and of a string that cannot be read (A-43)."""
    standby = Kip4Rig(perform=refuse, is_controller=False)
    request = messages.VerifyReassignPartitionRequestV0
    for rig, text in ((standby, moves((0, [3]))), (Kip4Rig(), "{")):
        verified = await rig.send(request(text))
        assert verified.error_code in (21, 22)
        assert verified.results == ()


async def test_a_deleted_topic_is_marked_until_its_replicas_are_deleted() -> None:
    """The list distinguishes it from living ones; a second deletion changes nothing, a change is
    refused (A-11, A-15, A-20, A-21)."""
    rig = Kip4Rig()
    await rig.accepted(messages.CreateTopicRequestV0("alive", 1, 1, None, ()))
    listed = await rig.accepted(messages.ListTopicsRequestV0())
    assert (listed.topics, listed.marked_for_deletion) == (("alive", "t"), ())
    await rig.accepted(messages.DeleteTopicRequestV0("t"))
    listed = await rig.accepted(messages.ListTopicsRequestV0())
    assert (listed.topics, listed.marked_for_deletion) == (("alive",), ("t",))
    await rig.accepted(messages.DeleteTopicRequestV0("t"))
    assert await rig.refused(changed(ALTER, partitions=2)) == "The topic is queued for deletion."
    marked = messages.CreateTopicRequestV0("t", 1, 1, None, ())
    assert await rig.refused(marked) == "Topic 't' is marked for deletion."


async def test_an_unknown_topic_is_not_deleted() -> None:
    """(A-02, A-11)"""
    reason = await Kip4Rig().refused(messages.DeleteTopicRequestV0("x"))
    assert reason == "The topic 'x' does not exist."


async def test_a_topic_is_described() -> None:
    """Its numbers, the settings that are its own alone, and its partitions (A-16, A-17, A-18,
    A-19)."""
    rig = Kip4Rig()
    configs = (CONFIG("retention.ms", "2"), CONFIG("flush.ms", "1"))
    await rig.accepted(messages.CreateTopicRequestV0("new", None, None, "1:2:3,2:3:1", configs))
    description = (await rig.accepted(messages.DescribeTopicRequestV0("new"))).description
    assert description == DESCRIBED.TopicDescription(
        "new",
        DESCRIBED.TopicConfigDetails(
            2,
            3,
            (DESCRIBED.ConfigEntry("flush.ms", "1"), DESCRIBED.ConfigEntry("retention.ms", "2")),
        ),
        (
            DESCRIBED.TopicPartitionDetails(0, 1, (1, 2, 3), (1, 2, 3)),
            DESCRIBED.TopicPartitionDetails(1, 2, (2, 3, 1), (2, 3, 1)),
        ),
    )


async def test_a_topic_that_is_marked_for_deletion_is_described() -> None:
    """Until it is removed (A-16)."""
    rig = Kip4Rig()
    await rig.accepted(messages.DeleteTopicRequestV0("t"))
    response = await rig.accepted(messages.DescribeTopicRequestV0("t"))
    assert response.description.topic_name == "t"


async def test_an_unknown_topic_has_no_description() -> None:
    """There is one if, and only if, the call succeeded (A-16)."""
    response = await Kip4Rig().send(messages.DescribeTopicRequestV0("x"))
    assert (response.error_code, response.description) == (21, None)
    assert response.error_description == "The topic 'x' does not exist."


async def test_a_leader_may_be_absent_and_the_isr_is_a_part_of_the_replicas() -> None:
    """With all replicas dead, and while a reassignment runs (A-19)."""
    rig = Kip4Rig()
    await rig.accepted(messages.ReassignPartitionRequestV0(moves((0, [3, 1]))))
    (partition,) = await partitions_of(rig)
    assert partition == DESCRIBED.TopicPartitionDetails(0, 1, (3, 1, 2), (1, 2))
    description = (await rig.accepted(messages.DescribeTopicRequestV0("t"))).description
    assert description.config.replication_factor == 2
    for broker_id in (1, 2, 3):
        rig.history.write(0, Delete(broker_path(broker_id)))
        rig.settle()
        (partition,) = await partitions_of(rig)
        assert {*partition.isr} <= {*partition.replicas}
    assert partition.leader is None


async def partitions_of(rig: Kip4Rig) -> tuple[Any, ...]:
    """The described partitions of t."""
    response = await rig.accepted(messages.DescribeTopicRequestV0("t"))
    partitions: tuple[Any, ...] = response.description.partitions
    return partitions


async def test_a_setting_that_no_string_can_hold_is_an_error_and_no_lost_connection() -> None:
    """Someone else may write any value to ZooKeeper (A-02)."""
    rig = Kip4Rig()
    data = orjson.dumps({"version": 1, "config": {"k": "v" * 40_000}})
    rig.history.write(0, Create("/config/topics/t", data))
    reason = await rig.refused(messages.DescribeTopicRequestV0("t"))
    assert reason == "A setting of topic 't' is too long to be sent."


# -- reassignments ---------------------------------------------------------------------------------


async def test_a_reassignment_is_started_verified_and_completed() -> None:
    """It returns at once; each partition of the string has a result, whatever it is
    (A-22, A-24, A-26, A-27, A-28)."""
    rig = Kip4Rig()
    await rig.accepted(changed(ALTER, replica_assignment="1:2,2:1"))
    text = moves((0, [3, 1]), (1, [1, 2]))
    await rig.accepted(messages.ReassignPartitionRequestV0(text))
    assert await codes(rig, text) == {"t-0": 0, "t-1": 1}
    rig.alter_isr(P0, 1, 2, 3)
    assert await codes(rig, text) == {"t-0": 1, "t-1": 1}
    assert await codes(rig, moves((0, [1, 3]), (1, [2, 1]), (7, [1]))) == {
        "t-0": -1,
        "t-1": -1,
        "t-7": -1,
    }


async def test_a_reassignment_that_adds_replicas_is_not_completed_at_once() -> None:
    """The assignment has the target from the start; it is in progress until the added replica is in
    sync (A-28)."""
    rig = Kip4Rig()
    text = moves((0, [1, 2, 3]))
    await rig.accepted(messages.ReassignPartitionRequestV0(text))
    assert rig.context.assignment(P0).replicas == (1, 2, 3)
    assert await codes(rig, text) == {"t-0": 0}
    rig.alter_isr(P0, 1, 2, 3)
    assert await codes(rig, text) == {"t-0": 1}


async def codes(rig: Kip4Rig, text: str) -> dict[str, int]:
    """The verified results, by partition."""
    response = await rig.accepted(messages.VerifyReassignPartitionRequestV0(text))
    results = [
        (f"{place.topic_name}-{place.partition}", result.result_code)
        for result in response.results
        for place in [result.topic_and_partition]
    ]
    assert len(dict(results)) == len(results)
    return dict(results)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("not json", "The string cannot be read: it is not JSON"),
        (moves((0, [3]), (0, [2])), "The string cannot be read: it names 't'-0 twice"),
        (moves((0, [3]), (9, [3])), "t-9: The partition does not exist."),
        (moves((0, [3]), (1, [])), "t-1: Empty replica list specified in partition reassignment."),
        (moves((0, [3]), (1, [3, 3])), "t-1: Duplicate replica ids in partition reassignment"),
        (moves((0, [3]), (1, [77])), "t-1: Replica assignment has brokers that are not alive."),
        (moves(*((number, [3]) for number in range(50, 70))), "t-50: The partition does not"),
    ],
)
async def test_a_bad_string_starts_nothing(text: str, reason: str) -> None:
    """Not even the valid partitions in it (A-02, A-23, A-24)."""
    rig = Kip4Rig()
    await rig.accepted(changed(ALTER, partitions=2))
    assert (await rig.refused(messages.ReassignPartitionRequestV0(text))).startswith(reason)
    assert rig.context.reassigning == set()


async def test_a_bad_string_is_not_verified() -> None:
    """(A-23, A-26, A-27)"""
    response = await Kip4Rig().send(messages.VerifyReassignPartitionRequestV0("{}"))
    assert (response.error_code, response.results) == (21, ())
    assert "partitions is missing" in response.error_description


# -- elections -------------------------------------------------------------------------------------


async def unbalanced() -> Kip4Rig:
    """Broker 2 leads both partitions of t, whose heads are 1."""
    rig = Kip4Rig()
    await rig.accepted(changed(ALTER, replica_assignment="1:2,1:2"))
    rig.history.write(0, Delete(broker_path(1)))
    rig.settle()
    rig.register(1, 9001)
    rig.settle()
    for partition in (P0, P1):
        rig.alter_isr(partition, 2, 1)
    assert leaders(rig) == {P0: 2, P1: 2}
    return rig


def leaders(rig: Kip4Rig) -> dict[TopicPartition, int]:
    """The leader of each partition."""
    return {part: state.leader for part, state in rig.context.leaderships.items()}


async def test_the_named_partitions_are_elected_or_all() -> None:
    """The field is optional, and without it all are meant; a description shows that it is done
    (A-29, A-30, A-31)."""
    rig = await unbalanced()
    await rig.accepted(messages.PreferredReplicaLeaderElectionRequestV0(elections(1)))
    described = await partitions_of(rig)
    assert [part.leader == part.replicas[0] for part in described] == [False, True]
    await rig.accepted(messages.PreferredReplicaLeaderElectionRequestV0(None))
    described = await partitions_of(rig)
    assert [part.leader == part.replicas[0] for part in described] == [True, True]


async def test_an_election_is_answered_when_it_is_requested() -> None:
    """The response has the result of the request, which starts the election (A-30)."""
    seen: list[TopicRequest] = []

    async def request(request: TopicRequest) -> TopicResponse:
        seen.append(request)
        return PartitionResults({})

    rig = Kip4Rig(perform=request)
    await rig.accepted(messages.PreferredReplicaLeaderElectionRequestV0(None))
    await rig.accepted(messages.PreferredReplicaLeaderElectionRequestV0(elections(0)))
    assert seen == [RequestElections(None), RequestElections((P0,))]


async def test_all_partitions_are_elected_while_a_topic_is_being_deleted() -> None:
    """Those of the topic are left out (A-29)."""
    rig = await unbalanced()
    await rig.accepted(messages.CreateTopicRequestV0("goes", None, None, "3", ()))
    await rig.accepted(messages.DeleteTopicRequestV0("goes"))
    assert "goes" in rig.context.topics
    named = messages.PreferredReplicaLeaderElectionRequestV0(elections(0, topic="goes"))
    assert await rig.refused(named) == "Partition goes-0 is being deleted."
    await rig.accepted(messages.PreferredReplicaLeaderElectionRequestV0(None))
    assert leaders(rig)[P0] == leaders(rig)[P1] == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "The string cannot be read: it is not JSON"),
        (elections(0, 0), "The string cannot be read: it names 't'-0 twice"),
        (elections(0, 9), "Partition t-9 does not exist."),
        (elections(), "The string cannot be read: it names no partition"),
    ],
)
async def test_a_bad_string_elects_nobody(text: str, reason: str) -> None:
    """Not even the valid partitions in it (A-23, A-29)."""
    rig = await unbalanced()
    refused = await rig.refused(messages.PreferredReplicaLeaderElectionRequestV0(text))
    assert refused.startswith(reason)
    assert leaders(rig) == {P0: 2, P1: 2}


async def test_a_preferred_replica_that_cannot_lead_keeps_the_others_from_nothing() -> None:
    """The old leader stays; the other partition of the request is elected (A-29)."""
    rig = await unbalanced()
    rig.alter_isr(P0, 2)
    await rig.accepted(messages.PreferredReplicaLeaderElectionRequestV0(elections(0, 1)))
    assert leaders(rig) == {P0: 2, P1: 1}


# -- helpers ---------------------------------------------------------------------------------------


def test_the_helpers_share_nothing_with_the_command_line() -> None:
    """Requests go to three helpers, which import neither commands nor their client (A-32)."""
    names = set()
    for file in Path(kip4.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom):
                names.add(str(node.module))
            elif isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ClassDef) and node.name.endswith("CommandHelper"):
                names.add(node.name)
    assert {name for name in names if name.endswith("CommandHelper")} == {
        "TopicCommandHelper",
        "ReassignPartitionsCommandHelper",
        "PreferredReplicaLeaderElectionCommandHelper",
    }
    assert not [
        name for name in names if name.startswith(("featurewatch.cli", "featurewatch.admin"))
    ]
    assert TopicCommandHelper.__module__ == "featurewatch.reference.zookeeper.kip4.topic_command"


def test_the_server_loads_nothing_of_the_command_line() -> None:
    """By any way of importing (A-32)."""
    program = (
        "import sys, featurewatch.reference.zookeeper.kip4.api\n"
        "print(*(name for name in sys.modules if name.startswith("
        "('featurewatch.cli', 'featurewatch.admin'))))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True
    )
    assert run.stdout == "\n"


@pytest.mark.parametrize("request_", ADMIN_REQUESTS)
async def test_each_request_goes_to_its_helper(
    request_: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dispatcher does no work: without its helper a request does nothing (A-32)."""
    called: list[str] = []
    for helper in (
        TopicCommandHelper,
        ReassignPartitionsCommandHelper,
        PreferredReplicaLeaderElectionCommandHelper,
    ):
        for name in [name for name in vars(helper) if not name.startswith("_")]:

            def refuse_all(*_: object, name: str = f"{helper.__name__}.{name}") -> None:
                called.append(name)
                raise AdminRequestFailedError("the helper refuses")

            monkeypatch.setattr(helper, name, refuse_all)
    assert await Kip4Rig().refused(request_) == "the helper refuses"
    assert len(called) == 1
