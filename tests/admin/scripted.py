"""Nodes that say what a test wants, on real sockets and in Kafka's own bytes."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from featurewatch.kafka.address import Address
from featurewatch.reference.zookeeper.machines.encoding import Endpoint
from featurewatch.reference.zookeeper.machines.requests import (
    ErrorCode,
    FeaturesResponse,
    UpdateResponse,
)
from featurewatch.reference.zookeeper.wire import responses
from featurewatch.reference.zookeeper.wire.api_keys import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    METADATA,
    ApiDialect,
)
from featurewatch.reference.zookeeper.wire.frames import WireRequest
from featurewatch.reference.zookeeper.wire.responses import ClusterView
from featurewatch.reference.zookeeper.wire.server import WireServer

SUPPORTED = {"group.version": (0, 3), "metadata.version": (1, 21)}
FINALIZED = {"metadata.version": 20}

Script = Callable[[WireRequest], UpdateResponse | None]
"""What an update is answered with; None: the connection is closed."""


@dataclass
class Node:
    """One node: what it reports, and what it was sent."""

    script: Script = lambda _: UpdateResponse()
    features: FeaturesResponse = field(
        default_factory=lambda: FeaturesResponse(SUPPORTED, FINALIZED, 7)
    )
    versions: tuple[int, int] | None = (0, 2)
    """Of UpdateFeatures; None: it has none."""
    lists: bool = True
    """Whether it tells who is in the cluster by DescribeCluster."""
    names: Mapping[int, Address] | None = None
    """Other addresses than the cluster's, where it is wrong about them."""
    updates: list[WireRequest] = field(default_factory=list)
    request_count: int = 0


class CountingServer(WireServer):
    """A server that counts the connections that it has accepted."""

    connection_count = 0

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connection_count += 1
        await super()._connected(reader, writer)


class ScriptedCluster:
    """Nodes 1, 2, …, each a listener in its own thread; use as a context.

    ``controller`` is whom Metadata names; -1: nobody.
    """

    def __init__(
        self,
        *nodes: Node,
        controller: int = 1,
        speech: ApiDialect = ApiDialect.RELEASED,
        cluster_id: str = "cluster",
    ) -> None:
        self.cluster_id = cluster_id
        self.nodes = dict(enumerate(nodes, start=1))
        self.controller = controller
        self._speech = speech
        self._servers: dict[int, CountingServer] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._start())
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def address(self, node_id: int = 1) -> Address:
        """Where a node listens."""
        server = self._servers[node_id]
        return Address(server.host, server.port)

    @property
    def connection_count(self) -> int:
        """How many connections all nodes have accepted."""
        return sum(server.connection_count for server in self._servers.values())

    def stop(self, node_id: int) -> None:
        """Takes a node away; the others still name it."""
        self._run(self._servers[node_id].close())

    def _run(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _start(self) -> None:
        for node_id, node in self.nodes.items():
            server = CountingServer(self._speech, self._responder(node))
            await server.start()
            self._servers[node_id] = server

    async def _close(self) -> None:
        for server in self._servers.values():
            await server.close()

    def _responder(self, node: Node) -> Any:
        async def respond(call: WireRequest) -> Any:
            node.request_count += 1
            if call.key == API_VERSIONS:
                return _offering(call, node, self._speech)
            if call.key in (METADATA, DESCRIBE_CLUSTER):
                where = node.names or {node_id: self.address(node_id) for node_id in self.nodes}
                brokers = {node_id: Endpoint(at.host, at.port) for node_id, at in where.items()}
                view = ClusterView(self.cluster_id, self.controller, brokers)
                tell = responses.metadata if call.key == METADATA else responses.describe_cluster
                return tell(call, view)
            node.updates.append(call)
            response = node.script(call)
            return None if response is None else responses.update_features(call, response)

        return respond


def _offering(call: WireRequest, node: Node, speech: ApiDialect) -> Any:
    if call.body is None:
        return responses.api_versions_error(ErrorCode.UNSUPPORTED_VERSION)
    response = responses.api_versions(call, speech, node.features)
    keys = []
    for api_key in response.api_keys:
        if api_key.api_key != 57:
            if node.lists or api_key.api_key != DESCRIBE_CLUSTER:
                keys.append(api_key)
        elif node.versions is not None:
            api_key.min_version, api_key.max_version = node.versions
            keys.append(api_key)
    response.api_keys = tuple(keys)
    return response
