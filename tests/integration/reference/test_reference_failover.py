"""Reference nodes as separate processes: killed, excluded, started again."""

import asyncio
import json
import time
from collections.abc import Iterator
from functools import partial

import pytest
from kazoo.client import KazooClient

from featurewatch.kafka.messages import (
    ApiVersionsRequestV4,
    MetadataRequestV1,
    UpdateFeaturesRequestV1,
)
from featurewatch.reference.zookeeper.cluster import ClusterSettings, ReferenceCluster
from featurewatch.reference.zookeeper.machines.dialect import LATER_DRAFT
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.node import NodeSettings
from featurewatch.reference.zookeeper.wire.api_keys import ApiDialect
from featurewatch.stack.wire.connection import BlockingConnection
from featurewatch.stack.zookeeper.ensemble import Ensemble
from featurewatch.streams.types import SupportedRange
from tests.conftest import MakeEnsemble
from tests.reference.zookeeper.draft_client import DraftClient
from tests.reference.zookeeper.process import ReferenceProcess, reference_process
from tests.waiting import eventually
from tests.zookeeper_sessions import expire

pytestmark = pytest.mark.stack

FAST = ("--session-timeout", "4")
WIDE, NARROW, NEW = ["f=1-5"], ["f=1-2"], ["f=4-6"]


@pytest.fixture
def connect(ensemble: Ensemble) -> str:
    """A chroot of one's own on the shared ensemble."""
    return f"{ensemble.connect_string}/failover-{time.time_ns()}"


@pytest.fixture
def client(connect: str) -> Iterator[KazooClient]:
    """Somebody who looks into ZooKeeper."""
    made = KazooClient(connect)
    made.start_async().wait(30)
    yield made
    made.stop()
    made.close()


def connected(address: str) -> BlockingConnection:
    """A connection to a node."""
    host, port = address.rsplit(":", 1)
    return BlockingConnection(host, int(port))


def controller_of(address: str) -> tuple[int, str] | None:
    """The controller and its address by this node; None: it does not know."""
    with connected(address) as connection:
        metadata = connection.request(MetadataRequestV1(topics=()))
    for broker in metadata.brokers:
        if broker.node_id == metadata.controller_id:
            return metadata.controller_id, f"{broker.host}:{broker.port}"
    return None


def update(address: str, level: int, *, downgrade: bool = False) -> ErrorCode:
    """Sets the level of f at the node there; the error, of the request or of the item."""
    form = UpdateFeaturesRequestV1
    item = form.FeatureUpdateKey(
        feature="f", max_version_level=level, upgrade_type=2 if downgrade else 1
    )
    with connected(address) as connection:
        answer = connection.request(form(feature_updates=(item,)))
    return ErrorCode(answer.error_code or answer.results[0].error_code)


def seen(address: str) -> tuple[dict[str, int], int]:
    """The finalized levels and the epoch by a node's own word."""
    with connected(address) as connection:
        answer = connection.request(
            ApiVersionsRequestV4(client_software_name="test", client_software_version="1")
        )
    levels = {
        finalized_feature.name: int(finalized_feature.max_version_level)
        for finalized_feature in answer.finalized_features
    }
    return levels, int(answer.finalized_features_epoch)


def test_a_killed_controller_has_a_successor_that_continues(
    connect: str, client: KazooClient
) -> None:
    """``kill -9`` of the controller: another node is elected with the next controller epoch, knows
    what was finalized, takes the next update, and no other node does."""
    with (
        reference_process(connect, "--node-id", "1", *FAST, features=WIDE) as first,
        reference_process(connect, "--node-id", "2", *FAST, features=WIDE) as second,
    ):
        first_port, two = first.ready()[1], second.ready()[2]
        third = ReferenceProcess(connect, "--node-id", "3", *FAST, "--features", *WIDE)
        try:
            three = third.ready()[3]
            before = controller_of(two)
            assert before is not None
            processes = {first_port: first, two: second, three: third}
            assert update(before[1], 2, downgrade=True) is ErrorCode.NONE
            epoch, _ = client.get("/controller_epoch")
            processes.pop(before[1]).kill()

            left = [*processes]

            def has_level_3(address: str) -> bool:
                return seen(address) == ({"f": 3}, 2)

            def succeeded() -> bool:
                now = [controller_of(address) for address in left]
                return now[0] == now[1] and now[0] is not None and now[0] != before

            assert eventually(succeeded)
            after = controller_of(left[0])
            assert after is not None
            assert int(client.get("/controller_epoch")[0]) == int(epoch) + 1
            assert eventually(lambda: update(after[1], 3) is ErrorCode.NONE)
            (other,) = [address for address in left if address != after[1]]
            assert update(other, 4) is ErrorCode.NOT_CONTROLLER
            # The finalized set has come to every node that is left.
            for address in left:
                assert eventually(partial(has_level_3, address))
        finally:
            third.close()


