"""Three controllers of the reference as processes, with brokers that only register. No Java."""

import asyncio
import socket
import struct
import time
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import pytest

from featurewatch.admin import FeatureAdmin, FeatureUpdate
from featurewatch.admin.features.metadata import FeatureDialect
from featurewatch.controller.kraft import release_of
from featurewatch.kafka.address import Address, parse_addresses
from featurewatch.kafka.connection import open_connection
from featurewatch.kafka.messages import message_class
from featurewatch.kafka.node_errors import NodeError
from featurewatch.reference.kraft import controller_node
from featurewatch.reference.kraft.controller_node import ControllerNode
from featurewatch.reference.kraft.machines.controller.controller import MetadataController
from featurewatch.reference.kraft.machines.controller.requests import (
    BrokerRegistration,
    BrokerRegistrationResponse,
    CreatableTopic,
    CreateTopics,
    UnregisterBroker,
)
from featurewatch.reference.kraft.machines.controller.settings import ControllerSettings
from featurewatch.reference.kraft.machines.log import Log
from featurewatch.reference.kraft.machines.metadata.state import Feature, Listener
from featurewatch.reference.kraft.machines.protocol import Effect, Flush
from featurewatch.reference.kraft.machines.replicas import (
    Endpoint,
    ReplicaKey,
    VoterNode,
    VoterSet,
    text_of,
)
from featurewatch.reference.kraft.machines.voter import VoterSettings
from featurewatch.reference.kraft.storage import Identity, Storage, format_directory, open_storage
from featurewatch.reference.kraft.wire.controller_messages import controller_request_message
from featurewatch.reference.kraft.wire.envelope import ENVELOPE
from featurewatch.stack.errors import RefusedError
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.node import KafkaNode
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec, Roles
from featurewatch.stack.process.ports import LOOPBACK, Ports
from featurewatch.stack.wire.light_nodes import LightBroker, LightNodes
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel
from tests.integration.kraft.support import LogSink, running, settings_for, until
from tests.reference.kraft.forwarded import envelope, frame
from tests.reference.kraft.voter_process import VoterProcess, described

RELEASE, LEVEL, HIGHER = "4.3.1", "4.0-IV3", 27


@pytest.fixture
async def quorum(tmp_path: Path) -> AsyncIterator[Cluster]:
    """Three controllers."""
    nodes = [
        NodeSpec(number, RELEASE, Roles.CONTROLLER, is_reference=True) for number in (101, 102, 103)
    ]
    cluster = Cluster(ClusterSpec(nodes, LEVEL), tmp_path, temporary=True)
    try:
        await asyncio.to_thread(cluster.start)
        yield cluster
    finally:
        await asyncio.to_thread(cluster.close)


async def test_a_quorum_of_the_stack_with_its_voters_in_the_log(tmp_path: Path) -> None:
    """Two of three vote from the beginning; all say kraft.version 1, also after a restart.

    ApiVersions of a quorum with configured voters has no kraft.version, as Kafka's.
    """
    nodes = [
        NodeSpec(number, RELEASE, Roles.CONTROLLER, is_reference=True) for number in (101, 102, 103)
    ]
    spec = ClusterSpec(nodes, LEVEL, dynamic_voters=True, first_voters=(101, 102))
    cluster = Cluster(spec, tmp_path, temporary=True)
    try:
        await asyncio.to_thread(cluster.start)
        expected = {"metadata.version": 25, "kraft.version": 1}
        for node in cluster.nodes:
            await until_finalized(node, expected)
        directories = {}
        for node in cluster.nodes[:2]:
            meta = (node.data / "meta.properties").read_text().splitlines()
            directories[node.id] = next(
                line.partition("=")[2] for line in meta if line.startswith("directory.id=")
            )
        leader = await asyncio.to_thread(cluster.leader)
        found = await described(leader.addresses.controller or 0)
        assert found is not None
        assert {
            one.replica_id: text_of(one.replica_directory_id) for one in found.current_voters
        } == directories
        assert [one.replica_id for one in found.observers] == [103]
        await asyncio.to_thread(leader.kill)
        await asyncio.to_thread(leader.start)
        await until_finalized(leader, expected)
    finally:
        await asyncio.to_thread(cluster.close)


