"""Light brokers and a controller over sockets: they register, follow the level, and end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from uuid import uuid4

import pytest

from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import Connection, open_connection
from featurewatch.reference.kraft.controller_node import ControllerNode
from featurewatch.reference.kraft.light_brokers import LightBrokerHost, light_settings
from featurewatch.reference.kraft.machines.broker.states import BrokerState
from featurewatch.reference.kraft.machines.controller.controller import (
    ControllerSettings,
    MetadataController,
)
from featurewatch.reference.kraft.machines.controller.requests import FeatureUpdate, UpdateFeatures
from featurewatch.reference.kraft.machines.controller.settings import Form
from featurewatch.reference.kraft.machines.metadata.snapshots import snapshot_bytes
from featurewatch.reference.kraft.machines.metadata.state import Listener
from featurewatch.reference.kraft.machines.replicas import (
    Endpoint,
    ReplicaKey,
    VoterNode,
    VoterSet,
    text_of,
)
from featurewatch.reference.kraft.machines.voter import VoterSettings
from featurewatch.reference.kraft.storage import Identity, format_directory, open_storage
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel
from tests.processes import free_port
from tests.waiting import DEADLINE_S, until_async

CLUSTER = "AAAAAAAAAAAAAAAAAAAAAQ"
BROKERS = 20


@contextlib.asynccontextmanager
async def _controller(
    directory: Path, form: Form = Form.KIP_778
) -> AsyncIterator[tuple[ControllerNode, VoterSet]]:
    """The only controller; as released its voters are in the log, which is deleted very soon."""
    place = Endpoint("CONTROLLER", "127.0.0.1", free_port())
    key = ReplicaKey(1, uuid4())
    voters, static = (VoterSet.of([VoterNode(one, (place,))]) for one in (key, ReplicaKey(1)))
    first = snapshot_bytes((), 0, 0, voters) if form is Form.RELEASED else None
    assert key.directory is not None
    format_directory(directory, Identity(CLUSTER, 1, key.directory), first)
    configured = static if first is None else VoterSet(())
    storage = open_storage(directory, configured, cluster_id=CLUSTER, node_id=1)
    settings = ControllerSettings(
        node_id=1,
        cluster_id=CLUSTER,
        incarnation_id=text_of(uuid4()),
        listeners=(Listener(*place),),
        quorum=configured.ids,
        form=form,
        bootstrap={METADATA_VERSION: FeatureLevel(19)},
        snapshot_bytes=1,
        retained_bytes=1,
    )
    raft = VoterSettings(key, CLUSTER, (place,))
    node = ControllerNode(storage, raft, MetadataController(settings, Random(1)))
    await node.start()
    try:
        yield node, static
    finally:
        await node.close()


@contextlib.asynccontextmanager
async def _host(
    voters: VoterSet, first_id: int, form: Form = Form.KIP_778
) -> AsyncIterator[LightBrokerHost]:
    """A process of two brokers, which are unfenced."""
    host = LightBrokerHost(voters, light_settings(first_id, 2, CLUSTER, form, "4.3"))
    await host.start()
    try:
        await until_async(lambda: host.running == 2)
        yield host
    finally:
        await host.close()


async def _client(host: LightBrokerHost) -> Connection:
    place = Address(*host.address)
    return await open_connection(place, timeout_s=DEADLINE_S, is_kip_778=True)


@pytest.mark.form("document")
async def test_light_brokers_follow_a_level_and_shut_down(tmp_path: Path) -> None:
    """They register and are unfenced; a new level closes the connections of their clients, who then
    see versions of that level (M-50); a shutdown is a controlled one."""
    async with asyncio.timeout(DEADLINE_S), _controller(tmp_path) as (node, voters):
        changed = asyncio.Event()
        brokers = light_settings(1001, BROKERS, CLUSTER, Form.KIP_778, "4.3")
        host = LightBrokerHost(voters, brokers, watcher=lambda _: changed.set())

        async def until(condition: object) -> None:
            while not condition():  # type: ignore[operator]
                changed.clear()
                await changed.wait()

        await host.start()
        await until(lambda: host.running == BROKERS)
        assert {*host.machine.states.values()} == {BrokerState.RUNNING}
        client = await _client(host)
        assert client.api_versions[1] == (4, 16)
        update = FeatureUpdate(METADATA_VERSION, 21, upgrade_type=0)
        answer = await node.answer(UpdateFeatures((update,)), 1)
        assert answer.error_code == 0  # type: ignore[union-attr]
        await until(lambda: host.machine.image and host.machine.image.level == 21)
        while not client.closed:
            await asyncio.sleep(0)
            with contextlib.suppress(Exception):
                await client.request_api_versions(DEADLINE_S)
        again = await _client(host)
        assert again.api_versions[1] == (4, 17)
        await again.close()
        registered = node.controller.committed.brokers.values()
        assert not any(one.fenced for one in registered)
        await host.close()
        assert len(host.machine.ended) == BROKERS
        assert not any(one.is_failure for one in host.machine.ended.values())
        assert host.machine.states == {}


@pytest.mark.form("document")
async def test_brokers_of_two_processes_renegotiate_over_sockets(tmp_path: Path) -> None:
    """At a new level each closes the connections of the other, which connects and asks for the
    versions again, without a restart (M-48); a broker that ends is not asked any more."""
    async with (
        asyncio.timeout(DEADLINE_S),
        _controller(tmp_path) as (node, voters),
        _host(voters, 1001) as first,
    ):
        async with _host(voters, 1003) as second:
            sides = ((first, 1003, 1004), (second, 1001, 1002))

            def use(fetch: int) -> bool:
                return all(
                    host.machine.connections.usable_with(peer).get("Fetch") == (4, fetch)
                    for host, *peers in sides
                    for peer in peers
                )

            await until_async(lambda: use(16))
            before = [host._links._links[peer].connection for host, peer, _ in sides]
            update = FeatureUpdate(METADATA_VERSION, 21, upgrade_type=0)
            answer = await node.answer(UpdateFeatures((update,)), 1)
            assert answer.error_code == 0  # type: ignore[union-attr]
            await until_async(lambda: use(17))
            assert all(connection.closed for connection in before)
            assert [host.running for host, *_ in sides] == [2, 2]
        await until_async(lambda: first.machine.connections.usable_with(1003) == {})


@pytest.mark.form("released")
async def test_light_brokers_list_the_version_of_the_quorum(tmp_path: Path) -> None:
    """Kafka's brokers list kraft.version from level 1 on, as their replica of the log has it: also
    where it began with a snapshot."""
    async with (
        asyncio.timeout(DEADLINE_S),
        _controller(tmp_path, Form.RELEASED) as (node, voters),
        _host(voters, 1001, Form.RELEASED) as early,
    ):
        await until_async(lambda: node.raft.voter.log.start.offset > 0)
        async with _host(voters, 1003, Form.RELEASED) as late:
            for host in (early, late):
                assert await _finalized(host) == {"metadata.version": 19, "kraft.version": 1}


async def _finalized(host: LightBrokerHost) -> dict[str, int]:
    """The finalized levels that a client sees."""
    connection = await open_connection(Address(*host.address), timeout_s=DEADLINE_S)
    response = await connection.request_api_versions(DEADLINE_S)
    await connection.close()
    features = getattr(response, "finalized_features", ())
    return {one.name: one.max_version_level for one in features}
