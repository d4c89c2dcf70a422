"""Reference clusters of any size in one process: a few whole nodes, and light brokers beyond."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from featurewatch.reference.machines.directory import BrokerDirectory
from featurewatch.reference.machines.encoding import BrokerIdentity, encode_broker
from featurewatch.reference.machines.light_brokers import LightBrokers
from featurewatch.reference.node import LISTENER, NodeExit, NodeSettings, ReferenceNode
from featurewatch.reference.zookeeper.client import monotonic_wall_clock
from featurewatch.reference.zookeeper.session import MachineSession
from featurewatch.streams.types import Range

FULL_NODES: Final = 3
"""How many brokers of a cluster are whole nodes, unless said otherwise."""

_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """``brokers`` in all, with ids from that of ``first`` on; ``full`` of them are whole nodes.

    ``light_ranges`` gives the ranges of light brokers by id, where they are not those of ``first``.
    With several whole nodes, ``first.port`` and those after it are taken, or free ones if it is 0.
    """

    first: NodeSettings
    brokers: int = 1
    full: int = FULL_NODES
    light_ranges: Callable[[int], Mapping[str, Range]] | None = None
    cluster_id: str | None = None

    def node_settings(self) -> list[NodeSettings]:
        """Those of each whole node."""
        first = self.first
        return [
            replace(
                first, node_id=first.node_id + index, port=first.port + index if first.port else 0
            )
            for index in range(max(1, min(self.full, self.brokers)))
        ]

    def light_ids(self) -> range:
        """The ids of the light brokers."""
        first = self.first.node_id
        return range(first + len(self.node_settings()), first + self.brokers)


@dataclass(slots=True)
class ReferenceCluster:
    """A running cluster; `start` it, `close` it."""

    settings: ClusterSettings
    on_end: Callable[[ReferenceNode, NodeExit], None] | None = None
    nodes: list[ReferenceNode] = field(default_factory=list)
    directory: BrokerDirectory = field(init=False)
    light: LightBrokers | None = None
    light_registration_s: float = 0.0
    """How long the light brokers took to register."""
    _sessions: list[MachineSession] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.directory = BrokerDirectory(self.settings.cluster_id)

    @property
    def bootstrap_servers(self) -> str:
        """``host:port,...`` of the whole nodes."""
        return ",".join(node.address for node in self.nodes if node.exit is None)

    async def start(self, timeout_s: float = 30.0) -> None:
        """Starts all, one whole node after the other, and waits until each has registered or ended.

        Those that have not ended know the controller then, and every broker of this cluster.

        Raises:
            EnsembleError, OSError: as of `ReferenceNode.start`.
            TimeoutError: if something is not there in time.
        """
        try:
            await self._seat("directory", self.directory)
            for settings in self.settings.node_settings():
                node = ReferenceNode(settings, self.directory, self.on_end)
                await node.start(timeout_s)
                self.nodes.append(node)
                await node.wait_registered(timeout_s)
            await self._start_light(timeout_s)
            await self._wait_known(timeout_s)
        except BaseException:
            await self.close()
            raise

    async def wait_controller(self, timeout_s: float = 30.0) -> ReferenceNode:
        """The active controller among the nodes.

        Raises:
            TimeoutError: if there is none in time.
        """
        await _until(lambda: any(node.is_controller for node in self.nodes), timeout_s)
        return next(node for node in self.nodes if node.is_controller)

    async def close(self) -> None:
        """Ends all."""
        for node in self.nodes:
            await node.close()
        for session in self._sessions:
            await session.close()
        self.nodes.clear()
        self._sessions.clear()

    async def _wait_known(self, timeout_s: float) -> None:
        try:
            await _until(lambda: self._unknown() is None, timeout_s)
        except TimeoutError:
            raise TimeoutError(self._unknown()) from None

    def _unknown(self) -> str | None:
        """What is not known yet, in words; none: all is."""
        here = [node for node in self.nodes if node.exit is None]
        if not here:
            return None
        for node in here:
            if node.controller_id is None:
                return f"{node.name} knows no controller"
            if node.controller_id == node.settings.node_id and not node.is_controller:
                return f"{node.name} is elected, and not through with its start-up"
        light = len(self.light.registered) if self.light is not None else 0
        known, wanted = len(self.directory.brokers), light + len(here)
        if known >= wanted and self.directory.complete:
            return None
        return f"{known} brokers are known, and {wanted} have registered"

    async def _start_light(self, timeout_s: float) -> None:
        ids = self.settings.light_ids()
        if not ids:
            return
        self.light = LightBrokers(self._light_contents(ids))
        light, started = self.light, time.monotonic()
        await self._seat("light brokers", light)
        await _until(lambda: light.complete or bool(light.rejected), timeout_s + len(ids) / 100)
        self.light_registration_s = time.monotonic() - started

    def _light_contents(self, ids: Sequence[int]) -> dict[int, bytes]:
        """Each says that it listens where one of the whole nodes does."""
        first, now_ms = self.settings.first, int(monotonic_wall_clock()())
        ranges = self.settings.light_ranges or (lambda _: first.supported)
        addresses = [node.address.rsplit(":", 1) for node in self.nodes]
        contents: dict[int, bytes] = {}
        for broker_id in ids:
            host, port = addresses[broker_id % len(addresses)]
            identity = BrokerIdentity(broker_id, {LISTENER: (host, int(port), LISTENER)})
            contents[broker_id] = encode_broker(first.dialect, identity, ranges(broker_id), now_ms)
        return contents

    async def _seat(self, name: str, machine: BrokerDirectory | LightBrokers) -> None:
        first = self.settings.first
        session = MachineSession(
            first.connect,
            session_timeout_s=first.session_timeout_s,
            name=name,
            on_exit=lambda _code, _reason: None,
        )
        session.attach(machine)
        await session.open()
        self._sessions.append(session)


async def _until(condition: Callable[[], bool], timeout_s: float) -> None:
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(_POLL_S)
