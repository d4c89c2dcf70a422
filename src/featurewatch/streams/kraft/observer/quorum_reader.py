"""The shell around the observer: it owns the connections, and decides nothing."""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from featurewatch.common.text import error_line
from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import Connection, open_connection
from featurewatch.kafka.node_errors import AuthenticationError, LocalResourceError, NodeError
from featurewatch.kafka.security import PLAINTEXT, Security
from featurewatch.streams.kraft.errors import NotAControllerError
from featurewatch.streams.kraft.observer import fetch_api
from featurewatch.streams.kraft.observer.observer import Observer
from featurewatch.streams.kraft.observer.requests import (
    ADVICE,
    FetchRequest,
    ObserverRequest,
    ObserverResponse,
    RequestFailure,
)
from featurewatch.streams.kraft.observer.states import (
    DEFAULT_TIMING,
    Backoff,
    LogProgress,
    ObserverOutput,
    ObserverTiming,
)
from featurewatch.streams.node_addresses import NodeAddresses
from featurewatch.streams.source import monotonic_ms
from featurewatch.streams.types import NO_CHECKSUM, OffsetAndEpoch, Role

LOG: Final = logging.getLogger("featurewatch.kraft")

_MAX_CONNECTIONS: Final = 8
"""Connections that stay open at most: a quorum has three or five controllers."""


@dataclass(frozen=True, slots=True)
class QuorumSettings:
    """Where a cluster's controllers are, how to reach them, and which cluster they must be of.

    Without a ``cluster_id`` the controllers do not check it.
    """

    cluster_id: str | None
    controllers: tuple[Address, ...]
    security: Security = PLAINTEXT
    request_timeout_s: float = 2.0
    """How long a response may take, on top of the wait in the request."""

    timing: ObserverTiming = DEFAULT_TIMING


class QuorumReader:
    """A `LogReader` over the wire; ``monotonic_ms`` gives milliseconds of a monotonic clock.

    ``checksum`` is that of the batch before ``next_position``. ``addresses`` are those of the
    cluster's nodes as far as it told them.
    """

    def __init__(
        self,
        quorum: QuorumSettings,
        next_position: OffsetAndEpoch,
        monotonic_ms: Callable[[], int] = monotonic_ms,
        checksum: int = NO_CHECKSUM,
        addresses: NodeAddresses | None = None,
    ) -> None:
        self._monotonic_ms = monotonic_ms
        self._quorum = quorum
        self._addresses = addresses or NodeAddresses()
        self._observer = Observer(
            quorum.controllers,
            next_position,
            quorum.cluster_id or "",
            random.random,
            quorum.timing,
            checksum,
        )
        self._connections: dict[Address, Connection] = {}
        self._logged: RequestFailure | None = None

    @property
    def progress(self) -> LogProgress:
        """How far the log has been read, and what prevents more."""
        return self._observer.progress

    async def read(self) -> Sequence[ObserverOutput]:
        """Send the observer's next request, or wait."""
        self._observer.learn(self._addresses.of(Role.CONTROLLER, self._quorum.security))
        step = self._observer.next_action(self._monotonic_ms())
        if isinstance(step, Backoff):
            await asyncio.sleep(step.ms / 1000)
            return ()
        try:
            response = await self._send(step)
        except (AuthenticationError, NotAControllerError, LocalResourceError) as error:
            failure = RequestFailure(str(error), permanent=True)
        except NodeError as error:
            failure = RequestFailure(str(error))
        except Exception as error:
            # An unexpected failure, too, counts against this controller alone.
            failure = RequestFailure(f"{step.to}: its answer failed with {error_line(error)}")
            if failure != self._logged:
                LOG.exception("%s: %s", self._quorum.cluster_id, failure.message)
                self._logged = failure
        else:
            return self._observer.on_response(response, self._monotonic_ms())
        self._observer.on_failure(failure, self._monotonic_ms())
        return ()

    async def close(self) -> None:
        """Close all connections."""
        connections = tuple(self._connections.values())
        self._connections.clear()
        for connection in connections:
            await connection.close()

    async def _send(self, values: ObserverRequest) -> ObserverResponse:
        connection = await self._connection_to(values.to)
        request, read = fetch_api.encode_request(values, self._quorum.cluster_id, connection)
        wait_ms = values.max_wait_ms if isinstance(values, FetchRequest) else 0
        timeout_s = self._quorum.request_timeout_s + wait_ms / 1000
        try:
            response = read(await connection.request(request, timeout_s))
        except NodeError:
            if connection.closed:
                self._connections.pop(values.to, None)
            raise
        if response.error in ADVICE:
            # The name of a node of another cluster may lead to ours by the next attempt.
            await self._connections.pop(values.to).close()
        return response

    async def _connection_to(self, address: Address) -> Connection:
        connection = self._connections.pop(address, None)
        if connection is not None and connection.closed:
            # The observer must know: behind the next one there may be another log.
            raise NodeError(f"{address} closed the connection{connection.hint}")
        if connection is None:
            if len(self._connections) >= _MAX_CONNECTIONS:
                await self.close()
            quorum = self._quorum
            connection = await open_connection(
                address, quorum.security, timeout_s=quorum.request_timeout_s
            )
        self._connections[address] = connection
        return connection
