"""Sends requests to the controller, to any broker or to one of them. Owns connections and time."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

from featurewatch.admin import controller_lookup
from featurewatch.admin.connections import (
    AdminConnections,
    Bootstrap,
    ControllerUnavailableError,
)
from featurewatch.admin.errors import OutcomeUnknownError, RequestError, UnreachableError
from featurewatch.admin.reassignments.messages import NOT_CONTROLLER, Message
from featurewatch.admin.reassignments.types import RunningBroker
from featurewatch.streams.net.connection import Connection, NodeError
from featurewatch.streams.net.transport import Connect

_PAUSE_S: Final = 0.1
_TIMED_OUT: Final = 7

Compose = Callable[[int], Message]
"""Makes a request of the version given."""


class AdminRequests:
    """Requests to the nodes of one cluster; an asynchronous context that closes its connections.

    ``timeout_s`` bounds a request with all of its attempts, ``connect_timeout_s`` each step of a
    connection. Clients of topics, reassignments and elections are made of it.

    Raises:
        RequestError: No address is named (KIP-4).
    """

    def __init__(
        self,
        bootstrap: Bootstrap,
        *,
        timeout_s: float = 60.0,
        connect_timeout_s: float = 10.0,
        connect: Connect | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if not bootstrap.addresses:
            raise RequestError("no cluster is named: give the address of a broker")
        self.timeout_s = timeout_s
        self.monotonic = monotonic
        self.names_controllers = bootstrap.controllers
        self._connections = AdminConnections(bootstrap, min(connect_timeout_s, timeout_s), connect)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        await self._connections.close()

    async def to_controller(
        self, key: int, versions: tuple[int, int], compose: Compose, *, changes: bool
    ) -> Any:
        """The response of the controller to a request of the highest version that it has.

        A node that is not the controller, none, and one that cannot be reached are tried again
        until the time is up. So is a request that changes nothing and has no response.

        Raises:
            UnreachableError: No controller took it in time, or it has no such request. Nothing was
                changed.
            OutcomeUnknownError: It was sent, ``changes`` something, and no response came.
        """
        import asyncio

        deadline = self.monotonic() + self.timeout_s
        while True:
            try:
                connection = await self._connections.controller()
                response = await self._exchange(connection, key, versions, compose, changes=changes)
            except (ControllerUnavailableError, _NoResponseError) as error:
                why = str(error)
            else:
                if int(response.error_code) != NOT_CONTROLLER:
                    return response
                why = f"{connection.address} is not the controller any more"
            if self.monotonic() + _PAUSE_S > deadline:
                raise UnreachableError(
                    f"no controller took the request in {self.timeout_s:g} s: {why}"
                )
            self._connections.rotate()
            await asyncio.sleep(_PAUSE_S)

    async def to_any_broker(
        self, key: int, versions: tuple[int, int], compose: Compose, *, changes: bool = False
    ) -> Any:
        """The response of the first bootstrap broker that responds; raises as `to_controller`."""
        if self.names_controllers:
            raise RequestError("this takes the brokers of the cluster: give --bootstrap-server")
        connection = await self.any_node()
        controller_lookup.check_broker(connection)
        return await self._exchange(connection, key, versions, compose, changes=changes)

    async def any_node(self) -> Connection:
        """A connection to the first bootstrap address that responds."""
        return await self._connections.any_node()

    async def to_broker(
        self,
        broker: RunningBroker,
        key: int,
        versions: tuple[int, int],
        compose: Compose,
        *,
        changes: bool = False,
    ) -> Any:
        """The response of one broker; raises as `to_controller`, without a second attempt."""
        connection = await self._connections.connection(broker.address)
        return await self._exchange(connection, key, versions, compose, changes=changes)

    async def _exchange(
        self,
        connection: Connection,
        key: int,
        versions: tuple[int, int],
        compose: Compose,
        *,
        changes: bool,
    ) -> Any:
        version = connection.version_of(key, versions)
        if version is None:
            raise NoSuchVersionError(
                f"{connection.address} has no request {key} in versions {versions[0]} to "
                f"{versions[1]}: its Kafka is too old or too new"
            )
        request, form = compose(version)
        try:
            response = await connection.request(request, form, self.timeout_s)
        except NodeError as error:
            if changes:
                raise _outcome_unknown(str(error)) from error
            raise _NoResponseError(str(error)) from error
        if changes and int(getattr(response, "error_code", 0)) == _TIMED_OUT:
            raise _outcome_unknown(f"{connection.address} gave up waiting")
        return response


class NoSuchVersionError(UnreachableError):
    """The node does not have the request in a version that is supported here."""


class _NoResponseError(UnreachableError):
    """A request that changes nothing has no response: it may be sent again."""


def _outcome_unknown(reason: str) -> OutcomeUnknownError:
    return OutcomeUnknownError(f"whether the change was applied is unknown: {reason}")
