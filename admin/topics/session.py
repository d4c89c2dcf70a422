"""Sends requests about topics: to any broker what reads, to the controller what changes.

A shell: it owns connections and time. A request names its response, so one function sends all.
"""

import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Final, Self

from featurewatch.admin.connections import AdminConnections, Bootstrap, ControllerUnavailableError
from featurewatch.admin.controller_lookup import check_broker
from featurewatch.admin.errors import OutcomeUnknownError, RequestError, UnreachableError
from featurewatch.admin.topics.wire import AdminRequest
from featurewatch.streams.net.connection import Connection, NodeError
from featurewatch.streams.net.transport import Connect

NOT_CONTROLLER: Final = 41
_PAUSE_S: Final = 0.1
_SERVER_SHARE: Final = 0.9
"""How much of the time the server may wait, so that its response comes before the time is up."""

Pause = Callable[[float], Awaitable[None]]
Build = Callable[[int], AdminRequest]
"""Makes a request for the controller, which may wait for so many milliseconds."""


class AdminSession:
    """Connections to the brokers of one cluster; use as an asynchronous context, which closes them.

    ``timeout_s`` is how long a call may take, ``connect_timeout_s`` each step of a connection.
    ``connect`` opens the transport of a connection (asyncio's by default); ``pause`` waits between
    two attempts. With `streams.net.transport.connect_blocking` and `blocking_pause` no event loop
    is needed. ``monotonic`` gives seconds of a clock that does not go back.
    """

    def __init__(
        self,
        bootstrap: Bootstrap,
        *,
        timeout_s: float = 60.0,
        connect_timeout_s: float = 10.0,
        connect: Connect | None = None,
        pause: Pause | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if not bootstrap.addresses:
            raise RequestError("no cluster is named: give the address of a broker")
        if bootstrap.controllers:
            raise RequestError("topics are managed through brokers: give a broker's address")
        self._addresses = bootstrap.addresses
        self._timeout_s = timeout_s
        self._monotonic = monotonic
        self._pause = pause or _pause_asyncio
        self._reach = AdminConnections(bootstrap, min(connect_timeout_s, timeout_s), connect)
        self._controller: Connection | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        await self._reach.close()

    async def broker(self) -> Connection:
        """A connection to a broker that responds; raises `UnreachableError`."""
        connection = await self._reach.any_node()
        check_broker(connection)
        return connection

    async def ask(self, request: AdminRequest) -> Any:
        """The response of a broker to what changes nothing; of the next one if it fails.

        Raises:
            UnreachableError: No broker responds, or has the request.
        """
        deadline = self._monotonic() + self._timeout_s
        errors: list[str] = []
        for _ in self._addresses:
            connection = await self.broker()
            try:
                return await self._send(connection, request, deadline)
            except UnreachableError:
                raise
            except NodeError as error:
                errors.append(str(error))
                self._reach.rotate()
        raise UnreachableError("; ".join(dict.fromkeys(errors)))

    async def ask_controller(self, request: AdminRequest) -> Any:
        """The response of a broker, or of the controller if the broker is not the one to ask."""
        response = await self.ask(request)
        if response.error_code != NOT_CONTROLLER:
            return response
        return await self.perform(lambda _: request, _is_refused, changes=False)

    async def perform(
        self, build: Build, is_refused: Callable[[Any], bool], *, changes: bool = True
    ) -> Any:
        """Sends to the controller, and to the next one where it was not the controller.

        The controller is the one that a broker names; it is known until one refuses as such
        (``is_refused`` of its response).

        Raises:
            UnreachableError: The controller was not reached in time. Nothing was changed.
            OutcomeUnknownError: It was sent, and no response came. Only of what ``changes``.
        """
        deadline = self._monotonic() + self._timeout_s
        while True:
            # One that is about to fall to another node may not be named, or not listen, for a time.
            try:
                connection = await self._current_controller()
            except ControllerUnavailableError as error:
                reason = str(error)
            else:
                remaining_s = deadline - self._monotonic()
                request = build(max(1, int(remaining_s * _SERVER_SHARE * 1000)))
                try:
                    response = await self._send(connection, request, deadline)
                except UnreachableError:
                    raise
                except NodeError as error:
                    self._controller = None
                    if not changes:
                        raise UnreachableError(str(error)) from error
                    raise OutcomeUnknownError(
                        f"whether the change was applied is unknown: {error}"
                    ) from error
                if not is_refused(response):
                    return response
                reason = f"{connection.address} is not the controller any more"
            self._controller = None
            if self._monotonic() + _PAUSE_S > deadline:
                raise UnreachableError(
                    f"no controller took the request in {self._timeout_s:g} s: {reason}"
                )
            self._reach.rotate()
            await self._pause(_PAUSE_S)

    async def exchange_with(self, connection: Connection, request: AdminRequest) -> Any:
        """The response of one node; raises `UnreachableError`."""
        try:
            return await self._send(connection, request, self._monotonic() + self._timeout_s)
        except NodeError as error:
            raise UnreachableError(str(error)) from error

    async def _current_controller(self) -> Connection:
        if self._controller is None or self._controller.closed:
            self._controller = await self._reach.controller()
        return self._controller

    async def _send(self, connection: Connection, request: AdminRequest, deadline: float) -> Any:
        """Sends a request and reads the response that its class names.

        Raises:
            UnreachableError: The node has no such version, or the time is up; nothing was sent.
            NodeError: No response.
        """
        key, version = request.__api_key__, request.__version__
        if connection.version_of(key, (version, version)) is None:
            raise UnreachableError(
                f"{connection.address} has no version {version} of the API {key}, which Kafka 3.3 "
                "and later have"
            )
        remaining_s = deadline - self._monotonic()
        if remaining_s <= 0:
            raise UnreachableError(f"{connection.address} was not reached in {self._timeout_s:g} s")
        return await connection.request(
            request, request.__response__, remaining_s, request.__limit__
        )


async def _pause_asyncio(seconds: float) -> None:
    import asyncio

    await asyncio.sleep(seconds)


async def blocking_pause(seconds: float) -> None:
    """A pause without an event loop."""
    time.sleep(seconds)


def _is_refused(response: Any) -> bool:
    return bool(response.error_code == NOT_CONTROLLER)
