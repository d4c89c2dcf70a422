"""The client of KIP-4's draft, against nodes on real sockets."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import trustme

from featurewatch.admin.errors import (
    AdminError,
    OutcomeUnknownError,
    RequestError,
    UnreachableError,
)
from featurewatch.admin.kip4.client import (
    DraftAdminClient,
    DraftApiError,
    OperationState,
)
from featurewatch.common.private_files import write_private
from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.kafka.messages import ClusterMetadataResponseV0, DescribeTopicResponseV0
from featurewatch.reference.zookeeper.machines.encoding import broker_path
from featurewatch.reference.zookeeper.machines.zookeeper import Delete
from featurewatch.reference.zookeeper.wire.api_keys import (
    KIP4_ALTER_TOPIC,
    KIP4_CLUSTER_METADATA,
    KIP4_CREATE_TOPIC,
    KIP4_DELETE_TOPIC,
    KIP4_DESCRIBE_TOPIC,
    KIP4_LIST_TOPICS,
    KIP4_PREFERRED_REPLICA_LEADER_ELECTION,
    KIP4_REASSIGN_PARTITION,
    KIP4_VERIFY_REASSIGN_PARTITION,
    ApiDialect,
)
from tests.admin.kip4.draft_nodes import WAIT_S, DraftNodes, until
from tests.kafka.login_front import Front
from tests.kafka.tls_nodes import secured
from tests.messages import by_order as messages
from tests.messages import changed
from tests.reference.zookeeper.machines.controller_rig import P0

pytestmark = pytest.mark.form("document")

METADATA, CREATE, LIST = KIP4_CLUSTER_METADATA, KIP4_CREATE_TOPIC, KIP4_LIST_TOPICS
T0, T1, T9 = (TopicPartition("t", number) for number in (0, 1, 9))
DONE, RUNS, FAILED = OperationState.COMPLETED, OperationState.IN_PROGRESS, OperationState.FAILED


@pytest.fixture
async def nodes() -> AsyncIterator[DraftNodes]:
    """Two nodes, 101 is the controller; the topic t has one partition on the brokers 1 and 2."""
    async with DraftNodes() as made:
        yield made


def moves(*targets: tuple[int, list[int]]) -> str:
    """A ManualAssignment for t."""
    entries = [{"topic": "t", "partition": number, "replicas": ids} for number, ids in targets]
    return json.dumps({"partitions": entries, "version": 1})


def elections(*numbers: int) -> str:
    """A PartitionsSerialized for t."""
    return json.dumps({"partitions": [{"topic": "t", "partition": number} for number in numbers]})


# -- construction, metadata ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({}, "bootstrap.servers names no broker"),
        ({"bootstrap.servers": " , "}, "bootstrap.servers names no broker"),
        ({"bootstrap.servers": "nowhere"}, "'nowhere' is not an address"),
        ({"bootstrap.servers": "a:1", "request.timeout.ms": "0"}, "request.timeout.ms=0 is not"),
        ({"bootstrap.servers": "a:1", "bootstrap.server": "b:1"}, "did you mean bootstrap.servers"),
        ({"bootstrap.servers": "a:1", "security.protocol": "TLS"}, "security.protocol"),
    ],
)
def test_a_client_needs_a_broker(properties: dict[str, str], reason: str) -> None:
    """Without one the constructor fails, before anything is connected (A-33)."""
    with pytest.raises(RequestError, match=reason):
        DraftAdminClient(properties)


async def test_a_client_connects_with_tls(tmp_path: Path) -> None:
    """The settings of the network client are Kafka's: TLS to the bootstrap node and to the
    controller that it names, and a client that does not trust them is refused (A-33)."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    async with DraftNodes(front=Front(secured(authority))) as nodes:
        client = await nodes.client(
            102,
            properties={"security.protocol": "SSL", "ssl.ca.location": str(tmp_path / "ca.pem")},
        )
        await client.create_topic("a", 1, 1)
        assert nodes.requests == [(102, METADATA), (101, CREATE)]
        stranger = await nodes.client(102, properties={"security.protocol": "SSL"})
        with pytest.raises(UnreachableError, match="is not trusted"):
            await stranger.update_cluster_metadata()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("uses_tls", [False, True])