async def registered(cluster: Cluster, ids: range) -> LightNodes:
    """Connections by which brokers have registered and are unfenced."""
    light = LightNodes(cluster.controllers, cluster.cluster_id)
    refused = await asyncio.to_thread(light.register, [LightBroker(one, ranges()) for one in ids])
    assert refused == []
    return light


def ranges(newest: int | None = None) -> dict[str, tuple[int, int]]:
    """What brokers of the release support; with ``newest`` of metadata.version no higher level."""
    found = {
        str(name): (int(low), int(high))
        for name, (low, high) in release_of(RELEASE).ranges().items()
    }
    low, high = found["metadata.version"]
    return found | {"metadata.version": (low, newest or high)}


async def test_it_is_followed_like_any_cluster(quorum: Cluster) -> None:
    """What brokers and levels become is seen in the log, in order, through a leader's death."""
    sink = LogSink()
    async with running(settings_for(quorum), sink):
        await until(sink.following)
        light = await registered(quorum, range(1, 21))
        leader = await asyncio.to_thread(quorum.leader)
        leader.kill()
        async with FeatureAdmin.connect(controllers=quorum.controllers) as admin:
            result = await admin.update([FeatureUpdate(METADATA_VERSION, FeatureLevel(HIGHER))])
            assert result.refused == ()
        async with FeatureAdmin.connect(controllers=quorum.controllers) as admin:
            described = await admin.describe(controller=True)
        assert described.finalized[METADATA_VERSION] == HIGHER
        await asyncio.to_thread(light.heartbeat)
        excluded = LightBroker(99, ranges(HIGHER - 1))
        (refusal,) = await asyncio.to_thread(light.register, [excluded])
        assert (refusal.id, refusal.code) == (99, 35)
        await asyncio.to_thread(light.unregister, [20])
        with pytest.raises(RefusedError, match="is not currently registered"):
            await asyncio.to_thread(light.unregister, [20])
        await until(lambda: brokers_in(sink) == set(range(1, 21)))
        await until(lambda: levels_in(sink)[-1] == HIGHER)
        sink.assert_in_order()
        assert sink.gaps == []
        light.close()
    assert "Never run production on it" in leader.log.read_text()


def brokers_in(sink: LogSink) -> set[int]:
    """The ids of the brokers whose registrations were read."""
    return {record["data"]["brokerId"] for record in of_type(sink, "REGISTER_BROKER_RECORD")}


def levels_in(sink: LogSink) -> list[int]:
    """The levels of metadata.version as they were read."""
    found = of_type(sink, "FEATURE_LEVEL_RECORD")
    return [one["data"]["featureLevel"] for one in found if one["data"]["name"] == METADATA_VERSION]


def of_type(sink: LogSink, name: str) -> list[Any]:
    """The records of a type in commits."""
    return [
        record for commit in sink.commits for record in commit.records if record["type"] == name
    ]


# -- bad input -------------------------------------------------------------------------------------


