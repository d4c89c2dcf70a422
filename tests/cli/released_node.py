"""A node that serves released Kafka's requests about topics, on a real socket of this process.

Behind it is the reference controller over a ZooKeeper in memory; requests are read by the classes
of Kafka's own schemas. It runs beside a command of the same process, in a thread.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from featurewatch.reference.zookeeper.machines.encoding import Endpoint
from featurewatch.reference.zookeeper.machines.requests import FeaturesResponse
from featurewatch.reference.zookeeper.machines.topics.requests import (
    NOT_CONTROLLER,
    TopicRequest,
    TopicResponse,
)
from featurewatch.reference.zookeeper.topic_api import TopicApi
from featurewatch.reference.zookeeper.wire import responses
from featurewatch.reference.zookeeper.wire.api_keys import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    METADATA,
    ApiDialect,
)
from featurewatch.reference.zookeeper.wire.cluster_responses import topic_metadata
from featurewatch.reference.zookeeper.wire.frames import WireRequest
from featurewatch.reference.zookeeper.wire.responses import ClusterView
from featurewatch.reference.zookeeper.wire.server import WireServer
from tests.reference.zookeeper.kip4.kip4_rig import NODE_ID, Kip4Rig

_LOOKED_UP = (API_VERSIONS, METADATA, DESCRIBE_CLUSTER)


class ReleasedNode:
    """The controller, node 101, under whose address the registered brokers are listed, too."""

    def __init__(self, dialect: ApiDialect = ApiDialect.CONTROLLER) -> None:
        self._dialect = dialect
        self.rig = Kip4Rig()
        self.requests: list[WireRequest] = []
        """Every request but ApiVersions, in order."""
        self.refusals = 0
        """How many of the next requests are refused, as by a node that is not the controller."""
        self.silent = False
        """Whether requests get no response, and their connections stay open."""
        self._server = WireServer(dialect, self._handle)
        self._topics = TopicApi(NODE_ID, self._perform, self.rig.context_or_none)

    @property
    def address(self) -> str:
        """What ``--bootstrap-server`` takes."""
        return f"{self._server.host}:{self._server.port}"

    def sent_keys(self) -> list[int]:
        """The API keys of what was sent but requests for the cluster's metadata."""
        return [request.key for request in self.requests if request.key not in _LOOKED_UP]

    def bodies(self, key: int) -> list[Any]:
        """The requests of an API key."""
        return [request.body for request in self.requests if request.key == key]

    @contextmanager
    def served(self) -> Iterator["ReleasedNode"]:
        """Serves in a separate thread."""
        with asyncio.Runner() as runner:
            loop = runner.get_loop()
            runner.run(self._server.start())
            thread = threading.Thread(target=loop.run_forever)
            thread.start()
            try:
                yield self
            finally:
                loop.call_soon_threadsafe(loop.stop)
                thread.join()
                runner.run(self._server.close())

    async def _perform(self, request: TopicRequest) -> TopicResponse:
        if self.refusals:
            self.refusals -= 1
            return NOT_CONTROLLER
        return await self.rig.perform(request)

    async def _handle(self, request: WireRequest) -> Any:
        if request.key == API_VERSIONS:
            return responses.api_versions(request, self._dialect, FeaturesResponse())
        self.requests.append(request)
        if self.silent and request.key not in _LOOKED_UP:
            await asyncio.Event().wait()
        here = Endpoint(self._server.host, self._server.port)
        view = ClusterView("cluster", NODE_ID, dict.fromkeys((*self.rig.broker_ids, NODE_ID), here))
        if request.key == METADATA:
            topics = topic_metadata(request, self.rig.context)
            return responses.metadata(request, view, topics)
        if request.key == DESCRIBE_CLUSTER:
            return responses.describe_cluster(request, view)
        return await self._topics.serve(request)
