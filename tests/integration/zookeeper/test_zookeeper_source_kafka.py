"""The ZooKeeper source beside real brokers in ZooKeeper mode."""

import asyncio

import pytest

from featurewatch.stack.kafka.specs import zookeeper_mode
from featurewatch.streams.znodes import (
    BrokerZnode,
    ClusterIdZnode,
    ControllerEpochZnode,
    ControllerZnode,
    FeaturesForm,
    FeaturesZnode,
    PartitionStateZnode,
)
from featurewatch.streams.zookeeper.paths import WatchScope
from tests.conftest import MakeCluster
from tests.integration.zookeeper.support import chroot, watching

pytestmark = pytest.mark.stack


@pytest.mark.form("released")
async def test_brokers_in_zookeeper_mode(ensemble, make_cluster: MakeCluster):
    """Znodes of Kafka 3.9.1 itself are read: schema 5 with no features (F-01 as released), /feature
    without minimums (M-14 as released), the controller with KRaft's epoch; a killed broker is
    removed, and a controller that dies has a successor with a higher epoch."""
    root = chroot()
    hosts = ensemble.connect_string + root
    async with watching(hosts, wanted=WatchScope(partitions=True, tasks=True)) as watched:
        znodes = watched.sink.znodes
        properties = {"zookeeper.session.timeout.ms": "3000", "offsets.topic.num.partitions": "1"}
        spec = zookeeper_mode(2, hosts, properties=properties)
        cluster = await asyncio.to_thread(make_cluster, spec)
        await watched.following()
        await watched.until(lambda: {"/controller", "/brokers/ids/2", "/feature"} <= set(znodes))
        assert watched.source.cluster == cluster.cluster_id
        assert znodes["/cluster/id"].content == ClusterIdZnode(cluster.cluster_id)
        content = znodes["/brokers/ids/1"].content
        assert isinstance(content, BrokerZnode)
        assert (content.schema, content.features) == (5, {})
        host, _, port = next(iter(content.addresses.values())).rpartition(":")
        assert (host, int(port)) == ("127.0.0.1", cluster.node(1).addresses.broker)
        assert content.started_ms > 1_700_000_000_000
        assert znodes["/brokers/ids/1"].owner != 0
        assert znodes["/feature"].content == FeaturesZnode(FeaturesForm.RELEASED_2, 2, True, {})
        controller, epoch = znodes["/controller"].content, znodes["/controller_epoch"].content
        assert isinstance(controller, ControllerZnode)
        assert isinstance(epoch, ControllerEpochZnode)
        assert controller.kraft_epoch == -1
        await asyncio.to_thread(cluster.node(controller.node_id).kill)
        other = 3 - controller.node_id
        await watched.until(
            lambda: (
                "/controller" in znodes
                and watched.sink.read("/controller", ControllerZnode).node_id == other
                and f"/brokers/ids/{controller.node_id}" not in znodes
            )
        )
        await watched.until(
            lambda: watched.sink.read("/controller_epoch", ControllerEpochZnode).epoch > epoch.epoch
        )
        states = [z.content for z in znodes.values() if isinstance(z.content, PartitionStateZnode)]
        assert all(state.leader in (-1, 1, 2) for state in states)
        assert watched.sink.dead_letters == []