async def test_a_client_logs_in_to_each_node(
    tmp_path: Path, mechanism: str, uses_tls: bool
) -> None:
    """SASL to the bootstrap node and to the controller that it names, over TLS or not; with another
    password, another mechanism or none, nothing reaches the nodes (A-33)."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    tls = secured(authority) if uses_tls else None
    login = {
        "security.protocol": "SASL_SSL" if uses_tls else "SASL_PLAINTEXT",
        "ssl.ca.location": str(tmp_path / "ca.pem"),
        "sasl.mechanism": mechanism,
        "sasl.username": "ops",
        "sasl.password": "secret",
    }
    async with DraftNodes(front=Front(tls, mechanism, "ops", "secret")) as nodes:
        client = await nodes.client(102, properties=login)
        await client.create_topic("a", 1, 1)
        assert nodes.requests == [(102, METADATA), (101, CREATE)]
        nodes.requests.clear()
        other = "PLAIN" if mechanism != "PLAIN" else "SCRAM-SHA-256"
        without = {**login, "security.protocol": login["security.protocol"].removeprefix("SASL_")}
        for properties, reason in (
            ({**login, "sasl.password": "x"}, "check sasl.username and sasl.password"),
            ({**login, "sasl.mechanism": other}, f"it offers: {mechanism}"),
            ({key: without[key] for key in ("security.protocol", "ssl.ca.location")}, "a login"),
        ):
            stranger = await nodes.client(102, properties=properties)
            with pytest.raises(UnreachableError, match=reason):
                await stranger.update_cluster_metadata()
        assert nodes.requests == []


def test_a_client_logs_in_by_a_properties_file(tmp_path: Path) -> None:
    """The file of Kafka's tools, with a login (A-33)."""
    file = tmp_path / "client.properties"
    write_private(
        file,
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
        "sasl.username=u\nsasl.password=p\nrequest.timeout.ms=700\n",
    )
    client = DraftAdminClient.connect("a:1", config=file)
    assert client._connections.bootstrap.security.mechanism == "SCRAM-SHA-512"
    assert client._timeout_s == 0.7
    with pytest.raises(RequestError, match="cannot be read"):
        DraftAdminClient.connect("a:1", config=tmp_path / "none")


async def test_the_controller_is_known_before_any_command_and_cached(nodes: DraftNodes) -> None:
    """One ClusterMetadata to any node, then commands to the controller alone (A-07, A-34)."""
    client = await nodes.client(102)
    assert client.cluster is None
    await client.create_topic("a", 1, 1)
    assert await client.list_topics() == ("a", "t")
    assert nodes.requests == [(102, METADATA), (101, CREATE), (101, LIST)]
    assert client.cluster is not None
    assert sorted(client.cluster.brokers) == [1, 2, 3, 101, 102]
    assert client.cluster.controller == client.cluster.brokers[101]


async def test_a_client_requests_metadata_again_and_never_guesses(nodes: DraftNodes) -> None:
    """While the controller is empty no command leaves; it does once there is one (A-06)."""
    nodes.controller, nodes.named = None, -1
    client = await nodes.client()
    listing = asyncio.create_task(client.list_topics())
    await until(lambda: len(nodes.requests) >= 4)
    assert {key for _, key in nodes.requests} == {METADATA}
    assert {node_id for node_id, _ in nodes.requests} == {101, 102}
    nodes.move_controller(102)
    assert await asyncio.wait_for(listing, WAIT_S) == ("t",)
    assert nodes.admin_requests() == [(102, LIST)]


async def test_metadata_with_an_error_names_nobody(nodes: DraftNodes) -> None:
    """Though a controller is in it: the client requests it again (A-06)."""
    codes = iter([21, 35])
    nodes.replies = lambda response: (
        changed(response, error_code=next(codes, 0))
        if isinstance(response, ClusterMetadataResponseV0)
        else response
    )
    client = await nodes.client()
    assert await client.list_topics() == ("t",)
    assert [key for _, key in nodes.requests] == [METADATA, METADATA, METADATA, LIST]


