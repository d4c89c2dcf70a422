"""Which versions of requests a broker of a mixed cluster offers, and when a client sees that."""

import asyncio
from collections.abc import Callable

import pytest

from featurewatch.admin.features.client import FeatureUpdate, update_features
from featurewatch.kafka.address import parse_addresses
from featurewatch.kafka.connection import Connection, open_connection
from featurewatch.kafka.node_errors import OtherNodeError
from featurewatch.kafka.security import PLAINTEXT
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.ids import random_id
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec, Roles
from featurewatch.streams.apiversions.connections import ConnectionPool
from featurewatch.streams.apiversions.settings import ApiVersionsSettings
from featurewatch.streams.types import (
    METADATA_VERSION,
    ClusterId,
    FeatureLevel,
    NodeId,
    NodeKey,
    Role,
)

FORWARDED = {19, 20, 30, 31, 37, 43, 44, 45, 57}
"""Creating and deleting topics and ACLs, partitions, elections, configurations, reassignments and
features: requests that a broker passes on to the active controller."""


async def connected(servers: str) -> Connection:
    """An open connection to the one server of a list."""
    (address,) = parse_addresses(servers)
    return await open_connection(address, PLAINTEXT, timeout_s=60)


@pytest.mark.form("released")
@pytest.mark.stack
async def test_forwarded_requests_have_versions_of_both(
    make_cluster: Callable[[ClusterSpec], Cluster],
) -> None:
    """A broker offers the versions of forwarded requests that the active controller has too, once
    it has forwarded one (M-51). Connections stay open then and tell of it when they are asked: the
    client on one continues with its first answer, as released Kafka lets it (M-50 as released).
    """
    nodes = [NodeSpec(1, "4.3.0", Roles.CONTROLLER), NodeSpec(11, "3.9.1", Roles.BROKER)]
    cluster = await asyncio.to_thread(make_cluster, ClusterSpec(nodes, "3.7-IV4"))
    controller = await connected(cluster.controllers)
    kept = await connected(cluster.bootstrap_servers)
    own = dict(kept.api_versions)
    updates = (FeatureUpdate(METADATA_VERSION, FeatureLevel(20)),)
    await update_features(kept.address, updates, dry_run=True)
    new = await connected(cluster.bootstrap_servers)
    try:
        for key in FORWARDED:
            low, high = own[key], controller.api_versions[key]
            both = (max(low[0], high[0]), min(low[1], high[1]))
            assert new.api_versions[key] == both, key
        assert any(new.api_versions[key] != own[key] for key in FORWARDED)
        assert new.api_versions[1] == own[1] != controller.api_versions[1]
        assert not kept.closed
        assert kept.api_versions == own
        await kept.request_api_versions(10)
        assert {key: kept.api_versions[key] for key in FORWARDED} == {
            key: new.api_versions[key] for key in FORWARDED
        }
    finally:
        for connection in (controller, kept, new):
            await connection.close()


@pytest.mark.stack
async def test_a_broker_says_that_another_one_was_expected(bus: Cluster) -> None:
    """From 4.4 on it compares the cluster and the node that an address should lead to (KIP-1242):
    at the first request and at each later one over the same connection."""
    (address,) = parse_addresses(bus.bootstrap_servers)
    settings = ApiVersionsSettings(bootstrap_servers=(address,))
    peers = ConnectionPool(settings)
    broker, cluster = NodeKey(Role.BROKER, NodeId(1)), ClusterId(bus.cluster_id)
    other = NodeKey(Role.BROKER, NodeId(2))
    for wrong_key, wrong_cluster in ((other, cluster), (broker, ClusterId(random_id()))):
        with pytest.raises(OtherNodeError, match="another node or cluster listens there"):
            await peers.request_features(wrong_key, address, wrong_cluster)
        known = await peers.request_features(broker, address, cluster)
        assert known == await peers.request_features(broker, address)
        with pytest.raises(OtherNodeError):
            await peers.request_features(wrong_key, address, wrong_cluster)
    await peers.retain(())
