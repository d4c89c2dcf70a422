"""The clients of `featurewatch.admin` on a node that serves released Kafka's requests.

The node is the reference controller on a real socket; the requests are those of Kafka's schemas.
"""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from featurewatch.admin import (
    ElectionAdmin,
    ElectionStatus,
    ElectionType,
    KafkaApiError,
    OutcomeUnknownError,
    ReassignmentAdmin,
    ReassignmentStatus,
    TopicAdmin,
    TopicPartition,
    UnreachableError,
    UpdateRefusedError,
)
from featurewatch.reference.zookeeper.machines.encoding import broker_path
from featurewatch.reference.zookeeper.machines.zookeeper import Delete
from tests.cli.released_node import ReleasedNode
from tests.reference.zookeeper.machines.controller_rig import P0

pytestmark = pytest.mark.form("released")

CREATE, DELETE, ALTER_CONFIGS, REASSIGN, LIST_REASSIGNMENTS = 19, 20, 44, 45, 46
WAIT_S = 30.0
P9 = TopicPartition("t", 9)


@pytest.fixture
def node() -> Iterator[ReleasedNode]:
    """A node that has the topic t, whose partition 0 has the replicas 1 and 2."""
    with ReleasedNode().served() as served:
        yield served


async def until(condition: Callable[[], bool]) -> None:
    """Returns when a condition holds."""
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0.01)


async def test_a_topic_is_created_with_its_settings(node: ReleasedNode) -> None:
    """By counts and by an assignment (A-35); its description has them, and that of a
    topic that does not exist is Kafka's error (A-36 as released)."""
    async with TopicAdmin.connect(node.address) as client:
        await client.create_topic("a", 2, 1, {"flush.ms": "5"})
        await client.create_topic("b", configs={"flush.ms": "6"}, assignment=[(3, 1), (1, 2)])
        sent = [
            [(item.name, item.value) for item in request.topics[0].configs]
            for request in node.bodies(CREATE)
        ]
        assert sent == [[("flush.ms", "5")], [("flush.ms", "6")]]
        described = await client.describe_topic("b")
        assert [partition.replicas for partition in described.partitions] == [(3, 1), (1, 2)]
        assert await client.list_topics() == ("a", "b", "t")
        with pytest.raises(KafkaApiError) as refused:
            await client.describe_topic("x")
        assert refused.value.name == "UNKNOWN_TOPIC_OR_PARTITION"


async def test_a_topic_is_altered_in_all_its_parts(node: ReleasedNode) -> None:
    """Settings are added and deleted, and partitions added with their replicas; if the settings are
    refused, no partition is added (A-36 as released)."""
    async with TopicAdmin.connect(node.address) as client:
        await client.alter_topic("t", added={"flush.ms": "5", "retention.ms": "6"})
        await client.alter_topic(
            "t", 2, [(2, 3)], added={"flush.ms": "7"}, deleted=["retention.ms"]
        )
        (resource,) = node.bodies(ALTER_CONFIGS)[-1].resources
        changes = {(item.name, item.config_operation, item.value) for item in resource.configs}
        assert changes == {("flush.ms", 0, "7"), ("retention.ms", 1, None)}
        assert node.rig.context.assignment(TopicPartition("t", 1)).replicas == (2, 3)
        with pytest.raises(KafkaApiError, match="nothing"):
            await client.alter_topic("t", 3, added={"nothing": "1"})
        assert len((await client.describe_topic("t")).partitions) == 2


async def test_a_call_is_repeated_as_often_as_the_properties_say(node: ReleasedNode) -> None:
    """``retries`` counts what is sent again where the controller has moved (A-33, A-34)."""
    node.refusals = 2
    async with TopicAdmin.connect(node.address, config={"retries": "1"}) as client:
        with pytest.raises(UnreachableError, match=r"\(retries=1\): .* is not the controller any"):
            await client.delete_topic("t")
    assert node.sent_keys() == [DELETE, DELETE]
    node.refusals = 1
    config = {"retries": "1", "retry.backoff.ms": "0"}
    async with TopicAdmin.connect(node.address, config=config) as client:
        await client.delete_topic("t")
    assert "t" in node.rig.context.queued_deletions