async def test_a_node_that_breaks_off_is_left_for_another(nodes: DraftNodes) -> None:
    """Metadata is requested of the next bootstrap node (A-34)."""
    dropped: list[int] = []

    def drop_first(request: Any) -> bool:
        dropped.append(request.key)
        return len(dropped) == 1

    nodes.drops = drop_first
    client = await nodes.client()
    assert await client.list_topics() == ("t",)
    assert [node_id for node_id, _ in nodes.requests[:2]] == [101, 102]


async def test_without_a_controller_a_call_ends_in_time(nodes: DraftNodes) -> None:
    """Nothing was sent but requests for metadata (A-06)."""
    nodes.controller, nodes.named = None, -1
    client = await nodes.client(timeout_ms=300)
    with pytest.raises(UnreachableError, match="no controller took the request in"):
        await client.delete_topic("t")
    assert nodes.admin_requests() == []


async def test_a_call_is_repeated_at_the_next_controller(nodes: DraftNodes) -> None:
    """After a not-controller answer the cache is refreshed, however long the metadata is old
    (A-34)."""
    client = await nodes.client()
    await client.list_topics()
    nodes.controller = 102
    creating = asyncio.create_task(client.create_topic("a", 1, 1))
    await until(lambda: nodes.requests.count((101, CREATE)) >= 2)
    nodes.named = 102
    await asyncio.wait_for(creating, WAIT_S)
    assert nodes.admin_requests()[-1] == (102, CREATE)
    assert nodes.admin_requests().count((102, CREATE)) == 1
    assert "a" in nodes.rig.context.topics


async def test_a_call_ends_in_time_while_every_node_refuses_it(nodes: DraftNodes) -> None:
    """A node that is named and answers 22 each time is not asked for ever (A-34)."""
    nodes.controller = None
    client = await nodes.client()
    client._monotonic = partial(next, count(step=4))
    with pytest.raises(UnreachableError, match=r"in 30 s: .*Target broker \(id=101\) is not"):
        await asyncio.wait_for(client.list_topics(), WAIT_S)
    assert nodes.admin_requests() == [(101, LIST)] * 3


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"retries": "1"}, r"retries=1.*Target broker"),
        ({"default.api.timeout.ms": "300"}, r"in 0.3 s: .*Target broker"),
    ],
)
async def test_a_call_is_repeated_as_the_properties_have_it(
    nodes: DraftNodes, properties: dict[str, str], reason: str
) -> None:
    """``retries`` and ``default.api.timeout.ms`` end it, as with Kafka's clients (A-33, A-34)."""
    nodes.controller = None
    client = await nodes.client(properties=properties)
    with pytest.raises(UnreachableError, match=reason):
        await client.list_topics()
    if "retries" in properties:
        assert nodes.admin_requests() == [(101, LIST)] * 2


async def test_one_request_may_take_less_than_a_call(nodes: DraftNodes) -> None:
    """After ``request.timeout.ms`` a change has an unknown outcome, though the call has time left;
    the server reads the client's name (A-33)."""
    client = await nodes.client(
        timeout_ms=300, properties={"default.api.timeout.ms": "9000", "client.id": "ops"}
    )
    assert client._connections.bootstrap.client_id == "ops"
    await client.update_cluster_metadata()
    nodes.silent = True
    with pytest.raises(OutcomeUnknownError, match=r"did not answer for 0\.3 s"):
        await client.create_topic("a", 1, 1)


async def test_an_old_cache_is_read_again(nodes: DraftNodes) -> None:
    """After ``metadata.max.age.ms`` (A-33, A-34)."""
    client = await nodes.client(properties={"metadata.max.age.ms": "60000"})
    now_s = 1000.0
    client._monotonic = lambda: now_s
    await client.list_topics()
    now_s += 60
    await client.list_topics()
    assert nodes.requests == [(101, METADATA), (101, LIST), (101, LIST)]
    now_s += 1
    await client.list_topics()
    assert nodes.requests[-2:] == [(101, METADATA), (101, LIST)]


