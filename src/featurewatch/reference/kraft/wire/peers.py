"""Connections to other replicas, by the product's own client (``KafkaNetworkChannel``)."""

import asyncio
from typing import Final

from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import Connection, NodeError, open_connection
from featurewatch.kafka.limits import ResponseLimit
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
from featurewatch.reference.kraft.wire.messages import VERSIONS, answer_of, request_message

_LIMIT: Final = ResponseLimit(24 << 20, 1_000)
_PRE_VOTE_SINCE: Final = 2


class Peers:
    """Two connections to each replica: one for what may be held, one for the rest.

    A replica answers the requests of one connection in order, so a held Fetch would hold up an
    election.
    """

    def __init__(self, client_id: str, timeout_s: float) -> None:
        self._client_id = client_id
        self._timeout_s = timeout_s
        self._connections: dict[tuple[Endpoint, bool], Connection] = {}
        self._locks: dict[tuple[Endpoint, bool], asyncio.Lock] = {}

    async def ask(self, endpoint: Endpoint, request: RaftRequest) -> RaftAnswer | None:
        """Sends a request; None if there was no answer in time, or none that can be read."""
        place = (endpoint, isinstance(request, Fetch | FetchSnapshot))
        try:
            async with asyncio.timeout(self._timeout_s):
                async with self._locks.setdefault(place, asyncio.Lock()):
                    return await self._ask(place, request)
        except (NodeError, TimeoutError):
            return None

    async def _ask(self, place: tuple[Endpoint, bool], request: RaftRequest) -> RaftAnswer | None:
        connection = self._connections.get(place)
        if connection is None or connection.closed:
            endpoint = place[0]
            connection = self._connections[place] = await open_connection(
                Address(endpoint.host, endpoint.port),
                timeout_s=self._timeout_s,
                client_id=self._client_id,
            )
        _, key, versions = VERSIONS[type(request)]
        version = connection.version_of(key, versions)
        is_pre_vote = isinstance(request, Vote) and request.is_pre_vote
        if version is None or (is_pre_vote and version < _PRE_VOTE_SINCE):
            return VoteAnswer(UNSUPPORTED_VERSION) if is_pre_vote else None
        message = request_message(request, version)
        return answer_of(key, await connection.request(message, self._timeout_s, _LIMIT))

    async def close(self) -> None:
        """Closes all connections."""
        for connection in self._connections.values():
            await connection.close()
