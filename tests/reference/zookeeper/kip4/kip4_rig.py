"""KIP-4's requests to a controller over a ZooKeeper in memory, as bytes in both directions."""

import struct
from collections.abc import Awaitable, Callable
from typing import Any

from featurewatch.kafka.decode import read_entity
from featurewatch.kafka.encode import write_entity
from featurewatch.kafka.messages import Request, response_class
from featurewatch.reference.zookeeper.kip4.api import Kip4Api
from featurewatch.reference.zookeeper.kip4.controller_access import ControllerAccess
from featurewatch.reference.zookeeper.machines.encoding import BROKER_IDS, Endpoint
from featurewatch.reference.zookeeper.machines.topics.context import ControllerContext
from featurewatch.reference.zookeeper.machines.topics.requests import TopicRequest, TopicResponse
from featurewatch.reference.zookeeper.wire.api_keys import ApiDialect
from featurewatch.reference.zookeeper.wire.frames import read_request, write_response
from featurewatch.reference.zookeeper.wire.responses import ClusterView
from tests.reference.zookeeper.machines.controller_rig import Rig

NODE_ID = 101
VIEW = ClusterView(
    "cluster",
    NODE_ID,
    {1: Endpoint("one", 9001), NODE_ID: Endpoint("controller", 9101)},
)
HEADER = struct.Struct(">hhih")
RESPONSE_START = 8
"""The length and the correlation id."""

Perform = Callable[[TopicRequest], Awaitable[TopicResponse]]


def request_frame(request: Request[Any]) -> bytes:
    """A request without its length, written by the client's classes."""
    return HEADER.pack(request.__api_key__, 0, 7, -1) + write_entity(request)


def response_of(request: Request[Any], frame: bytes) -> Any:
    """The response in a frame, read by the client's class to its last byte."""
    response, end = read_entity(response_class(request), frame, RESPONSE_START)
    assert end == len(frame)
    return response


class Kip4Rig(Rig):
    """A controller on node 101 with the topic t, whose partition 0 has the replicas 1 and 2."""

    def __init__(
        self,
        view: ClusterView = VIEW,
        perform: Perform | None = None,
        *,
        is_controller: bool = True,
    ) -> None:
        super().__init__()
        self._is_controller = is_controller
        access = ControllerAccess(NODE_ID, perform or self.perform, self.context_or_none)
        self.api = Kip4Api(access, lambda: view)

    @property
    def context(self) -> ControllerContext:
        """The controller's memory."""
        context = self.context_or_none()
        assert context is not None
        return context

    @property
    def broker_ids(self) -> list[int]:
        """The registered brokers, which nobody can connect to."""
        prefix = f"{BROKER_IDS}/"
        return [
            int(path.removeprefix(prefix)) for path in self.history.tree if path.startswith(prefix)
        ]

    def context_or_none(self) -> ControllerContext | None:
        """The controller's memory; None: this node is not the controller."""
        return self.process.controller.partitions if self._is_controller else None

    async def perform(self, request: TopicRequest) -> TopicResponse:
        """The controller's response."""
        return self.request(request)  # type: ignore[return-value]

    async def send(self, request: Request[Any]) -> Any:
        """The response to a request, over the wire."""
        received = read_request(request_frame(request), ApiDialect.CONTROLLER)
        response = await self.api.serve(received)
        return response_of(request, write_response(received.correlation_id, response))

    async def accepted(self, request: Request[Any]) -> Any:
        """The response to a request that succeeds."""
        response = await self.send(request)
        assert response.error_code == 0, response
        return response

    async def refused(self, request: Request[Any]) -> str:
        """The reason of a request that fails with 21, and changes nothing in ZooKeeper."""
        before = {path: node.stat for path, node in self.history.tree.items()}
        response = await self.send(request)
        assert response.error_code == 21, response
        assert {path: node.stat for path, node in self.history.tree.items()} == before
        return str(response.error_description)