async def test_bad_requests_end_a_connection_alone(quorum: Cluster) -> None:
    """One line of the log, or Kafka's error; the controllers run on."""
    leader = await asyncio.to_thread(quorum.leader)
    follower = next(node for node in quorum.nodes if node.id != leader.id)
    registration = controller_request_message(
        BrokerRegistration(
            5,
            "of-another-cluster",
            text_of(uuid4()),
            (Listener("PLAINTEXT", LOOPBACK, 1),),
            (Feature("metadata.version", 7, 30),),
            log_dirs=(text_of(uuid4()),),
        ),
        4,
    )
    assert (await asked(leader, registration)).error_code == 104
    create = controller_request_message(CreateTopics((CreatableTopic("a", 1, 1),)), 7)
    assert (await asked(follower, create)).topics[0].error_code == 41
    assert (await asked(follower, envelope(frame(create)))).error_code == 41
    assert (await asked(leader, envelope(frame(registration)))).error_code == 42
    assert (await asked(leader, envelope(frame(create), principal=b""))).error_code == 97
    for bad in (
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack(">i", 1 << 30),
        struct.pack(">i", 12) + struct.pack(">hhii", 62, 9, 1, -1),
        struct.pack(">i", 12) + struct.pack(">hhii", ENVELOPE, 0, 1, -1),
        struct.pack(">i", 12) + struct.pack(">hhii", 30_000, 0, 1, -1),
    ):
        assert await asyncio.to_thread(closed_after, leader, bad)
    light = await registered(quorum, range(1, 3))
    light.close()
    log = leader.log.read_text()
    assert log.count("closing the connection of") == 5
    assert "Traceback" not in log


async def asked(node: KafkaNode, request: Any) -> Any:
    """The response of a node to a request."""
    (address,) = parse_addresses(node.controller or "")
    connection = await open_connection(address, timeout_s=30)
    try:
        return await connection.request(request, 30)
    finally:
        await connection.close()


def closed_after(node: KafkaNode, data: bytes) -> bool:
    """Whether a node closes a connection over which these bytes come."""
    with socket.create_connection((LOOPBACK, node.addresses.controller or 0), 30) as connection:
        connection.sendall(data)
        return connection.recv(1) == b""


# -- requests that wait ----------------------------------------------------------------------------


class SlowDisk(Storage):
    """A disk that takes this long to make a log durable."""

    delay_s = 0.0

    def perform(self, effect: Effect, log: Log) -> bool:
        """See `Storage.perform`."""
        if isinstance(effect, Flush):
            time.sleep(self.delay_s)
        return super().perform(effect, log)


@pytest.fixture
async def alone(tmp_path: Path) -> AsyncIterator[tuple[ControllerNode, SlowDisk]]:
    """The only controller of a cluster, in this process, and its disk."""
    ports = Ports()
    endpoint = Endpoint("CONTROLLER", LOOPBACK, ports.reserve())
    identity = Identity("c", 1, uuid4())
    format_directory(tmp_path / "data", identity)
    voters = VoterSet.of([VoterNode(ReplicaKey(1), (endpoint,))])
    storage = open_storage(tmp_path / "data", voters)
    storage.__class__ = SlowDisk
    assert isinstance(storage, SlowDisk)
    settings = ControllerSettings(1, "c", text_of(uuid4()), (Listener(*endpoint),), (1,))
    node = ControllerNode(
        storage,
        VoterSettings(ReplicaKey(1, identity.directory_id), "c", (endpoint,)),
        MetadataController(settings, Random(1)),
    )
    await node.start()
    try:
        await until(lambda: node.features().finalized)
        yield node, storage
    finally:
        await node.close()
        ports.release()


def registration() -> BrokerRegistration:
    """A broker's request, whose answer follows a commit."""
    return BrokerRegistration(
        1,
        "c",
        text_of(uuid4()),
        (Listener("PLAINTEXT", LOOPBACK, 1),),
        tuple(Feature(name, low, high) for name, (low, high) in ranges().items()),
        log_dirs=(text_of(uuid4()),),
    )


