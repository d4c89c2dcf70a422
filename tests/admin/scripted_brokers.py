"""Brokers that answer requests about topics as a test wants, in Kafka's own bytes."""

import asyncio
import ssl
import struct
from collections import deque
from collections.abc import Callable
from typing import Any

from featurewatch.admin.connections import AdminConnections, Bootstrap
from featurewatch.kafka.address import Address
from featurewatch.kafka.decode import read_entity, skip_header
from featurewatch.kafka.encode import write_entity
from featurewatch.kafka.messages import (
    ApiVersionsResponseV4,
    MetadataRequestV12,
    MetadataResponseV1,
    MetadataResponseV12,
)
from featurewatch.kafka.transport import Transport

VERSIONS = {
    3: (0, 13),
    18: (0, 4),
    19: (2, 7),
    20: (1, 6),
    32: (1, 4),
    37: (0, 3),
    44: (0, 1),
    55: (0, 2),
    75: (0, 0),
    80: (0, 1),
    81: (0, 0),
}

Answer = Callable[[Any], Any]
"""Makes the response to a request, or its bytes; raises `EOFError` to close the connection."""


class ScriptedBrokers:
    """Brokers 1, 2, …: ``answers`` are what each gives, one after another, to what is no Metadata.

    ``controllers`` are the ids that Metadata names, one after another; the last one stays.
    """

    def __init__(self, request_class: Any, *controllers: int, **answers: list[Answer]) -> None:
        self.request_class = request_class
        self.controllers = deque(controllers)
        self.answers = {int(name[1:]): deque(given) for name, given in answers.items()}
        self.received: list[tuple[int, Any]] = []
        self.response_limits: dict[int, int] = {}
        """How large a response may be, by the key of the request."""
        self.addresses = tuple(Address(f"broker-{node}", 9092) for node in self.answers)

    async def connect(
        self, address: Address, _tls: ssl.SSLContext | None, _timeout_s: float
    ) -> Transport:
        """A `Connect`."""
        return _ScriptedTransport(self, int(address.host.removeprefix("broker-")))

    def connections(self) -> AdminConnections:
        """Connections to all of them."""
        return AdminConnections(Bootstrap(self.addresses), 10.0, self.connect)

    def brokers(self, kind: Any) -> tuple[Any, ...]:
        """The brokers of a Metadata response."""
        return tuple(
            kind(node_id=node, host=f"broker-{node}", port=9092, rack=None) for node in self.answers
        )

    def next_controller(self) -> int:
        """The id that is named now."""
        return self.controllers.popleft() if len(self.controllers) > 1 else self.controllers[0]


class _ScriptedTransport:
    def __init__(self, cluster: ScriptedBrokers, node: int) -> None:
        self._cluster, self._node = cluster, node
        self.closed = False

    async def exchange(self, frame: bytes, _timeout_s: float, max_bytes: int) -> bytes:
        await asyncio.sleep(0)
        key, version, correlation_id = struct.unpack_from(">hhi", frame, 4)
        self._cluster.response_limits[key] = max_bytes
        if key == 18:
            form = ApiVersionsResponseV4
            versions = tuple(
                form.ApiVersion(api_key=api, min_version=low, max_version=high)
                for api, (low, high) in VERSIONS.items()
            )
            body = write_entity(form(error_code=0, api_keys=versions, throttle_time_ms=0))
            return struct.pack(">i", correlation_id) + body
        if (key, version) == (3, 1):
            response: Any = MetadataResponseV1(
                brokers=self._cluster.brokers(MetadataResponseV1.MetadataResponseBroker),
                controller_id=self._cluster.next_controller(),
                topics=(),
            )
            return struct.pack(">i", correlation_id) + write_entity(response)
        if key == 3:
            start = skip_header(frame, 12, flexible=True)
            request, _ = read_entity(MetadataRequestV12, frame, start)
            response = MetadataResponseV12(
                throttle_time_ms=0,
                brokers=self._cluster.brokers(MetadataResponseV12.MetadataResponseBroker),
                cluster_id="cluster",
                controller_id=1,
                topics=(),
            )
        else:
            start = skip_header(frame, 12, flexible=True)
            request, _ = read_entity(self._cluster.request_class, frame, start)
            self._cluster.received.append((self._node, request))
            response = self._cluster.answers[self._node].popleft()(request)
        body = response if isinstance(response, bytes) else write_entity(response)
        return struct.pack(">ib", correlation_id, 0) + body

    def close(self) -> None:
        self.closed = True

    async def wait_closed(self) -> None:
        pass
