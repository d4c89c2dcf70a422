"""The demo's script: the actions on the cluster, act by act."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any, NoReturn

from featurewatch.admin.cluster.registrations import RegistrationAdmin
from featurewatch.admin.connections import Bootstrap
from featurewatch.admin.errors import KafkaApiError
from featurewatch.admin.features.client import FeatureUpdate, UpdateRefusedError, update_features
from featurewatch.cli.commands.demo.blockers import blockers_of_level, now_ms
from featurewatch.cli.commands.demo.monitor import Monitor
from featurewatch.cli.commands.demo.output_log import OutputLog
from featurewatch.cli.commands.demo.page import demo_page
from featurewatch.cli.commands.demo.printer import DemoPrinter
from featurewatch.cli.commands.demo.retired import retire_sources
from featurewatch.cli.commands.demo.summary import summarize
from featurewatch.cli.commands.demo.zookeeper_script import play_zookeeper
from featurewatch.cli.config.settings import BusSection, Settings, WebSection, WorkerSection
from featurewatch.cli.config.settings import ClusterSection as WatchedCluster
from featurewatch.controller.kraft.releases import release_of
from featurewatch.controller.levels import level_name
from featurewatch.kafka.address import parse_addresses
from featurewatch.kafka.releases import newest_patch
from featurewatch.monitor.readiness import assess_readiness, downgrade_path
from featurewatch.monitor.snapshot import snapshot
from featurewatch.stack.java.jars import Cache, Jars, default_cache, newest_tools
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import KAFKA_WITH_ZOOKEEPER, combined, single_bus
from featurewatch.stack.wire.light_nodes import LightNodes
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.types import (
    METADATA_VERSION,
    ClusterId,
    FeatureLevel,
    NodeId,
    NodeKey,
    Role,
    SupportedRanges,
    UpgradeType,
)
from featurewatch.tables.image.cluster import ClusterImage

OLD, NEW = "3.9.1", newest_patch()
START = FeatureLevel(19)
OLD_RANGES = release_of("3.7").ranges()
NEW_RANGES = release_of(NEW).ranges()
NEW_RANGE = NEW_RANGES.of(METADATA_VERSION)
TARGET = FeatureLevel(NEW_RANGE.maximum)
GHOST = NodeId(9)


def play(directory: Path, narrator: DemoPrinter, *, keep: bool) -> dict[str, Any]:
    """Plays the demo in a directory; returns the summary. Everything it starts ends with it."""
    with ExitStack() as stack:
        narrator.step(f"Starting a bus, and three nodes of Kafka {OLD} formatted at 3.7-IV4")
        cache = Cache(default_cache())
        # With the tools: all that either act needs is fetched here, under one progress bar.
        tools = product((OLD, newest_tools(), KAFKA_WITH_ZOOKEEPER), Jars)
        cache.class_paths(list(dict.fromkeys([(NEW, Jars.SERVER), *tools])))
        bus = Cluster(single_bus(), directory / "bus", temporary=True)
        cluster = Cluster(combined([OLD] * 3, "3.7-IV4"), directory / "cluster", temporary=True)
        with ThreadPoolExecutor(2) as pool:
            for started in [
                pool.submit(stack.enter_context, process) for process in (bus, cluster)
            ]:
                started.result()
        settings = _settings(bus, cluster, directory)
        bus_settings = settings.bus_settings()
        ensure_topics(bus_settings)
        narrator.did(f"the page: {stack.enter_context(demo_page(settings))}")
        feed = stack.enter_context(OutputLog(bus_settings, narrator))
        with Monitor(settings, bus) as monitor:
            monitor.wait(ClusterId(cluster.cluster_id), lambda image: image.ready)
            with LightNodes(cluster.controllers, cluster.cluster_id, 1) as light:
                _DemoScript(cluster, light, monitor, feed, narrator).play()
        feed.live = False
        finalized = play_zookeeper(directory, settings, bus, feed, narrator)
        summary = summarize(cluster, finalized, feed)
        narrator.summary(summary)
        if keep:
            monitor = stack.enter_context(Monitor(settings, bus))
            retire_sources(bus_settings, feed.states.keys() - {cluster.cluster_id}, narrator)
            _keep(narrator, monitor, bus_settings, cluster)
    return summary


def _settings(bus: Cluster, cluster: Cluster, directory: Path) -> Settings:
    watched = WatchedCluster(cluster_id=cluster.cluster_id, controllers=cluster.controllers)
    return Settings(
        bus=BusSection(bootstrap_servers=bus.bootstrap_servers, replication_factor=1, partitions=4),
        clusters=[watched],
        worker=WorkerSection(data_directory=directory / "featurewatch"),
        web=WebSection(source_port=0, worker_port=0, page_port=0),
    )


def _keep(narrator: DemoPrinter, monitor: Monitor, bus: BusSettings, cluster: Cluster) -> NoReturn:
    narrator.step("Everything keeps running; Ctrl-C stops it")
    narrator.did(f"the cluster: {cluster.bootstrap_servers}, its controllers {cluster.controllers}")
    for command in ("state --follow", "changes --follow", "alerts"):
        narrator.did(f"featurewatch {command} --bus {bus.bootstrap_servers}")
    while True:
        monitor.check()
        time.sleep(1)


class _DemoScript:
    """The acts; each waits until featurewatch has seen what was done."""

    def __init__(
        self,
        cluster: Cluster,
        light: LightNodes,
        monitor: Monitor,
        feed: OutputLog,
        narrator: DemoPrinter,
    ) -> None:
        self.id = ClusterId(cluster.cluster_id)
        self._cluster = cluster
        self._monitor = monitor
        self._feed = feed
        self._narrator = narrator
        self._light = light

    def play(self) -> None:
        """All acts."""
        self._feed.live = True
        self._show()
        self._haunt()
        self._roll([1])
        self._narrator.step("Too early: somebody raises metadata.version")
        self._update(TARGET)
        self._verdict()
        self._roll([2, 3])
        self._narrator.step("All nodes are new, and it is refused again")
        self._update(TARGET)
        self._narrator.step(f"Controller {GHOST} blocks the level that would remove it")
        self._unregister()
        self._narrator.did(f"the way out: controller {GHOST} is started once more, on {NEW}")
        self._register_ghost(NEW_RANGES)
        self._update(TARGET)
        self._wait(lambda image: image.features.levels.get(METADATA_VERSION) == TARGET)
        self._show()
        self._old_controller()
        name = level_name(METADATA_VERSION, TARGET)
        self._narrator.step(f"No way back: {name} writes records that 3.7-IV4 cannot express")
        self._update(START, UpgradeType.SAFE_DOWNGRADE)
        self._way_back()
        self._kill()
        self._burst(25)
        self._narrator.step(f"Controller {GHOST} stops for good, and is unregistered")
        self._unregister()
        ghost = NodeKey(Role.CONTROLLER, GHOST)
        self._wait(lambda image: image.nodes.get(ghost) is None)
        self._show()

    def _haunt(self) -> None:
        self._narrator.step(f"Controller {GHOST} registers and is never seen again")
        self._register_ghost(OLD_RANGES)
        self._narrator.did(f"it supports metadata.version 1-19; Kafka {OLD} cannot unregister it")

    def _roll(self, nodes: list[int]) -> None:
        for node_id in nodes:
            self._narrator.step(f"Node {node_id}: {OLD} → {NEW}")
            node = self._cluster.node(node_id)
            node.stop()
            node.start(NEW)
            for role in Role:
                self._wait_for_range(NodeKey(role, NodeId(node_id)), NEW_RANGE)
            self._wait_alive(NodeId(node_id))
            self._show()

    def _update(self, level: FeatureLevel, kind: UpgradeType = UpgradeType.UPGRADE) -> None:
        request = f"metadata.version {level_name(METADATA_VERSION, level)}"
        address = parse_addresses(self._cluster.bootstrap_servers)[0]
        try:
            asyncio.run(update_features(address, (FeatureUpdate(METADATA_VERSION, level, kind),)))
        except UpdateRefusedError as refusal:
            image = self._monitor.image(self.id)
            blockers = blockers_of_level(image, METADATA_VERSION, level) if image else []
            self._narrator.refused(request, str(refusal), blockers)
        else:
            self._narrator.did(f"Kafka accepted {request}")

    def _unregister(self) -> None:
        """Requests that Kafka remove the ghost's registration."""
        bootstrap = Bootstrap(parse_addresses(self._cluster.bootstrap_servers))

        async def ask() -> None:
            async with RegistrationAdmin(bootstrap) as admin:
                await admin.unregister(NodeKey(Role.CONTROLLER, GHOST))

        request = f"unregister-controller {GHOST}"
        try:
            asyncio.run(ask())
        except KafkaApiError as refusal:
            self._narrator.refused(request, str(refusal), [])
        else:
            self._narrator.did(f"Kafka accepted {request}")

    def _verdict(self) -> None:
        """The report of `featurewatch readiness` for the new release."""
        image = self._monitor.image(self.id)
        if image is not None:
            self._narrator.verdict(assess_readiness(image, release_of(NEW), now_ms=now_ms()))

    def _way_back(self) -> None:
        """Its report on the downgrade path, before and after."""
        image = self._monitor.image(self.id)
        way = downgrade_path({METADATA_VERSION: START}, image.features.levels) if image else None
        if way is not None:
            self._narrator.did(f"featurewatch readiness says so beforehand: {way.reason}")

    def _old_controller(self) -> None:
        self._narrator.step(f"Controller {GHOST} comes back on old software")
        self._register_ghost(OLD_RANGES)
        self._narrator.did("Kafka lets it register; it could not load the log")
        self._register_ghost(NEW_RANGES)

    def _kill(self) -> None:
        leader = self._cluster.leader()
        self._narrator.step(f"kill -9 of node {leader.id}, the active controller")
        leader.kill()
        self._wait(lambda image: image.log.quorum.leader_id not in (-1, leader.id))
        image = self._monitor.image(self.id)
        self._narrator.did(f"node {image.log.quorum.leader_id if image else '?'} leads now")
        self._wait_alive(NodeId(leader.id), False)
        self._narrator.did(f"broker {leader.id} is fenced")
        leader.start()
        self._wait_alive(NodeId(leader.id))
        self._narrator.did(f"broker {leader.id} has recovered")

    def _burst(self, times: int) -> None:
        self._narrator.step(f"Controller {GHOST} flaps between releases {times} times")
        self._feed.quiet = True
        for _ in range(times):
            self._register_ghost(OLD_RANGES)
            self._register_ghost(NEW_RANGES)
        self._feed.quiet = False
        self._narrator.did(f"{len(self._feed.alerts)} alerts began or ended so far")

    def _register_ghost(self, supported: SupportedRanges) -> None:
        """The ghost registers, and featurewatch has published all that follows."""
        ranges = {str(name): (low, high) for name, (low, high) in supported.items()}
        self._light.register_controller(GHOST, ranges)
        self._wait_for_range(NodeKey(Role.CONTROLLER, GHOST), supported.of(METADATA_VERSION))

    def _wait_for_range(self, key: NodeKey, supported: tuple[int, int]) -> None:
        def done(image: ClusterImage) -> bool:
            node = image.nodes.get(key)
            return node is not None and node.capabilities.ranges.get(METADATA_VERSION) == supported

        self._wait(done)

    def _wait_alive(self, broker: NodeId, alive: bool = True) -> None:
        self._wait(lambda image: _alive(image, NodeKey(Role.BROKER, broker)) is alive)

    def _wait(self, done: Callable[[ClusterImage], bool]) -> None:
        self._monitor.wait(self.id, done)

    def _show(self) -> None:
        """The newest state on its topic, as soon as it is the expected one."""

        def published(image: ClusterImage) -> bool:
            newest = self._feed.states.get(self.id)
            return newest is not None and newest.classes == snapshot(image, 0).classes

        self._wait(published)
        self._narrator.state(self._feed.states[self.id], self._feed.firing_of(self.id))


def _alive(image: ClusterImage, key: NodeKey) -> bool:
    node = image.nodes.get(key)
    return node is not None and not node.fenced
