"""The one listener of all light brokers of a process."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from featurewatch.kafka.messages import message_class
from featurewatch.reference.kraft.machines.broker.connections import (
    ClientConnected,
    ClientGone,
)
from featurewatch.reference.kraft.machines.broker.light_brokers import (
    LightEvent,
)
from featurewatch.reference.kraft.machines.controller.settings import Form
from featurewatch.reference.kraft.wire.messages import API_VERSIONS
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.wire.api_keys import ApiDialect, Versions
from featurewatch.reference.zookeeper.wire.frames import WireRequest, read_offered
from featurewatch.reference.zookeeper.wire.responses import api_versions, api_versions_error
from featurewatch.reference.zookeeper.wire.server import WireServer

MAX_CLIENTS: Final = 1_000
SERVED: Final[Mapping[int, Versions]] = {API_VERSIONS: (0, 4)}


class BrokerListener(WireServer):
    """The one listener of all brokers of a process, which answers ApiVersions."""

    def __init__(
        self,
        form: Form,
        features: Callable[[], Any],
        on: Callable[[LightEvent], None],
        **place: Any,
    ) -> None:
        self._dialect = ApiDialect.KIP_778 if form is Form.KIP_778 else ApiDialect.RELEASED
        super().__init__(self._dialect, self._handle, name="light brokers", **place)
        self._features = features
        self._on = on
        self._writers: dict[int, asyncio.StreamWriter] = {}
        self._numbers = 0

    def decode(self, frame: bytes) -> WireRequest:
        """See `WireServer.decode`."""
        return read_offered(
            frame, SERVED, lambda _, version: message_class("ApiVersionsRequest", version)
        )

    def close_client(self, connection_id: int) -> None:
        """Closes a connection, after what was written to it."""
        writer = self._writers.get(connection_id)
        if writer is not None:
            writer.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._writers) >= MAX_CLIENTS:
            writer.close()
            return
        self._numbers += 1
        number = self._numbers
        self._writers[number] = writer
        self._on(ClientConnected(number))
        try:
            await super()._connected(reader, writer)
        finally:
            del self._writers[number]
            self._on(ClientGone(number))

    async def _handle(self, request: WireRequest) -> Any:
        if request.body is None:
            return api_versions_error(ErrorCode.UNSUPPORTED_VERSION)
        response, offered = self._features()
        return api_versions(request, self._dialect, response, offered)