async def test_a_node_without_the_draft_is_named() -> None:
    """At once; released Kafka is such a node."""
    async with DraftNodes(1, ApiDialect.RELEASED) as released:
        with pytest.raises(UnreachableError, match="does not serve the draft of KIP-4, as no rel"):
            await (await released.client()).list_topics()


# -- topics ----------------------------------------------------------------------------------------


def config(key: str, value: str) -> Any:
    """A setting of a description."""
    return DescribeTopicResponseV0.ConfigEntry(key=key, value=value)


def own_config(partitions: int, *configs: Any) -> Any:
    """The numbers and settings of a topic with two replicas of each partition."""
    return DescribeTopicResponseV0.TopicConfigDetails(
        partitions=partitions, replication_factor=2, configs=configs
    )


async def test_topics_are_created_in_both_forms(nodes: DraftNodes) -> None:
    """The cluster places the replicas, or the caller; both with settings (A-35)."""
    client = await nodes.client()
    await client.create_topic("a", 3, 2, {"retention.ms": "5"})
    await client.create_topic_with_assignment("b", "3:1,1:2", {"flush.ms": "1"})
    placed = await client.describe_topic("a")
    assert placed.config == own_config(3, config("retention.ms", "5"))
    assert [len(partition.replicas) for partition in placed.partitions] == [2, 2, 2]
    manual = await client.describe_topic("b")
    assert manual.config == own_config(2, config("flush.ms", "1"))
    assert [partition.replicas for partition in manual.partitions] == [(3, 1), (1, 2)]


async def test_topics_are_changed_listed_and_deleted(nodes: DraftNodes) -> None:
    """By calls of their names; topics that are marked for deletion have their own list (A-36,
    A-45)."""
    client = await nodes.client()
    await client.alter_topic("t", 2, "1:2,2:3", {"flush.ms": "1", "retention.ms": "2"})
    await client.alter_topic("t", added_configs={"segment.ms": "3"}, deleted_configs=["flush.ms"])
    topic = await client.describe_topic("t")
    assert topic.config.configs == (
        config("retention.ms", "2"),
        config("segment.ms", "3"),
    )
    assert topic.partitions[1] == DescribeTopicResponseV0.TopicPartitionDetails(
        partition_id=1, leader=2, replicas=(2, 3), isr=(2, 3)
    )
    await client.delete_topic("t")
    assert await client.list_topics() == ()
    assert await client.list_topics_marked_for_deletion() == ("t",)


async def test_each_call_raises_the_servers_reason(nodes: DraftNodes) -> None:
    """A code other than 0 is an API error, with the code and the text (A-36, A-44)."""
    client = await nodes.client()
    calls: dict[str, Any] = {
        "Topic 't' already exists.": client.create_topic("t", 1, 1),
        "'x' is not a list of replicas": client.create_topic_with_assignment("a", "x"),
        "Topic already has 1 partitions.": client.alter_topic("t", 1),
        "The topic 'x' does not exist.": client.delete_topic("x"),
        "The topic 'y' does not exist.": client.describe_topic("y"),
        "The string cannot be read: it is empty": client.verify_reassign_partitions(""),
        "t-9: The partition does not exist": client.reassign_partitions(moves((9, [1]))),
        "Partition t-9 does not exist": client.preferred_replica_leader_election(elections(9)),
    }
    for reason, call in calls.items():
        with pytest.raises(DraftApiError) as raised:
            await call
        assert str(raised.value).startswith(reason)
        assert raised.value.code == 21
    nodes.replies = lambda response: changed(response, error_code=35)
    with pytest.raises(DraftApiError, match="error 35"):
        await client.list_topics()
    with pytest.raises(DraftApiError, match="error 35"):
        await client.verify_preferred_replica_leader_election()


# -- reassignments ---------------------------------------------------------------------------------


