"""Nodes that serve KIP-4's draft on real sockets, over one controller in memory."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from types import MappingProxyType, TracebackType
from typing import Any, Self

from featurewatch.admin.kip4.client import DraftAdminClient
from featurewatch.reference.zookeeper.kip4.api import Kip4Api
from featurewatch.reference.zookeeper.kip4.controller_access import ControllerAccess
from featurewatch.reference.zookeeper.machines.encoding import Endpoint
from featurewatch.reference.zookeeper.machines.requests import FeaturesResponse
from featurewatch.reference.zookeeper.machines.topics.context import ControllerContext
from featurewatch.reference.zookeeper.machines.topics.requests import (
    NOT_CONTROLLER,
    TopicRequest,
    TopicResponse,
)
from featurewatch.reference.zookeeper.wire import responses
from featurewatch.reference.zookeeper.wire.api_keys import (
    API_VERSIONS,
    KIP4_CLUSTER_METADATA,
    ApiDialect,
)
from featurewatch.reference.zookeeper.wire.frames import WireRequest
from featurewatch.reference.zookeeper.wire.responses import ClusterView
from featurewatch.reference.zookeeper.wire.server import WireServer
from tests.kafka.login_front import Front
from tests.reference.zookeeper.kip4.kip4_rig import Kip4Rig

WAIT_S = 30.0


async def until(condition: Callable[[], bool]) -> None:
    """Returns when a condition holds; fails after half a minute."""
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0.01)


class DraftNodes:
    """Nodes 101 and up, one of which is ``controller``; metadata names ``named``."""

    def __init__(
        self,
        count: int = 2,
        dialect: ApiDialect = ApiDialect.CONTROLLER,
        front: Front | None = None,
    ) -> None:
        self.rig = Kip4Rig()
        self.controller: int | None = 101
        self.named: int = 101
        self.requests: list[tuple[int, int]] = []
        """The node and the key of each request but ApiVersions, in order."""
        self.drops: Callable[[WireRequest], bool] = lambda _: False
        """Which requests end their connection, after they were performed."""
        self.replies: Callable[[Any], Any] = lambda response: response
        """Changes a response."""
        self.silent = False
        """Whether requests get no response, and their connections stay open."""
        self._dialect = dialect
        self._servers = {
            node_id: WireServer(dialect, self._handler(node_id))
            for node_id in range(101, 101 + count)
        }
        self._front = front
        self._ports: dict[int, int] = {}
        """Where each node listens for clients: itself, or the front before it."""
        self._clients = AsyncExitStack()

    async def __aenter__(self) -> Self:
        for node_id, server in self._servers.items():
            await server.start()
            self._ports[node_id] = server.port
            if self._front is not None:
                front = await self._front.start(server.port)
                self._clients.push_async_callback(front.wait_closed)
                self._clients.callback(front.close)
                self._ports[node_id] = front.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        await self._clients.aclose()
        for server in self._servers.values():
            await server.close()

    async def client(
        self,
        *node_ids: int,
        timeout_ms: int = 30_000,
        properties: Mapping[str, str] = MappingProxyType({}),
    ) -> DraftAdminClient:
        """A client with these bootstrap servers, or with all."""
        config = {
            "request.timeout.ms": str(timeout_ms),
            "retry.backoff.ms": "10",
            **properties,
        }
        servers = ",".join(map(self.address, node_ids or self._servers))
        client = DraftAdminClient.connect(servers, config=config)
        return await self._clients.enter_async_context(client)

    def address(self, node_id: int) -> str:
        """Where a node listens for clients."""
        return f"127.0.0.1:{self._ports[node_id]}"

    def move_controller(self, node_id: int) -> None:
        """Another node is elected, and metadata names it."""
        self.controller = self.named = node_id

    def admin_requests(self) -> list[tuple[int, int]]:
        """The requests that the controller alone may process."""
        return [entry for entry in self.requests if entry[1] != KIP4_CLUSTER_METADATA]

    def _handler(self, node_id: int) -> Any:
        async def perform(request: TopicRequest) -> TopicResponse:
            if self.controller != node_id:
                return NOT_CONTROLLER
            return await self.rig.perform(request)

        def context() -> ControllerContext | None:
            return self.rig.context if self.controller == node_id else None

        api = Kip4Api(ControllerAccess(node_id, perform, context), self._view)

        async def handle(request: WireRequest) -> Any:
            if request.key == API_VERSIONS:
                return responses.api_versions(request, self._dialect, FeaturesResponse())
            self.requests.append((node_id, request.key))
            if self.silent:
                await asyncio.Event().wait()
            response = await api.serve(request)
            return None if self.drops(request) else self.replies(response)

        return handle

    def _view(self) -> ClusterView:
        """The nodes, and the registered brokers, which nobody connects to."""
        brokers = dict.fromkeys(self.rig.broker_ids, Endpoint("broker", 9092))
        for node_id, port in self._ports.items():
            brokers[node_id] = Endpoint("127.0.0.1", port)
        return ClusterView("cluster", self.named, brokers)
