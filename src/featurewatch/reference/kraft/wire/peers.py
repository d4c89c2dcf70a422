"""Connections to other replicas, by the product's own client (``KafkaNetworkChannel``)."""

import asyncio
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, Final

from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import Connection, open_connection
from featurewatch.kafka.limits import ResponseLimit
from featurewatch.kafka.node_errors import NodeError
from featurewatch.reference.kraft.machines.controller.requests import (
    ControllerRequest,
    ControllerResponse,
)
from featurewatch.reference.kraft.machines.metadata.state import Feature
from featurewatch.reference.kraft.machines.replicas import Endpoint
from featurewatch.reference.kraft.machines.requests import (
    UNSUPPORTED_VERSION,
    Fetch,
    FetchSnapshot,
    RaftAnswer,
    RaftRequest,
    Vote,
    VoteAnswer,
)
from featurewatch.reference.kraft.wire.controller_messages import (
    APIS,
    controller_request_message,
    controller_response_of,
)
from featurewatch.reference.kraft.wire.messages import VERSIONS, answer_of, request_message

_LIMIT: Final = ResponseLimit(24 << 20, 1_000)
_PRE_VOTE_SINCE: Final = 2


class _Lane(Enum):
    """One of the connections to a replica."""

    RAFT = auto()
    FETCH = auto()
    CONTROLLER = auto()


_Place = tuple[Endpoint, _Lane]


class Peers:
    """Up to three connections to each replica: for Fetches, for elections, for its controller.

    A replica answers the requests of one connection in order, so a held Fetch would hold up an
    election.
    """

    def __init__(self, client_id: str, timeout_s: float, *, is_kip_778: bool = False) -> None:
        self._is_kip_778 = is_kip_778
        self._client_id = client_id
        self._timeout_s = timeout_s
        self._connections: dict[_Place, Connection] = {}
        self._locks: dict[_Place, asyncio.Lock] = {}

    async def ask(self, endpoint: Endpoint, request: RaftRequest) -> RaftAnswer | None:
        """Sends a request; None if there was no answer in time, or none that can be read."""
        lane = _Lane.FETCH if isinstance(request, Fetch | FetchSnapshot) else _Lane.RAFT
        _, key, versions = VERSIONS[type(request)]
        is_pre_vote = isinstance(request, Vote) and request.is_pre_vote

        def build(version: int | None) -> Any:
            if version is None or (is_pre_vote and version < _PRE_VOTE_SINCE):
                return None
            return request_message(request, version)

        try:
            message = await self._exchange((endpoint, lane), key, versions, build)
        except (NodeError, TimeoutError):
            return None
        if message is None:
            return VoteAnswer(UNSUPPORTED_VERSION) if is_pre_vote else None
        return answer_of(key, message)

    async def ask_controller(
        self, endpoint: Endpoint, request: ControllerRequest
    ) -> ControllerResponse | None:
        """Sends a request to a controller; None if there was no answer, as in `ask`."""
        api = APIS[type(request)]

        def build(version: int | None) -> Any:
            return None if version is None else controller_request_message(request, version)

        place = (endpoint, _Lane.CONTROLLER)
        try:
            message = await self._exchange(place, api.key, api.versions, build)
        except (NodeError, TimeoutError):
            return None
        return None if message is None else controller_response_of(api.key, message)

    async def supported(self, endpoint: Endpoint) -> tuple[Feature, ...] | None:
        """The features that a controller supports; None if there was no answer, as in `ask`."""
        place = (endpoint, _Lane.CONTROLLER)
        try:
            async with asyncio.timeout(self._timeout_s):
                async with self._locks.setdefault(place, asyncio.Lock()):
                    connection = await self._connection(place)
                    response: Any = await connection.request_api_versions(self._timeout_s)
        except (NodeError, TimeoutError):
            return None
        return tuple(
            Feature(one.name, one.min_version, one.max_version)
            for one in getattr(response, "supported_features", ())
        )

    async def _exchange(
        self,
        place: "_Place",
        key: int,
        versions: tuple[int, int],
        build: Callable[[int | None], Any],
    ) -> Any:
        """The response to what ``build`` makes of the newest version that both sides have.

        None: it makes nothing of it.
        """
        async with asyncio.timeout(self._timeout_s):
            async with self._locks.setdefault(place, asyncio.Lock()):
                connection = await self._connection(place)
                message = build(connection.version_of(key, versions))
                if message is None:
                    return None
                return await connection.request(message, self._timeout_s, _LIMIT)

    async def _connection(self, place: "_Place") -> Connection:
        connection = self._connections.get(place)
        if connection is None or connection.closed:
            endpoint = place[0]
            connection = self._connections[place] = await open_connection(
                Address(endpoint.host, endpoint.port),
                timeout_s=self._timeout_s,
                client_id=self._client_id,
                is_kip_778=self._is_kip_778,
            )
        return connection

    async def close(self) -> None:
        """Closes all connections."""
        for connection in self._connections.values():
            await connection.close()
