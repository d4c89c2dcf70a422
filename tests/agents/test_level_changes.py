"""Real clusters whose levels change: the effect on nodes, and the published outputs."""

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from featurewatch.admin.features.client import FeatureUpdate, update_features
from featurewatch.kafka.address import parse_addresses
from featurewatch.monitor.readiness import assess_readiness
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.node import KafkaNode
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec, Roles
from featurewatch.stack.wire.light_nodes import LightNodes
from featurewatch.streams.apiversions import ApiVersionsSettings, ApiVersionsSource
from featurewatch.streams.events import DeadLetter, Event, NodeAnswer
from featurewatch.streams.kraft.records.selection import DEFAULT_RECORD_TYPES
from featurewatch.streams.kraft.snapshot import parse_name
from featurewatch.streams.kraft.source import KraftSource
from featurewatch.streams.outputs import Alert, AlertState, FeatureChange
from featurewatch.streams.topics import Topic
from featurewatch.streams.types import (
    METADATA_VERSION,
    ClusterId,
    FeatureLevel,
    NodeId,
    NodeKey,
    Role,
)
from featurewatch.tables.image.cluster import ClusterImage
from tests.conformance.dump_log import ours
from tests.integration.kraft.support import LogSink, running, settings_for, until
from tests.simulation import records as r
from tests.simulation.auditor import Auditor
from tests.simulation.engine import Engine
from tests.simulation.records import MV, NEW, OLD

OLD_SOFTWARE, NEW_SOFTWARE = "3.9.1", "4.3.0"
TOO_HIGH = 25
"""A level that 3.9.1 does not know: 4.0-IV3."""

UNKNOWN_LEVEL = re.compile(
    rf"featureLevel={TOO_HIGH}\), but this controller only supports versions 1-21"
    rf"|No MetadataVersion with feature level {TOO_HIGH}"
)
"""Kafka's error messages for a level that its software does not know."""


class MonitoringSink(LogSink):
    """A sink that passes each event to the monitor at once and collects the monitor's outputs."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self.engine = Engine(cluster=ClusterId(cluster.cluster_id))
        self.engine.auditor = Auditor()
        self.changes: list[FeatureChange] = []
        self.alerts: list[Alert] = []

    async def publish(self, topic: Topic, event: Event | DeadLetter) -> asyncio.Future[None]:
        """Applies an event; these logs have no dead letters."""
        delivery = await super().publish(topic, event)
        assert not isinstance(event, DeadLetter), event
        result = self.engine.apply(event)
        self.changes += result.changes
        self.alerts += result.alerts
        return delivery

    @property
    def image(self) -> ClusterImage:
        """The current image."""
        return self.engine.state.image

    @property
    def firing(self) -> dict[str, Alert]:
        """The alerts that are firing, by rule."""
        newest = {alert.id: alert for alert in self.alerts}
        firing = (alert for alert in newest.values() if alert.state is AlertState.FIRING)
        return {alert.rule: alert for alert in firing}

    def levels(self) -> list[tuple[int, int]]:
        """The changes of metadata.version, before and after."""
        changes = [change for change in self.changes if change.feature == METADATA_VERSION]
        return [(change.before, change.after) for change in changes]

    def incarnations(self) -> dict[str, str]:
        """The incarnation of every registered node, as in the log."""
        return {str(key): node.incarnation for key, node in self.image.nodes.nodes.items()}


async def finalize(cluster: Cluster, level: int) -> None:
    """Finalizes a level of metadata.version by a request to the active controller."""
    leader = await asyncio.to_thread(cluster.leader)
    (address,) = parse_addresses(leader.controller or "")
    await update_features(address, (FeatureUpdate(METADATA_VERSION, FeatureLevel(level)),))


def following(
    cluster: Cluster, watched: MonitoringSink
) -> AbstractAsyncContextManager[KraftSource]:
    """A source on the cluster's log that passes its events to the monitor."""
    return running(settings_for(cluster, wanted=DEFAULT_RECORD_TYPES), watched)


def on_disk(node: KafkaNode) -> list[tuple[int, str, dict[str, Any]]]:
    """Offset, type and content of each record in a node's copy of the log."""
    (segment,) = node.metadata_log.glob("*.log")
    return [(record["offset"], record["type"], record["data"]) for record in ours(segment)]


def level_records(node: KafkaNode) -> list[int]:
    """The levels of metadata.version in a node's copy of the log."""
    return [
        data["featureLevel"]
        for _, kind, data in on_disk(node)
        if kind == "FEATURE_LEVEL_RECORD" and data["name"] == METADATA_VERSION
    ]