async def test_a_reassignments_future_is_done_when_the_work_is(nodes: DraftNodes) -> None:
    """It repeats the verification until no partition is in progress, and has the response
    (A-25, A-37, A-38, A-46)."""
    client = await nodes.client()
    text = moves((0, [3, 1]))
    future = client.reassign_partitions(text)
    verified = (101, KIP4_VERIFY_REASSIGN_PARTITION)
    await until(lambda: nodes.requests.count(verified) >= 3)
    assert not future.done()
    assert await client.verify_reassign_partitions(text) == {T0: RUNS}
    nodes.rig.alter_isr(P0, 1, 2, 3)
    assert await asyncio.wait_for(future, WAIT_S) == messages.ReassignPartitionResponseV0(
        error_code=0, error_description=None
    )
    assert await client.verify_reassign_partitions(text) == {T0: DONE}
    assert await client.verify_reassign_partitions(moves((0, [1]), (9, [1]))) == {
        T0: FAILED,
        T9: FAILED,
    }


async def test_a_future_waits_for_the_last_partition(
    nodes: DraftNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that has failed does not end it while another is in progress, and the client pauses
    before it looks again (A-25, A-37)."""
    client = await nodes.client()
    looks = iter([{T0: FAILED, T1: RUNS}, {T0: FAILED, T1: RUNS}, {T0: FAILED, T1: DONE}])
    pauses: list[float] = []

    async def verify() -> dict[TopicPartition, OperationState]:
        return next(looks)

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr("featurewatch.admin.kip4.client.asyncio.sleep", pause)
    with pytest.raises(DraftApiError, match="the reassignment of t-0 has failed"):
        await client._wait(verify, "reassignment")
    assert next(looks, None) is None
    assert pauses == [0.01, 0.01]


async def test_a_reassignment_that_cannot_be_started_ends_its_future(nodes: DraftNodes) -> None:
    """With the server's reason; nothing is verified (A-37)."""
    client = await nodes.client()
    with pytest.raises(DraftApiError, match="t-9: The partition does not exist"):
        await client.reassign_partitions(moves((9, [1])))
    assert (101, KIP4_VERIFY_REASSIGN_PARTITION) not in nodes.requests


async def test_a_code_that_the_draft_does_not_have_is_no_end(nodes: DraftNodes) -> None:
    """Of a server that knows more states: nothing is taken for completed (A-28, A-38)."""
    client = await nodes.client()
    nodes.replies = lambda response: (
        changed(response, results=[changed(one, result_code=2) for one in response.results])
        if hasattr(response, "results")
        else response
    )
    assert await client.verify_reassign_partitions(moves((0, [1, 2]))) == {T0: RUNS}


async def test_a_reassignment_that_adds_replicas_runs_until_they_are_in_sync(
    nodes: DraftNodes,
) -> None:
    """The replicas of the description are those of the target from the start; it is in progress all
    the same (A-28, A-37)."""
    client = await nodes.client()
    text = moves((0, [1, 2, 3]))
    future = client.reassign_partitions(text)
    await until(lambda: P0 in nodes.rig.context.reassigning)
    (partition,) = (await client.describe_topic("t")).partitions
    assert partition.replicas == (1, 2, 3)
    assert await client.verify_reassign_partitions(text) == {T0: RUNS}
    assert not future.done()
    nodes.rig.alter_isr(P0, 1, 2, 3)
    await asyncio.wait_for(future, WAIT_S)
    assert await client.verify_reassign_partitions(text) == {T0: DONE}


async def test_a_replaced_reassignment_has_failed(nodes: DraftNodes) -> None:
    """Its future ends when the other one has completed (A-28, A-37)."""
    client = await nodes.client()
    replaced = client.reassign_partitions(moves((0, [3, 1])))
    await until(lambda: P0 in nodes.rig.context.reassigning)
    other = client.reassign_partitions(moves((0, [2])))
    await asyncio.wait_for(other, WAIT_S)
    with pytest.raises(DraftApiError, match="the reassignment of t-0 has failed"):
        await asyncio.wait_for(replaced, WAIT_S)


async def test_a_future_outlives_a_change_of_the_controller(nodes: DraftNodes) -> None:
    """Verification continues at the next one (A-25, A-34, A-37)."""
    client = await nodes.client()
    future = client.reassign_partitions(moves((0, [3, 1])))
    await until(lambda: (101, KIP4_VERIFY_REASSIGN_PARTITION) in nodes.requests)
    nodes.move_controller(102)
    await until(lambda: (102, KIP4_VERIFY_REASSIGN_PARTITION) in nodes.requests)
    nodes.rig.alter_isr(P0, 1, 2, 3)
    await asyncio.wait_for(future, WAIT_S)


# -- elections -------------------------------------------------------------------------------------


async def unbalance(nodes: DraftNodes, client: DraftAdminClient) -> None:
    """Broker 2 leads both partitions of t, whose heads are 1; 1 is only in the ISR of t-1."""
    await client.alter_topic("t", replica_assignment="1:2,1:2")
    nodes.rig.history.write(0, Delete(broker_path(1)))
    nodes.rig.settle()
    nodes.rig.register(1, 9001)
    nodes.rig.settle()
    nodes.rig.alter_isr(TopicPartition("t", 1), 2, 1)


async def test_an_elections_future_is_done_when_the_heads_lead(nodes: DraftNodes) -> None:
    """It has the response, and each partition has a state before and after (A-31, A-39, A-40,
    A-46, A-48)."""
    client = await nodes.client()
    await unbalance(nodes, client)
    verify = client.verify_preferred_replica_leader_election
    states = await verify(elections(0, 1, 9))
    assert states == {T0: FAILED, T1: RUNS, T9: FAILED}
    assert [int(state) for state in states.values()] == [-1, 0, -1]
    done = await asyncio.wait_for(client.preferred_replica_leader_election(elections(1)), WAIT_S)
    assert done == messages.PreferredReplicaLeaderElectionResponseV0(
        error_code=0, error_description=None
    )
    assert await verify(elections(1)) == {T1: DONE}
    assert await verify() == {T0: FAILED, T1: DONE}
    nodes.rig.alter_isr(P0, 2, 1)
    await asyncio.wait_for(client.preferred_replica_leader_election(), WAIT_S)
    assert await verify() == {T0: DONE, T1: DONE}


async def test_an_election_that_cannot_be_ends_its_future(nodes: DraftNodes) -> None:
    """The server refuses it, or the head of a replica list is not in the ISR (A-39)."""
    client = await nodes.client()
    with pytest.raises(DraftApiError, match="Partition t-9 does not exist"):
        await client.preferred_replica_leader_election(elections(9))
    await unbalance(nodes, client)
    election = client.preferred_replica_leader_election(elections(0, 1))
    with pytest.raises(DraftApiError, match="the election of t-0 has failed"):
        await asyncio.wait_for(election, WAIT_S)


async def test_the_election_of_a_dead_broker_ends_its_future(nodes: DraftNodes) -> None:
    """The head is the last member of the ISR, where it stays when its broker dies: the partition
    has no leader, the server elects none, and the election has failed (A-39, A-40)."""
    client = await nodes.client()
    nodes.rig.alter_isr(P0, 1)
    nodes.rig.history.write(0, Delete(broker_path(1)))
    nodes.rig.settle()
    (partition,) = (await client.describe_topic("t")).partitions
    assert (partition.leader, partition.isr) == (None, (1,))
    assert await client.verify_preferred_replica_leader_election() == {T0: FAILED}
    with pytest.raises(DraftApiError, match="the election of t-0 has failed"):
        await asyncio.wait_for(client.preferred_replica_leader_election(elections(0)), WAIT_S)


async def test_an_unreachable_controller_is_no_failed_election(nodes: DraftNodes) -> None:
    """The state is not known then, and the call says so (A-40)."""
    client = await nodes.client(timeout_ms=300)
    nodes.drops = lambda request: request.key == KIP4_DESCRIBE_TOPIC
    with pytest.raises(UnreachableError):
        await client.verify_preferred_replica_leader_election(elections(0))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"partitions":[]}', '{"partitions":[{}]}', "[" * 9999]
)
async def test_a_string_that_names_no_partitions_is_not_verified(
    nodes: DraftNodes, text: str
) -> None:
    """The client needs the partitions to describe their topics (A-40)."""
    client = await nodes.client()
    with pytest.raises(RequestError, match="no partitions: write"):
        await client.verify_preferred_replica_leader_election(text)
    assert nodes.requests == []