async def test_an_answer_waits_for_the_commit(
    alone: tuple[ControllerNode, SlowDisk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Longer than the limit it does not wait, though what it asked for happens later."""
    node, disk = alone
    monkeypatch.setattr(controller_node, "MAX_WAIT_S", 0.2)
    disk.delay_s = 1.0
    assert await node.answer(registration(), 4) == BrokerRegistrationResponse(7)
    disk.delay_s = 0.0
    await until(lambda: 1 in node.controller.committed.brokers)


async def test_no_more_requests_wait_than_the_limit(
    alone: tuple[ControllerNode, SlowDisk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A further one is told at once that it timed out; the first is answered."""
    node, disk = alone
    monkeypatch.setattr(controller_node, "MAX_WAITING", 1)
    disk.delay_s = 0.3
    first = asyncio.create_task(node.answer(registration(), 4))
    await asyncio.sleep(0)
    second = await node.answer(UnregisterBroker(7), 0)
    assert getattr(second, "error_code", None) == 7
    found = await first
    assert isinstance(found, BrokerRegistrationResponse)
    assert found.error_code == 0


# -- the form of KIP-778 ---------------------------------------------------------------------------


@pytest.mark.form("document")
async def test_the_form_of_kip_778(tmp_path: Path) -> None:
    """A new cluster begins at level 1 and speaks the document's requests (M-08), which our client
    sends through the controllers' listeners.

    The leader asks the others what they support, because none registers at that level. A dry run
    changes nothing, and a finalized level has no minimum in ApiVersions.
    """
    ports = Ports()
    addresses = [f"{LOOPBACK}:{ports.reserve()}" for _ in range(3)]
    voters = [f"{number}@{address}" for number, address in enumerate(addresses, start=1)]
    options = ("--controller", "3.9", "--form", "kip-778")
    processes = [
        VoterProcess(number, voters, tmp_path / str(number), *options, orders=False)
        for number in (1, 2, 3)
    ]
    try:
        async with asyncio.timeout(60):
            while not any([await is_accepted(address) for address in addresses]):
                await asyncio.sleep(0.05)
        for address in addresses:
            await until_levels(address, {METADATA_VERSION: 1})
        # No controller is registered below level 15, so the one that leads has to be found.
        for level in (9, 21):
            update = FeatureUpdate(METADATA_VERSION, FeatureLevel(level))
            async with FeatureAdmin.connect(
                controllers=",".join(addresses), dialect=FeatureDialect.KIP_778
            ) as admin:
                result = await admin.update([update])
            assert result.refused == ()
            for address in addresses:
                await until_levels(address, {METADATA_VERSION: level})
    finally:
        for process in processes:
            process.kill()
        ports.release()


async def is_accepted(address: str) -> bool:
    """Whether a controller leads, and would accept level 21 as KIP-778 requests it."""
    form = message_class("Kip778UpdateFeaturesRequest", 1)
    update = form.FeatureUpdateKey(feature=METADATA_VERSION, max_version_level=21)
    (node,) = parse_addresses(address)
    try:
        connection = await open_connection(node, timeout_s=30, is_kip_778=True)
    except NodeError:
        return False
    request = form(timeout_ms=30_000, feature_updates=(update,), dry_run=True)
    response = await connection.request(request, 30)
    await connection.close()
    return response.error_code == 0 and all(one.error_code == 0 for one in response.results)


async def until_finalized(node: KafkaNode, expected: dict[str, int]) -> None:
    """Waits until the levels of a controller's ApiVersions include these."""
    found: dict[str, int] = {}
    async with asyncio.timeout(60):
        while not expected.items() <= found.items():
            connection = await open_connection(
                Address(LOOPBACK, node.addresses.controller or 0), timeout_s=30
            )
            response: Any = connection.last_api_versions
            await connection.close()
            found = {one.name: one.max_version_level for one in response.finalized_features}


async def until_levels(address: str, expected: dict[str, int]) -> None:
    """Waits until a controller finalizes these levels, as KIP-778's ApiVersions has them."""
    (node,) = parse_addresses(address)
    found: dict[str, int] = {}
    async with asyncio.timeout(60):
        while found != expected:
            connection = await open_connection(node, timeout_s=30, is_kip_778=True)
            response: Any = connection.last_api_versions
            await connection.close()
            found = {one.name: one.max_version_level for one in response.finalized_features}
    assert not hasattr(response.finalized_features[0], "min_version_level")
