"""A node that speaks as much Kafka as the source asks for, with answers that a test sets."""

import asyncio
import io
import struct
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from kio.schema.api_versions import v3, v4
from kio.schema.describe_cluster import v1 as cluster_v1
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId
from kio.serial import entity_writer
from kio.static.primitive import i16, i32, i32Timedelta, i64
from kio.static.protocol import Entity

from featurewatch.kafka.address import Address

API_VERSIONS, DESCRIBE_CLUSTER = 18, 60
THROTTLE = i32Timedelta.parse(timedelta(0))

NOWHERE = Address("", 1)

Feature = tuple[str, int, int]


@dataclass
class ScriptedNode:
    """The answers of a node; change them while it runs. ``mute``: it never responds.

    ``newest`` is the highest version of ApiVersions that it knows. ``brokers`` are what it lists:
    id and address.
    """

    cluster: str = "scripted"
    supported: list[Feature] = field(default_factory=lambda: [("metadata.version", 7, 30)])
    finalized: dict[str, int] = field(default_factory=lambda: {"metadata.version": 20})
    epoch: int = 10
    newest: int = 4
    mute: bool = False
    brokers: list[tuple[int, Address]] = field(default_factory=list)
    address: Address = NOWHERE
    api_keys: list[int] = field(default_factory=list)
    """The API keys of the questions that came."""
    connections: int = 0
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers one connection until it ends."""
        self.connections += 1
        self.writers.append(writer)
        try:
            while True:
                (length,) = struct.unpack(">i", await reader.readexactly(4))
                key, version, correlation = struct.unpack(
                    ">hhi", (await reader.readexactly(length))[:8]
                )
                self.api_keys.append(key)
                if self.mute:
                    continue
                body = struct.pack(">i", correlation) + self.respond(key, version)
                writer.write(struct.pack(">i", len(body)) + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    def close_connections(self) -> None:
        """Closes the node's side of every connection."""
        while self.writers:
            self.writers.pop().close()

    def respond(self, key: int, version: int) -> bytes:
        """The response without length and correlation id."""
        if key == DESCRIBE_CLUSTER:
            return b"\0" + _bytes_of(self._cluster())
        if version > self.newest:
            # KIP-511: error 35 and the range of ApiVersions, in the form of version 0.
            return struct.pack(">hihhh", 35, 1, API_VERSIONS, 0, self.newest)
        return _bytes_of(self._features(version))

    def _features(self, version: int) -> Entity:
        form = {3: v3.response, 4: v4.response}[version]
        response: Entity = form.ApiVersionsResponse(
            error_code=ErrorCode.none,
            api_keys=tuple(
                form.ApiVersion(api_key=i16(k), min_version=i16(0), max_version=i16(highest))
                for k, highest in ((API_VERSIONS, self.newest), (DESCRIBE_CLUSTER, 1))
            ),
            throttle_time=THROTTLE,
            supported_features=tuple(
                form.SupportedFeatureKey(name=n, min_version=i16(low), max_version=i16(high))
                for n, low, high in self.supported
                if low != 0 or version >= 4
            ),
            finalized_features_epoch=i64(self.epoch),
            finalized_features=tuple(
                form.FinalizedFeatureKey(
                    name=n, max_version_level=i16(level), min_version_level=i16(level)
                )
                for n, level in self.finalized.items()
            ),
        )
        return response

    def _cluster(self) -> Entity:
        form = cluster_v1.response
        return form.DescribeClusterResponse(
            throttle_time=THROTTLE,
            error_code=ErrorCode.none,
            error_message=None,
            cluster_id=self.cluster,
            controller_id=BrokerId(1),
            brokers=tuple(
                form.DescribeClusterBroker(
                    broker_id=BrokerId(node_id),
                    host=address.host,
                    port=i32(address.port),
                    rack=None,
                )
                for node_id, address in self.brokers
            ),
        )


def _bytes_of(entity: Entity) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


@asynccontextmanager
async def listening(nodes: Iterable[ScriptedNode]) -> AsyncIterator[None]:
    """All nodes listen on loopback, and each lists all of them as brokers 1, 2, …"""
    nodes = list(nodes)
    servers = []
    try:
        for node in nodes:
            server = await asyncio.start_server(node.serve, "127.0.0.1", 0)
            servers.append(server)
            node.address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
        for node in nodes:
            node.brokers = [(index, other.address) for index, other in enumerate(nodes, 1)]
        yield
    finally:
        for server in servers:
            server.close()