# -- one send --------------------------------------------------------------------------------------


async def test_one_send_pairs_requests_and_responses(nodes: DraftNodes) -> None:
    """Each request gets a response of the class that belongs to it (A-41)."""
    client = await nodes.client()
    requests: list[messages.DraftRequestV0[Any]] = [
        messages.CreateTopicRequestV0("a", 1, 1, None, ()),
        messages.AlterTopicRequestV0("a", 2, None, (), ()),
        messages.DescribeTopicRequestV0("a"),
        messages.ListTopicsRequestV0(),
        messages.DeleteTopicRequestV0("a"),
        messages.ReassignPartitionRequestV0(moves((0, [1, 2]))),
        messages.VerifyReassignPartitionRequestV0(moves((0, [1, 2]))),
        messages.PreferredReplicaLeaderElectionRequestV0(None),
    ]
    pairs = {
        type(request).__name__: type(await client._send(request)).__name__ for request in requests
    }
    assert pairs == {name: name.replace("Request", "Response") for name in pairs}
    assert len(pairs) == len(requests)


async def test_a_change_without_a_response_is_not_repeated(nodes: DraftNodes) -> None:
    """It may be applied; a request that only reads is sent again. The controller is looked up again
    (A-34)."""
    client = await nodes.client()
    nodes.drops = lambda request: request.key == CREATE
    with pytest.raises(OutcomeUnknownError, match="whether the change was applied is unknown"):
        await client.create_topic("a", 1, 1)
    assert nodes.requests.count((101, CREATE)) == 1
    assert client.cluster is None
    dropped: list[int] = []

    def drop_once(request: Any) -> bool:
        dropped.append(request.key)
        return dropped == [LIST]

    nodes.drops = drop_once
    await client.update_cluster_metadata()
    dropped.clear()
    assert await client.list_topics() == ("a", "t")


