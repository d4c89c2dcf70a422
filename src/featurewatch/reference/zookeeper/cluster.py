"""Runs reference clusters of any size in one process: a few full nodes plus light brokers.

If the full nodes control topics, the light brokers host replicas.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from featurewatch.reference.zookeeper.machines.controller.topic_requests import OperationsSettings
from featurewatch.reference.zookeeper.machines.directory import BrokerDirectory
from featurewatch.reference.zookeeper.machines.encoding import (
    BrokerIdentity,
    Endpoint,
    encode_broker,
)
from featurewatch.reference.zookeeper.machines.light_brokers import (
    EndLightBrokers,
    LightBrokerRegistered,
    LightBrokers,
    StartLightBrokers,
)
from featurewatch.reference.zookeeper.machines.protocol import BrokerEffect
from featurewatch.reference.zookeeper.node import LISTENER, NodeExit, NodeSettings, ReferenceNode
from featurewatch.reference.zookeeper.replica_host import ReplicaHost, forward_metadata
from featurewatch.reference.zookeeper.sessions.client import monotonic_wall_clock
from featurewatch.reference.zookeeper.sessions.session import MachineSession
from featurewatch.reference.zookeeper.sessions.slots import MachineSlot
from featurewatch.reference.zookeeper.wire.api_keys import METADATA, api_dialect_of
from featurewatch.reference.zookeeper.wire.frames import WireRequest
from featurewatch.reference.zookeeper.wire.server import WireServer
from featurewatch.streams.types import SupportedRange

FULL_NODES: Final = 3
"""The default number of full nodes in a cluster; its other brokers are light."""

_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """A cluster of ``brokers`` brokers with ids from that of ``first`` on; ``full`` are full nodes.

    ``light_ranges`` returns the ranges of a light broker by id; None: those of ``first``. Full
    nodes listen on consecutive ports from ``first.port`` on, or on free ports if it is 0.
    """

    first: NodeSettings
    brokers: int = 1
    full: int = FULL_NODES
    light_ranges: Callable[[int], Mapping[str, SupportedRange]] | None = None
    cluster_id: str | None = None

    def node_settings(self) -> list[NodeSettings]:
        """The settings of each full node; those that control topics host none of them."""
        first = self.first
        count = max(1, min(self.full, self.brokers))
        operations = first.operations
        if operations is not None:
            ids = range(first.node_id, first.node_id + count)
            hosts_none = operations.controller_ids | {*ids}
            operations = replace(operations, controller_ids=hosts_none)
        return [
            replace(
                first,
                node_id=first.node_id + index,
                port=first.port + index if first.port else 0,
                operations=operations,
            )
            for index in range(count)
        ]

    def light_ids(self) -> range:
        """The ids of the light brokers."""
        first = self.first.node_id
        return range(first + len(self.node_settings()), first + self.brokers)


@dataclass(slots=True)
class ReferenceCluster:
    """A cluster; call `start` to run it and `close` to end it."""

    settings: ClusterSettings
    on_end: Callable[[ReferenceNode, NodeExit], None] | None = None
    nodes: list[ReferenceNode] = field(default_factory=list)
    directory: BrokerDirectory = field(init=False)
    light: LightBrokers | None = None
    replicas: ReplicaHost | None = None
    """The light brokers' replicas, if the full nodes control topics."""
    _light_server: WireServer | None = None
    """The listener of the light brokers that host replicas; it outlives each full node."""
    _light_slot: tuple[MachineSession, MachineSlot] | None = None
    _sessions: list[MachineSession] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.directory = BrokerDirectory(self.settings.cluster_id)

    @property
    def bootstrap_servers(self) -> str:
        """``host:port,...`` of the full nodes that run."""
        return ",".join(node.address for node in self.nodes if node.exit is None)

    async def start(self, timeout_s: float = 30.0) -> None:
        """Starts the full nodes one by one, waiting until each has registered or ended, then the
        light brokers.

        On return the running nodes know the controller and every broker of this cluster.

        Raises:
            ZookeeperUnavailableError, OSError: as `ReferenceNode.start`.
            TimeoutError: if a step takes longer than ``timeout_s``.
        """
        try:
            await self._attach("directory", self.directory)
            operations = self.settings.first.operations
            if operations is not None and self.settings.light_ids():
                await self._start_replicas(operations)
            for settings in self.settings.node_settings():
                node = ReferenceNode(settings, self.directory, self.on_end, self.replicas)
                await node.start(timeout_s)
                self.nodes.append(node)
                await node.wait_registered(timeout_s)
            await self._start_light(timeout_s)
            await self._wait_ready(timeout_s)
        except BaseException:
            await self.close()
            raise

    def end_brokers(self, *broker_ids: int) -> None:
        """Lets light brokers die at once: they respond no more, and their znodes go."""
        if self.replicas is not None:
            for broker_id in broker_ids:
                self.replicas.brokers.end(broker_id)
        self._order(EndLightBrokers(frozenset(broker_ids)))

    def start_brokers(self, *broker_ids: int) -> None:
        """Registers light brokers that were ended; their replicas have the logs of before."""
        self._order(StartLightBrokers(frozenset(broker_ids)))

    async def close(self) -> None:
        """Ends all nodes and light brokers."""
        if self._light_server is not None and self.replicas is not None:
            await self._light_server.close()
            await self.replicas.close()
            self._light_server = self.replicas = None
        for node in self.nodes:
            await node.close()
        for session in self._sessions:
            await session.close()
        self.nodes.clear()
        self._sessions.clear()

    async def _wait_ready(self, timeout_s: float) -> None:
        try:
            await _until(lambda: self._not_ready_reason() is None, timeout_s)
        except TimeoutError:
            raise TimeoutError(self._not_ready_reason()) from None

    def _not_ready_reason(self) -> str | None:
        """Why the cluster is not ready; None if all nodes know the controller and all brokers."""
        running = [node for node in self.nodes if node.exit is None]
        if not running:
            return None
        for node in running:
            if node.controller_id is None:
                return f"{node.name} knows no controller"
            if node.controller_id == node.settings.node_id and not node.is_controller:
                return f"{node.name} is elected and has not completed its start-up"
        light_count = len(self.light.registered) if self.light is not None else 0
        known_count, registered_count = len(self.directory.brokers), light_count + len(running)
        if known_count >= registered_count and self.directory.complete:
            return None
        return f"{known_count} brokers are known, and {registered_count} have registered"

    async def _start_replicas(self, operations: OperationsSettings) -> None:
        first = self.settings.first
        self.replicas = ReplicaHost(
            self._controller_endpoint, fences_fetches=operations.dialect.fences_fetches
        )
        self.replicas.start()
        dialect = api_dialect_of(first.dialect, controls_topics=True, hosts_replicas=True)
        self._light_server = WireServer(
            dialect, self._handle_light, host=first.host, name="light brokers"
        )
        await self._light_server.start()

    async def _handle_light(self, request: WireRequest) -> Any:
        """A running full node responds for the light brokers, and on topics the controller."""
        running = [node for node in self.nodes if node.exit is None]
        for node in running:
            if node.is_controller:
                return await node.handle(request)
        if request.key == METADATA:
            return await forward_metadata(request, self._controller_endpoint())
        return await running[0].handle(request) if running else None

    async def _start_light(self, timeout_s: float) -> None:
        ids = self.settings.light_ids()
        if not ids:
            return
        self.light = LightBrokers(self._light_contents(ids))
        light = self.light
        self._light_slot = await self._attach("light brokers", light)
        await _until(lambda: light.complete or bool(light.rejected), timeout_s + len(ids) / 100)

    def _light_contents(self, ids: Sequence[int]) -> dict[int, bytes]:
        """The znodes of light brokers.

        Each advertises the address of one of the full nodes; those that host replicas, their own.
        """
        first, now_ms = self.settings.first, int(monotonic_wall_clock()())
        ranges = self.settings.light_ranges or (lambda _: first.supported)
        addresses = [node.address.rsplit(":", 1) for node in self.nodes]
        if self._light_server is not None:
            addresses = [[self._light_server.host, str(self._light_server.port)]]
        contents: dict[int, bytes] = {}
        for broker_id in ids:
            host, port = addresses[broker_id % len(addresses)]
            identity = BrokerIdentity(broker_id, {LISTENER: (host, int(port), LISTENER)})
            contents[broker_id] = encode_broker(first.dialect, identity, ranges(broker_id), now_ms)
        return contents

    def _order(self, order: EndLightBrokers | StartLightBrokers) -> None:
        if self._light_slot is not None:
            session, slot = self._light_slot
            session.deliver(slot, order)

    def _on_light_effect(self, effect: BrokerEffect) -> None:
        if isinstance(effect, LightBrokerRegistered) and self.replicas is not None:
            self.replicas.brokers.start(effect.broker_id, effect.epoch)

    def _controller_endpoint(self) -> Endpoint | None:
        """The address of the controller, as a running node of this process knows it."""
        running = (node for node in self.nodes if node.exit is None)
        ids = (node.controller_id for node in running if node.controller_id is not None)
        return self.directory.brokers.get(next(ids, -1))

    async def _attach(
        self, name: str, machine: BrokerDirectory | LightBrokers
    ) -> tuple[MachineSession, MachineSlot]:
        first = self.settings.first
        session = MachineSession(
            first.connect,
            session_timeout_s=first.session_timeout_s,
            name=name,
            on_exit=lambda _code, _reason: None,
            on_broker_effect=self._on_light_effect,
        )
        slot = session.attach(machine)
        await session.open()
        self._sessions.append(session)
        return session, slot


async def _until(condition: Callable[[], bool], timeout_s: float) -> None:
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(_POLL_S)