@pytest.mark.stack
async def test_a_controller_on_old_software(
    make_cluster: Callable[[ClusterSpec], Cluster],
) -> None:
    """It joins the quorum and replicates the log (M-43), and exits at the level it cannot support
    (M-44); an alert names a controller that registers such software, until it is replaced.
    """
    controllers = [NodeSpec(number, NEW_SOFTWARE, Roles.CONTROLLER) for number in (1, 2, 3)]
    cluster = make_cluster(ClusterSpec(controllers, "3.9"))
    old, watched = cluster.node(3), MonitoringSink(cluster)
    async with following(cluster, watched) as source:
        await until(lambda: watched.following() and len(watched.image.nodes) == 3)
        await asyncio.to_thread(old.stop)
        await finalize(cluster, TOO_HIGH)
        assert level_records(old) == [21]
        await asyncio.to_thread(old.start, OLD_SOFTWARE, wait=False)
        await until(lambda: not old.running)
        assert "Encountered fatal fault" in old.log.read_text()
        assert UNKNOWN_LEVEL.search(old.log.read_text())
        replicated, leaders = on_disk(old), on_disk(await asyncio.to_thread(cluster.leader))
        assert level_records(old) == [21, TOO_HIGH]
        assert replicated == leaders[: len(replicated)]
        await until(lambda: source.report().offset >= replicated[-1][0])
        await until(lambda: watched.firing == {})

        with LightNodes(cluster.controllers, cluster.cluster_id, 1) as light:
            announced = {"metadata.version": (1, 21), "kraft.version": (0, 1)}
            await asyncio.to_thread(light.register_controller, 3, announced)
        await until(lambda: "incompatible-node" in watched.firing)
        alert = watched.firing["incompatible-node"]
        assert alert.subject == {"role": "controller", "node": 3, "feature": METADATA_VERSION}
        assert alert.summary == (
            f"controller 3 supports metadata.version 1-21, and level {TOO_HIGH} (4.0-IV3) is "
            f"finalized: start it on a release that supports level {TOO_HIGH}."
        )
        assert set(watched.firing) == {"incompatible-node", "level-above-support"}
        await asyncio.to_thread(old.start, NEW_SOFTWARE)
        await until(lambda: watched.firing == {})
    assert watched.levels() == [(0, 21), (21, TOO_HIGH)]
    assert watched.gaps == []


@pytest.mark.form("released")
@pytest.mark.stack
async def test_the_active_controller_on_old_software(
    make_cluster: Callable[[ClusterSpec], Cluster],
) -> None:
    """After its election it reads the level it cannot support and exits (M-46 as released); an
    alert fires without a leader, and after a restart on new software the level is unchanged.
    """
    cluster = make_cluster(ClusterSpec([NodeSpec(1, NEW_SOFTWARE, Roles.CONTROLLER)], "3.9"))
    node, watched = cluster.node(1), MonitoringSink(cluster)
    async with following(cluster, watched):
        await until(watched.following)
        await finalize(cluster, TOO_HIGH)
        await until(lambda: watched.levels()[-1:] == [(21, TOO_HIGH)])
        await asyncio.to_thread(node.stop)
        await asyncio.to_thread(node.start, OLD_SOFTWARE, wait=False)
        await until(lambda: not node.running)
        assert UNKNOWN_LEVEL.search(node.log.read_text())
        elections = [data for _, kind, data in on_disk(node) if kind == "LEADER_CHANGE"]
        assert len(elections) == 2, "it read the level before it was elected"
        await until(lambda: "source-stalled" in watched.firing)
        await asyncio.to_thread(node.start, NEW_SOFTWARE)
        await until(lambda: watched.following() and watched.firing == {})
    assert watched.levels() == [(0, 21), (21, TOO_HIGH)]
    assert watched.image.features.levels[METADATA_VERSION] == TOO_HIGH