@pytest.mark.parametrize(
    ("key", "call"),
    [
        (KIP4_ALTER_TOPIC, lambda client: client.alter_topic("t", 2)),
        (KIP4_DELETE_TOPIC, lambda client: client.delete_topic("t")),
        (KIP4_REASSIGN_PARTITION, lambda client: client.reassign_partitions(moves((0, [3])))),
        (
            KIP4_PREFERRED_REPLICA_LEADER_ELECTION,
            lambda client: client.preferred_replica_leader_election(elections(0)),
        ),
    ],
)
async def test_no_change_is_sent_twice(
    nodes: DraftNodes, key: int, call: Callable[[DraftAdminClient], Awaitable[Any]]
) -> None:
    """A topic's change, a reassignment and an election without a response may be applied; the call
    or its future raises that, and verifies nothing (A-36, A-37, A-39)."""
    client = await nodes.client()
    nodes.drops = lambda request: request.key == key
    with pytest.raises(OutcomeUnknownError, match="whether the change was applied is unknown"):
        await asyncio.wait_for(call(client), WAIT_S)
    assert nodes.admin_requests() == [(101, key)]


async def test_a_description_that_is_missing_is_an_error(nodes: DraftNodes) -> None:
    """Of a server that breaks the draft."""
    client = await nodes.client()
    nodes.replies = lambda response: (
        changed(response, description=None) if hasattr(response, "description") else response
    )
    with pytest.raises(AdminError, match="sent no description of topic t"):
        await client.describe_topic("t")


async def test_closing_ends_the_futures(nodes: DraftNodes) -> None:
    """Nothing runs on; the reassignment itself does."""
    client = await nodes.client()
    future = client.reassign_partitions(moves((0, [3, 1])))
    await until(lambda: P0 in nodes.rig.context.reassigning)
    await client.close()
    assert future.cancelled()
    assert P0 in nodes.rig.context.reassigning
