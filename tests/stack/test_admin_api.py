"""Every public method of the released clients on real brokers of 4.3.0, refusals included.

Each test runs a client's methods as coroutines and as ordinary calls, and fails if the client has a
method that its script does not call. `tests.conformance.cluster_tool` does so for features and
registrations, `test_controlled_brokers` for KIP-4's draft.
"""

import time
from uuid import uuid4

import pytest

from featurewatch.admin import (
    ElectionAdmin,
    ElectionStatus,
    ElectionType,
    KafkaApiError,
    PartitionIncrease,
    ReassignmentAdmin,
    ReassignmentStatus,
    RequestError,
    SettingChange,
    TopicAdmin,
    TopicPartition,
    TopicSpec,
    UnreachableError,
    UpdateRefusedError,
)
from featurewatch.admin.cluster.configs import ConfigOwner
from featurewatch.admin.cluster.values import BrokerNode, BrokerReplica
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.types import NodeId
from tests.admin.api_script import (
    SESSION_NEVER_REFUSES,
    WAIT_S,
    ApiScript,
    Mode,
    api_script,
    session_calls,
)

pytestmark = [pytest.mark.stack, pytest.mark.form("released")]

CLUSTER_NEVER_REFUSES = SESSION_NEVER_REFUSES | {"cluster", "supported_features", "reassignments"}
"""Without ACLs a broker has no reason to refuse these."""
NOWHERE = {9: BrokerNode(NodeId(9), "127.0.0.1", 1, None)}


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A topic of this test."""
    return f"api-{time.time_ns()}-{request.node.callspec.id}"


async def cluster_calls(api: ApiScript, name: str) -> None:
    """The methods that clients of topics, replicas and leaders share; the topic has a replica on
    each of three brokers."""
    await session_calls(api)
    partition = TopicPartition(name, 0)
    found = await api.settles("topics", [name], shows=lambda found: partition in found.partitions)
    brokers = found.brokers
    assert sorted(brokers) == [1, 2, 3]
    await api.refuses(
        "topics", ["nowhere"], shows=lambda result: result.errors["nowhere"].code == 3
    )
    assert [node.node_id for node in (await api.returns("cluster")).brokers] == [1, 2, 3]
    assert len((await api.returns("overview", [name])).topics) == 1
    await api.refuses("overview", ["nowhere"], shows=lambda result: result.topics[0].error == 3)
    assert await api.returns("reassignments") is not None
    assert "metadata.version" in await api.returns("supported_features")
    assert (await api.returns("configs", [name]))[name].values
    await api.refuses("configs", ["nowhere"], shows=lambda result: result["nowhere"].error == 3)
    replica, stranger = BrokerReplica(partition, 1), BrokerReplica(partition, 9)
    await api.settles("directories", [replica], brokers, shows=lambda found: replica in found)
    await api.refuses("directories", [stranger], brokers, shows=UnreachableError)
    settings = ("flush.ms",), brokers, ("log.flush.interval.ms",)
    assert (await api.returns("own_configs", [name], *settings))[ConfigOwner.topic(name)] == {}
    await api.refuses("own_configs", [], (), NOWHERE, (), shows=UnreachableError)


@pytest.mark.parametrize("mode", Mode)
async def test_topics(quorum_430: Cluster, mode: Mode, name: str) -> None:
    """`TopicAdmin` (A-35, A-36 as released)."""
    client = TopicAdmin.connect(quorum_430.bootstrap_servers)
    async with api_script(client, mode) as api:
        created = await api.returns("create", [TopicSpec(name, assignment=[(1, 2, 3)])])
        assert [result.error for result in created] == [0]
        await api.refuses("create", [TopicSpec(name, 1, 1)], shows=lambda made: made[0].error == 36)
        await cluster_calls(api, name)
        assert (await api.returns("create_topic", f"{name}-1", 2, 1)).partitions == 2
        await api.refuses("create_topic", f"{name}-1", 2, 1, shows=KafkaApiError)
        await api.settles("list_topics", shows=lambda names: f"{name}-1" in names)
        more = await api.returns("add_partitions", [PartitionIncrease(name, 2)])
        assert more[0].error == 0
        fewer = PartitionIncrease(name, 1)
        await api.refuses("add_partitions", [fewer], shows=lambda result: result[0].error == 37)
        change = {name: [SettingChange("flush.ms", "5")]}
        assert (await api.returns("alter_configs", change))[0].error == 0
        wrong = {name: [SettingChange("flush.ms", "x")]}
        await api.refuses("alter_configs", wrong, shows=lambda result: result[0].error == 40)
        await api.returns("alter_topic", name, 3, [(3, 2, 1)], added={"flush.ms": "6"})
        await api.refuses("alter_topic", name, 3, shows=KafkaApiError)
        await api.refuses("alter_topic", name, shows=RequestError)
        described = await api.settles(
            "describe_topic", name, shows=lambda topic: len(topic.partitions) == 3
        )
        assert [partition.replicas for partition in described.partitions][::2] == [
            (1, 2, 3),
            (3, 2, 1),
        ]
        await api.refuses("describe_topic", "nowhere", shows=KafkaApiError)
        assert (await api.returns("describe", [name], page_partitions=1)) == (described,)
        await api.refuses("describe", ["nowhere"], shows=lambda topics: topics[0].error == 3)
        (by_id,) = await api.returns("describe_ids", [described.topic_id])
        assert by_id.name == name
        await api.refuses("describe_ids", [uuid4()], shows=lambda topics: topics[0].error == 100)
        await api.settles("log_bytes", [described], shows=lambda sizes: sizes == {name: 0})
        assert (await api.returns("delete_ids", [described.topic_id]))[0].error == 0
        await api.refuses("delete_ids", [uuid4()], shows=lambda result: result[0].error == 100)
        assert (await api.returns("create_topic", f"{name}-2", 1, 1)).error == 0
        assert (await api.returns("delete", [f"{name}-1"]))[0].error == 0
        await api.refuses("delete", ["nowhere"], shows=lambda result: result[0].error == 3)
        await api.returns("delete_topic", f"{name}-2")
        await api.refuses("delete_topic", "nowhere", shows=KafkaApiError)
    api.check(TopicAdmin, CLUSTER_NEVER_REFUSES | {"list_topics", "log_bytes"})


@pytest.mark.parametrize("mode", Mode)
async def test_reassignments(quorum_430: Cluster, mode: Mode, name: str) -> None:
    """`ReassignmentAdmin` (A-37 as released, A-38 as released)."""
    servers = quorum_430.bootstrap_servers
    async with TopicAdmin.connect(servers) as topics:
        await topics.create_topic(name, assignment=[(1, 2, 3)])
    partition, missing = TopicPartition(name, 0), TopicPartition(name, 9)
    done = {partition: ReassignmentStatus.COMPLETED}

    def is_refused(results: object) -> bool:
        return isinstance(results, dict) and None not in results.values()

    async with api_script(ReassignmentAdmin.connect(servers), mode) as api:
        await cluster_calls(api, name)
        target = {partition: (3, 1)}
        assert await api.returns("reassign", target, max_wait_s=WAIT_S) == done
        await api.refuses("reassign", {missing: (1,)}, max_wait_s=1, shows=UpdateRefusedError)
        target = {partition: (2, 1)}
        assert await api.returns("start", target) == {partition: None}
        await api.refuses("start", {partition: (1, 9)}, shows=is_refused)
        statuses = await api.returns("wait", target, max_wait_s=WAIT_S)
        assert statuses == await api.returns("verify", target) == done
        await api.refuses("wait", {missing: (1,)}, max_wait_s=0, shows=UnreachableError)
        failed = {missing: ReassignmentStatus.FAILED}
        await api.refuses("verify", {missing: (1,)}, shows=lambda result: result == failed)
        assert (await api.returns("progress", target, statuses)) == (1, 1, 0)
        await api.refuses("cancel", [partition], shows=is_refused)
        brokers = (await api.returns("topics", [])).brokers
        replica = BrokerReplica(partition, 1)
        directory = (await api.returns("directories", [replica], brokers))[replica].current
        moved = await api.returns("move_directories", {replica: directory}, brokers)
        assert moved == {replica: None}
        await api.refuses("move_directories", {replica: "/x"}, brokers, shows=is_refused)
        throttle = "leader.replication.throttled.replicas"
        owner = ConfigOwner.topic(name)
        assert await api.returns("set_configs", {owner: {throttle: "0:1"}}, brokers) == {
            owner: None
        }
        await api.refuses("set_configs", {owner: {throttle: "x"}}, brokers, shows=is_refused)
        expected = {owner: {throttle: "0:1"}}
        await api.settles("throttles", [name], {}, shows=lambda found: found == expected)
        await api.refuses("throttles", [], NOWHERE, shows=UnreachableError)
    async with TopicAdmin.connect(servers) as topics:
        await topics.delete_topic(name)
    api.check(ReassignmentAdmin, CLUSTER_NEVER_REFUSES | {"progress"})


@pytest.mark.parametrize("mode", Mode)
async def test_elections(quorum_430: Cluster, mode: Mode, name: str) -> None:
    """`ElectionAdmin`: the first replica leads after it was elected (A-39 as released, A-40)."""
    servers = quorum_430.bootstrap_servers
    partition, missing = TopicPartition(name, 0), TopicPartition(name, 9)
    async with TopicAdmin.connect(servers) as topics:
        await topics.create_topic(name, assignment=[(1, 2, 3)])
    async with ReassignmentAdmin.connect(servers) as replicas:
        await replicas.reassign({partition: (3, 1, 2)}, max_wait_s=WAIT_S)
    async with api_script(ElectionAdmin.connect(servers), mode) as api:
        await cluster_calls(api, name)
        first = (await api.returns("topics", [name])).partitions[partition]
        assert (first.leader, first.replicas) == (1, (3, 1, 2))
        results = await api.returns("elect", ElectionType.PREFERRED, [partition])
        assert results == {partition: None}
        await api.refuses(
            *("elect", ElectionType.PREFERRED, [missing]),
            shows=lambda result: result[missing].code == 3,
        )
        done = {partition: ElectionStatus.COMPLETED}
        assert await api.returns("wait", [partition], max_wait_s=WAIT_S) == done
        assert await api.returns("verify", [partition]) == done
        failed = {missing: ElectionStatus.FAILED}
        for method in ("verify", "wait"):
            options = {"max_wait_s": WAIT_S} if method == "wait" else {}
            await api.refuses(method, [missing], shows=lambda result: result == failed, **options)
        assert (await api.returns("topics", [name])).partitions[partition].leader == 3
    async with TopicAdmin.connect(servers) as topics:
        await topics.delete_topic(name)
    api.check(ElectionAdmin, CLUSTER_NEVER_REFUSES)