async def test_one_request_may_take_less_than_a_call(node: ReleasedNode) -> None:
    """``request.timeout.ms`` ends it, and the server is given less than that (A-33)."""
    config = {"request.timeout.ms": "200", "default.api.timeout.ms": "60000"}
    async with TopicAdmin.connect(node.address, config=config) as client:
        node.silent = True
        with pytest.raises(OutcomeUnknownError, match=r"did not answer for 0\.\d+ s"):
            await client.delete_topic("t")
    (request,) = node.bodies(DELETE)
    assert 100 < request.timeout_ms <= 180


async def test_a_node_is_given_the_clients_name() -> None:
    """``client.id`` is in the header of each request, for the logs and quotas of brokers (A-33)."""
    frames: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = int.from_bytes(await reader.readexactly(4))
        frames.append(await reader.readexactly(size))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for config in ({"client.id": "ops"}, {}):
            async with TopicAdmin.connect(address, config=config) as client:
                with pytest.raises(UnreachableError):
                    await client.list_topics()
    first, *_, last = frames
    assert first[8:13] == b"\0\x03ops"
    assert last[8:22] == b"\0\x0cfeaturewatch"


async def test_a_refused_deletion_is_raised(node: ReleasedNode) -> None:
    """A topic that does not exist; one that does is deleted (A-36 as released)."""
    async with TopicAdmin.connect(node.address) as client:
        with pytest.raises(KafkaApiError) as refused:
            await client.delete_topic("x")
        assert refused.value.name == "UNKNOWN_TOPIC_OR_PARTITION"
        await client.delete_topic("t")
    assert "t" in node.rig.context.queued_deletions


async def test_a_reassignment_returns_when_the_replicas_have_moved(node: ReleasedNode) -> None:
    """It waits while the controller lists it (A-37 as released, A-38 as released); the order of the
    replicas counts."""
    targets = {P0: (3, 1)}
    async with ReassignmentAdmin.connect(node.address) as client:
        moving = asyncio.create_task(client.reassign(targets, max_wait_s=WAIT_S))
        await until(lambda: len(node.bodies(LIST_REASSIGNMENTS)) >= 2)
        assert not moving.done()
        assert await client.verify(targets) == {P0: ReassignmentStatus.IN_PROGRESS}
        node.rig.alter_isr(P0, 1, 2, 3)
        assert await moving == {P0: ReassignmentStatus.COMPLETED}
        assert await client.verify({P0: (1, 3), P9: (1,)}) == {
            P0: ReassignmentStatus.FAILED,
            P9: ReassignmentStatus.FAILED,
        }


async def test_a_reassignment_that_is_refused_or_takes_too_long_is_an_error(
    node: ReleasedNode,
) -> None:
    """A refusal is raised and nothing waits; a wait that ends leaves the reassignment running
    (A-37 as released)."""
    async with ReassignmentAdmin.connect(node.address) as client:
        with pytest.raises(UpdateRefusedError, match="t-9: The partition does not exist"):
            await client.reassign({P9: (1,)}, max_wait_s=WAIT_S)
        assert node.bodies(LIST_REASSIGNMENTS) == []
        with pytest.raises(UnreachableError, match="still in progress"):
            await client.reassign({P0: (3,)}, max_wait_s=0.1)
    assert P0 in node.rig.context.reassigning


async def test_an_election_that_cannot_be_has_failed(node: ReleasedNode) -> None:
    """The head is dead and the last member of the ISR: it is refused, and has failed at once; it
    is completed when the broker has started again (A-39 as released, A-40)."""
    node.rig.alter_isr(P0, 1)
    node.rig.history.write(0, Delete(broker_path(1)))
    node.rig.settle()
    async with ElectionAdmin.connect(node.address) as client:
        results = await client.elect(ElectionType.PREFERRED, [P0])
        assert results[P0] is not None
        statuses = await client.wait([P0, P9], max_wait_s=WAIT_S)
        assert statuses == {P0: ElectionStatus.FAILED, P9: ElectionStatus.FAILED}
        node.rig.register(1, 9001)
        node.rig.settle()
        assert await client.verify([P0]) == {P0: ElectionStatus.COMPLETED}