def test_an_incompatible_broker_never_registers(connect: str, client: KazooClient) -> None:
    """It reads the levels before it makes its own znode, ends at once with a code that is not 0,
    and says why; the cluster does not notice (F-62, F-63)."""
    with reference_process(connect, "--node-id", "1", features=WIDE) as first:
        first.ready()
        joined: list[str] = []
        client.ChildrenWatch("/brokers/ids", joined.extend)
        with reference_process(connect, "--node-id", "2", features=NARROW) as late:
            assert late.end() != 0
            (line,) = [line for line in late.output.splitlines() if "ended with" in line]
        assert line.startswith("node 2 ended with 1: ")
        assert "f" in line
        assert "5" in line
        client.create("/brokers/ids/9", b"{}", ephemeral=True)
        assert eventually(lambda: "9" in joined)
        assert "2" not in joined


def test_a_level_that_excludes_a_running_broker_ends_it(connect: str, client: KazooClient) -> None:
    """The watch fires, the broker reads, and ends with a code that is not 0; the others, which the
    level includes, stay and have the new content (F-14, F-64)."""
    with reference_process(connect, "--node-id", "1", features=WIDE) as first:
        # The first one finalizes what it supports; the other one alone would finalize level 6.
        first_port = first.ready()[1]
        with reference_process(connect, "--node-id", "2", features=["f=5-6"]) as second:
            second.ready()
            # By hand, past the controller, which would refuse it.
            content = {"version": 2, "status": 1, "features": {"f": {"max_version_level": 4}}}
            client.set("/feature", json.dumps(content).encode())
            assert second.end() == 1
            assert "node 2 ended with 1: " in second.output
            assert eventually(lambda: client.get_children("/brokers/ids") == ["1"])
            assert eventually(lambda: seen(first_port) == ({"f": 4}, 1))


def test_levels_survive_a_restart_of_all(connect: str, client: KazooClient) -> None:
    """Every node ends in order, and the levels and the epoch are there when they start again: a
    znode that exists is left as it is by a starting controller (F-70)."""
    with reference_process(connect, "--brokers", "2", features=WIDE) as process:
        first = process.ready()[1]
        where = controller_of(first)
        assert where is not None
        assert update(where[1], 2, downgrade=True) is ErrorCode.NONE
        assert process.stop() == 0
    assert client.get_children("/brokers/ids") == []
    assert client.exists("/controller") is None
    with reference_process(connect, "--brokers", "2", features=WIDE) as process:
        for address in process.ready().values():
            assert seen(address) == ({"f": 2}, 1)
        where = controller_of(address)
        assert where is not None
        assert update(where[1], 3) is ErrorCode.NONE


def test_a_taken_port_is_one_clear_line(connect: str) -> None:
    """The second who wants a port ends with a reason and no traceback."""
    with reference_process(connect, features=WIDE) as first:
        port = first.ready()[1].rsplit(":", 1)[1]
        with reference_process(connect, "--node-id", "2", "--port", port) as second:
            assert second.end() == 1
            assert "Traceback" not in second.output
            assert "address already in use" in second.output


async def test_what_a_broker_knows_it_answers_without_zookeeper(
    make_ensemble: MakeEnsemble,
) -> None:
    """With every server killed ApiVersions still tells ranges, levels and epoch, from memory and
    with no read and no call (F-56)."""
    servers = await asyncio.to_thread(make_ensemble)
    settings = NodeSettings(
        f"{servers.connect_string}/memory",
        1,
        {"f": SupportedRange(1, 5)},
        LATER_DRAFT,
        session_timeout_s=30.0,
    )
    cluster = ReferenceCluster(ClusterSettings(settings))
    await cluster.start()
    try:
        async with await DraftClient.at(cluster.nodes[0].address, ApiDialect.LATER_DRAFT) as client:
            before = await client.features()
            assert before == ({"f": SupportedRange(1, 5)}, {"f": 5}, 0)
            await asyncio.to_thread(servers.kill)
            assert await client.features() == before
    finally:
        await cluster.close()


async def test_a_node_whose_session_expired_comes_back(connect: str, client: KazooClient) -> None:
    """It registers in its new session, is elected again with the next controller epoch, and takes
    updates; what was finalized is as it was."""
    cluster = ReferenceCluster(
        ClusterSettings(NodeSettings(connect, 1, {"f": SupportedRange(1, 5)}))
    )
    await cluster.start()
    try:
        (node,) = cluster.nodes
        _, before = await asyncio.to_thread(client.get, "/brokers/ids/1")
        assert node.session.client_id is not None
        await asyncio.to_thread(expire, connect, node.session.client_id)

        def back() -> bool:
            stat = client.exists("/brokers/ids/1")
            return stat is not None and stat.ephemeralOwner != before.ephemeralOwner

        assert await asyncio.to_thread(eventually, back)
        await node.wait_until(lambda: node.is_controller)
        assert (await asyncio.to_thread(client.get, "/controller_epoch"))[0] == b"2"
        assert await asyncio.to_thread(seen, node.address) == ({"f": 5}, 0)
        update_down = partial(update, node.address, 2, downgrade=True)
        assert await asyncio.to_thread(update_down) is ErrorCode.NONE
    finally:
        await cluster.close()
