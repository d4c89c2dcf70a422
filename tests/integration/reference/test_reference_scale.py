"""A reference cluster of ten thousand brokers, in one process, on one ZooKeeper server."""

import asyncio

import pytest
from kazoo.client import KazooClient

from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import Connection, open_connection
from featurewatch.kafka.messages import MetadataRequestV1, UpdateFeaturesRequestV1
from featurewatch.reference.zookeeper.cluster import ClusterSettings, ReferenceCluster
from featurewatch.reference.zookeeper.machines.dialect import RELEASED
from featurewatch.reference.zookeeper.machines.encoding import encode_features
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.node import NodeSettings
from featurewatch.streams.types import SupportedRange
from tests.conftest import MakeEnsemble
from tests.reference.zookeeper.controllers import wait_controller

pytestmark = pytest.mark.stack

BROKERS = 10_000
OLD, NEW = {"f": SupportedRange(1, 2)}, {"f": SupportedRange(1, 3)}


@pytest.mark.form("released")
async def test_ten_thousand_brokers(make_ensemble: MakeEnsemble) -> None:
    """All of them are in ZooKeeper and in Metadata; an update is checked against the range of each
    one; when the cluster ends, nothing of it stays (F-33 as released)."""
    servers = await asyncio.to_thread(make_ensemble)
    connect = f"{servers.connect_string}/large"
    client = KazooClient(connect)
    await asyncio.to_thread(client.start_async().wait, 30)
    low = encode_features(RELEASED, {"f": 1})
    await asyncio.to_thread(client.create, RELEASED.path, low, makepath=True)
    settings = ClusterSettings(
        NodeSettings(connect, 1, NEW, session_timeout_s=30.0),
        BROKERS,
        light_ranges=lambda node_id: OLD if node_id == BROKERS else NEW,
    )
    cluster = ReferenceCluster(settings)
    try:
        await cluster.start(120.0)
        everybody = {*range(1, BROKERS + 1)}
        names = await asyncio.to_thread(client.get_children, "/brokers/ids")
        assert {int(name) for name in names} == everybody
        node = await wait_controller(cluster)
        async with asyncio.timeout(60):
            while node.live_brokers != everybody:
                await asyncio.sleep(0.1)
        connection = await open_connection(Address.parse(node.address))
        metadata = await connection.request(MetadataRequestV1(topics=()), 30.0)
        assert {broker.node_id for broker in metadata.brokers} == everybody
        assert {f"{broker.host}:{broker.port}" for broker in metadata.brokers} == {
            full_node.address for full_node in cluster.nodes
        }
        assert await upgrade(connection, 3) == (
            ErrorCode.INVALID_REQUEST,
            "Could not apply finalized feature update because brokers were found to have "
            "incompatible versions for the feature.",
        )
        assert (await upgrade(connection, 2))[0] == ErrorCode.NONE
        await connection.close()
    finally:
        await cluster.close()
    assert await asyncio.to_thread(client.get_children, "/brokers/ids") == []
    await asyncio.to_thread(client.stop)


async def upgrade(connection: Connection, level: int) -> tuple[int, str | None]:
    """Raises f to a level; what came of it."""
    item = UpdateFeaturesRequestV1.FeatureUpdateKey(feature="f", max_version_level=level)
    answer = await connection.request(UpdateFeaturesRequestV1(feature_updates=(item,)), 30.0)
    assert answer.error_code == 0
    (result,) = answer.results
    return result.error_code, result.error_message