@pytest.fixture(scope="module")
def mixed(stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A controller of 4.3.0 with a broker of each release, at a level that both know."""
    nodes = [
        NodeSpec(1, NEW_SOFTWARE, Roles.CONTROLLER),
        NodeSpec(11, OLD_SOFTWARE, Roles.BROKER),
        NodeSpec(12, NEW_SOFTWARE, Roles.BROKER),
    ]
    directory: Path = tmp_path_factory.mktemp("mixed") / "cluster"
    spec = ClusterSpec(nodes, "3.7-IV4")
    with Cluster(spec, directory, cache=stack_cache, temporary=True) as cluster:
        yield cluster


@pytest.mark.form("released")
@pytest.mark.stack
async def test_levels_change_without_a_restart(mixed: Cluster) -> None:
    """Every node reports each new level without a restart of its process (F-71, M-37).

    None writes a snapshot because of it, as nodes of 3.3 and 3.4 did (M-54 as released, M-61 as
    released).
    """
    watched, sink = MonitoringSink(mixed), LogSink()
    settings = ApiVersionsSettings.parse(mixed.bootstrap_servers, interval_s=0.2)
    polling = asyncio.create_task(ApiVersionsSource(settings, sink).run())

    def levels_by_node() -> dict[tuple[Role, NodeId], int]:
        answers = [event for event in sink.events if isinstance(event, NodeAnswer)]
        return {(a.role, a.node_id): a.finalized.get(METADATA_VERSION, 0) for a in answers}

    def all_at(level: int) -> bool:
        return set(levels_by_node().values()) == {level}

    try:
        async with following(mixed, watched):
            await until(watched.following)
            await until(lambda: len(watched.image.nodes) == 3)
            await until(lambda: list(levels_by_node().values()) == [19] * 3)
            processes, registered = [n.pid for n in mixed.nodes], watched.incarnations()
            for level in (20, 21):
                await finalize(mixed, level)
                await until(partial(all_at, level))
            assert watched.levels() == [(0, 19), (19, 20), (20, 21)]
            assert watched.incarnations() == registered
            assert [node.pid for node in mixed.nodes] == processes
            assert watched.firing == {}
            files = [file for n in mixed.nodes for file in n.metadata_log.glob("*.checkpoint")]
            assert [file for file in files if parse_name(file.name)[0] > 0] == []
    finally:
        polling.cancel()
        await asyncio.gather(polling, return_exceptions=True)


@pytest.mark.form("released")
@pytest.mark.stack
async def test_a_running_broker_meets_a_level_it_cannot_support(mixed: Cluster) -> None:
    """A released broker logs it and stays up, outside of the cluster (M-47 as released); it blocks
    the level while it is registered, and its heartbeats are refused afterwards.
    """
    broker, key = mixed.node(11), NodeKey(Role.BROKER, NodeId(11))
    watched = MonitoringSink(mixed)
    async with following(mixed, watched):
        await until(watched.following)
        target = {METADATA_VERSION: FeatureLevel(TOO_HIGH)}
        (blocker,) = assess_readiness(watched.image, None, target).blockers
        assert (blocker.role, blocker.node_id) == key
        with LightNodes(mixed.controllers, mixed.cluster_id, 1) as light:
            await asyncio.to_thread(light.unregister, [11])
        await until(lambda: watched.image.nodes.get(key) is None)
        assert not assess_readiness(watched.image, None, target).blockers
        await finalize(mixed, TOO_HIGH)
        await until(lambda: watched.levels()[-1][1] == TOO_HIGH)
        await until(lambda: UNKNOWN_LEVEL.search(broker.log.read_text()))
        refused = "sent a heartbeat request but received error"
        await until(lambda: refused in broker.log.read_text())
        assert "LoggingFaultHandler - Encountered metadata loading fault" in broker.log.read_text()
        assert broker.running
        assert watched.firing == {}
    assert [node for node in watched.image.nodes.nodes if node.role is Role.BROKER] == [
        NodeKey(Role.BROKER, NodeId(12))
    ]


def test_an_active_controller_that_resigns() -> None:
    """As in the KIP: another controller is elected, and the alert names the one that terminated
    until it is started on new software."""
    engine = Engine()
    voters = [r.register_controller(1, OLD), r.register_controller(2, NEW)]
    engine.apply_all([r.commit(9, r.leader_change(1, [1, 2]), r.level(MV, 21), *voters)])
    engine.apply(r.following(9))
    fired = engine.apply(r.commit(10, r.level(MV, TOO_HIGH))).alerts
    (named,) = (alert for alert in fired if alert.rule == "incompatible-node")
    assert (named.subject["role"], named.subject["node"]) == ("controller", 1)
    resigned = engine.apply(r.commit(11, r.leader_change(2, [1, 2]), epoch=2))
    assert engine.state.image.log.quorum.leader_id == 2
    assert [alert for alert in resigned.alerts if alert.id == named.id] == []
    assert engine.state.image.features.levels[METADATA_VERSION] == TOO_HIGH
    restarted = engine.apply(r.commit(12, r.register_controller(1, NEW), epoch=2)).alerts
    assert (named.id, AlertState.RESOLVED) in {(alert.id, alert.state) for alert in restarted}


def test_a_broker_that_unregisters_itself() -> None:
    """As in the KIP: the alert fires with the level and is resolved by the unregistration."""
    engine = Engine()
    engine.apply_all([r.commit(9, r.level(MV, 21), r.register(1, OLD), r.register(2, NEW))])
    engine.apply(r.following(9))
    fired = engine.apply(r.commit(10, r.level(MV, TOO_HIGH))).alerts
    assert {(a.rule, a.state, a.subject.get("node")) for a in fired} == {
        ("incompatible-node", AlertState.FIRING, 1),
        ("level-above-support", AlertState.FIRING, None),
    }
    resolved = engine.apply(r.commit(11, r.unregister(1))).alerts
    assert {(a.id, a.state) for a in resolved} == {(a.id, AlertState.RESOLVED) for a in fired}
