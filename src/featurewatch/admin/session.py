"""The session of an admin client: requests to any broker, to the controller, or to one node.

A shell: it owns connections and time. Every client of this package is one, so that all of them find
the controller, wait, give up and report in the same way. The type of a request names that of its
response, so one function sends them all.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Final, Self, TypedDict, TypeVar

from featurewatch.admin.api_errors import NOT_CONTROLLER, TIMED_OUT
from featurewatch.admin.connections import AdminConnections, Bootstrap, ControllerUnavailableError
from featurewatch.admin.controller_lookup import check_broker
from featurewatch.admin.errors import OutcomeUnknownError, RequestError, UnreachableError
from featurewatch.kafka.address import Address, parse_addresses
from featurewatch.kafka.client_config.network import NETWORK_DEFAULTS, NetworkSettings
from featurewatch.kafka.client_properties import client_config, read_client_config
from featurewatch.kafka.connection import CLIENT_ID, Connection
from featurewatch.kafka.limits import admin_limit
from featurewatch.kafka.messages import Request
from featurewatch.kafka.node_errors import NodeError

_TIMEOUT_S: Final = 60.0
_CONNECT_TIMEOUT_S: Final = 10.0
_SERVER_SHARE: Final = 0.9
"""How much of the time the server may wait, so that its response comes before the time is up."""

_RESPONSE = TypeVar("_RESPONSE")
Build = Callable[[int], Request[_RESPONSE]]
"""Makes a request for the controller, which may wait for this many milliseconds."""


class SessionOptions(TypedDict, total=False):
    """The options of every client, as `AdminSession` has them."""

    timeout_s: float
    connect_timeout_s: float
    connections: AdminConnections | None
    network: NetworkSettings
    pause: Callable[[float], Awaitable[None]]
    monotonic: Callable[[], float]


class NoSuchVersionError(UnreachableError):
    """The node does not have the request in the version that is sent."""


class AdminSession:
    """Connections to the nodes of one cluster; use as an asynchronous context, which closes them.

    ``timeout_s`` is how long a call may take, ``connect_timeout_s`` each step of a connection.
    ``connections`` are the caller's, who closes them (None: the client's own). Of ``network`` count
    the time for one request (None: as long as the call), how often a call is sent again to another
    controller, and the pause before. ``pause`` waits; ``monotonic`` gives seconds of a clock that
    does not go back.

    Raises:
        RequestError: No address is named (KIP-4), or one of controllers by a client of brokers.
    """

    serves_controllers: ClassVar[bool] = False
    """Whether some calls of this client can be sent through controllers' listeners."""

    def __init__(
        self,
        bootstrap: Bootstrap,
        *,
        timeout_s: float = _TIMEOUT_S,
        connect_timeout_s: float = _CONNECT_TIMEOUT_S,
        connections: AdminConnections | None = None,
        network: NetworkSettings = NETWORK_DEFAULTS,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if not bootstrap.addresses:
            or_controller = " or of a controller" if self.serves_controllers else ""
            raise RequestError(f"no cluster is named: give the address of a broker{or_controller}")
        if bootstrap.controllers and not self.serves_controllers:
            raise RequestError("topics are managed through brokers: give a broker's address")
        self._bootstrap = bootstrap
        self._timeout_s = timeout_s
        self._connect_timeout_s = min(connect_timeout_s, timeout_s)
        self._monotonic = monotonic
        self._pause = pause
        self._network = network
        self._request_timeout_s = min(network.request_timeout_s or timeout_s, timeout_s)
        self._is_owner = connections is None
        self._connections = connections or AdminConnections(bootstrap, self._connect_timeout_s)
        self._controller: Connection | None = None

    @classmethod
    def connect(
        cls,
        servers: str = "",
        *,
        controllers: str = "",
        config: str | os.PathLike[str] | Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        **options: Any,
    ) -> Self:
        """A client of the cluster with these brokers, as ``host:port,host:port``.

            async with TopicAdmin.connect("kafka-1:9092", config="client.properties") as admin:
                print(await admin.list_topics())

        It connects at its first call. ``controllers`` are controllers' listeners instead of
        brokers; ``config`` is a properties file as Kafka's tools take it, or its properties, with
        TLS, SASL and those of the network client (`NetworkSettings`), of which ``timeout_s``
        replaces ``default.api.timeout.ms``. The other options are those of the class.

        Raises:
            RequestError: An address or a property is wrong, or no address is given.
        """
        if servers and controllers:
            raise RequestError("give brokers or controllers, not both")
        try:
            addresses = parse_addresses(servers or controllers)
            if config is None or isinstance(config, Mapping):
                properties = client_config(config or {})
            else:
                properties = read_client_config(Path(config))
        except ValueError as error:
            raise RequestError(str(error)) from None
        network = properties.network
        return cls(
            Bootstrap(
                addresses,
                bool(controllers),
                properties.security,
                client_id=network.client_id or CLIENT_ID,
            ),
            timeout_s=timeout_s or network.api_timeout_s or _TIMEOUT_S,
            connect_timeout_s=network.connect_timeout_s or _CONNECT_TIMEOUT_S,
            network=network,
            **options,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if self._is_owner:
            await self._connections.close()

    @property
    def names_controllers(self) -> bool:
        """Whether the bootstrap addresses are controllers' listeners."""
        return self._bootstrap.controllers

    async def broker(self) -> Connection:
        """A connection to a broker that responds.

        Raises:
            RequestError: The addresses are those of controllers.
            UnreachableError: None responds.
        """
        if self.names_controllers:
            raise RequestError("this takes the brokers of the cluster: pass --bootstrap-server")
        connection = await self._connections.any_node()
        check_broker(connection)
        return connection

    async def ask(self, request: Request[_RESPONSE]) -> _RESPONSE:
        """The response of a broker to what changes nothing; of the next one if it fails.

        Raises:
            UnreachableError: No broker responds, or has the request.
        """
        return await self._asked(request, self._monotonic() + self._timeout_s)

    async def _asked(self, request: Request[_RESPONSE], deadline: float) -> _RESPONSE:
        errors: list[str] = []
        for _ in self._bootstrap.addresses:
            connection = await self.broker()
            try:
                return await self._send(connection, request, deadline)
            except UnreachableError:
                raise
            except NodeError as error:
                errors.append(str(error))
                self._connections.rotate()
        raise UnreachableError("; ".join(dict.fromkeys(errors)))

    async def ask_all(self, requests: Sequence[Request[_RESPONSE]]) -> list[_RESPONSE]:
        """The responses of a broker to what changes nothing, in the order of the requests.

        Two requests are on their way at a time, over two connections: a broker works on those of
        one connection one after another. What gets no response this way is asked once more.

        Raises:
            UnreachableError: No broker responds, or has the request.
        """
        deadline = self._monotonic() + self._timeout_s
        responses: dict[int, _RESPONSE] = {}
        pending = iter(range(len(requests)))

        async def work(connection: Connection) -> None:
            for number in pending:
                responses[number] = await self._send(connection, requests[number], deadline)

        if len(requests) > 1:
            first = await self.broker()
            second = await self._connections.further(first.address)
            both = [work(first)] if second is None else [work(first), work(second)]
            for error in await asyncio.gather(*both, return_exceptions=True):
                if error is not None and not isinstance(error, NodeError):
                    raise error
        return [
            responses[number] if number in responses else await self._asked(request, deadline)
            for number, request in enumerate(requests)
        ]

    async def perform(
        self,
        build: Build[_RESPONSE],
        is_refused: Callable[[_RESPONSE], bool] | None = None,
        *,
        changes: bool = True,
    ) -> _RESPONSE:
        """Sends to the controller, and to the next one where it was not the controller.

        ``is_refused`` tells that of a response; by default its error is NOT_CONTROLLER.

        Raises:
            UnreachableError: The controller was not reached in time. Nothing was changed.
            OutcomeUnknownError: It was sent, and no response came, or the server gave up waiting.
                Only of what ``changes``.
        """
        deadline = self._monotonic() + self._timeout_s

        async def send(connection: Connection) -> _RESPONSE:
            remaining_s = self._request_s(deadline)
            request = build(max(1, int(remaining_s * _SERVER_SHARE * 1000)))
            return await self._sent(connection, request, deadline, changes=changes)

        return await self.on_controller(send, is_refused or _is_refused)

    async def on_controller(
        self,
        send: Callable[[Connection], Awaitable[_RESPONSE]],
        is_refused: Callable[[_RESPONSE], bool],
    ) -> _RESPONSE:
        """The result of ``send`` with the controller, and with the next one where it was not the
        controller.

        The controller is the one that a node names; it is known until one refuses as such.

        Raises:
            UnreachableError: No controller took it in time. What ``send`` raises passes through.
        """
        deadline = self._monotonic() + self._timeout_s
        repeats = 0
        while True:
            # One that is about to fall to another node may not be named, or not listen, for a time.
            try:
                connection = await self._current_controller()
            except ControllerUnavailableError as error:
                reason = str(error)
            else:
                response = await send(connection)
                if not is_refused(response):
                    return response
                reason = f"{connection.address} is not the controller any more"
            self._controller = None
            if repeats >= self._network.max_repeats:
                raise UnreachableError(
                    f"no controller took the request (retries={repeats}): {reason}"
                )
            if self._monotonic() + self._network.backoff_s > deadline:
                raise UnreachableError(
                    f"no controller took the request in {self._timeout_s:g} s: {reason}"
                )
            repeats += 1
            self._connections.rotate()
            await self._pause(self._network.backoff_s)

    async def exchange_with(
        self, address: Address, request: Request[_RESPONSE], *, changes: bool = False
    ) -> _RESPONSE:
        """The response of one node.

        Raises:
            UnreachableError: It does not respond. Nothing was changed.
            OutcomeUnknownError: It was sent and ``changes`` something, and no response came.
        """
        connection = await self._connections.connection(address)
        deadline = self._monotonic() + self._timeout_s
        return await self._sent(connection, request, deadline, changes=changes)

    async def _current_controller(self) -> Connection:
        if self._controller is None or self._controller.closed:
            self._controller = await self._connections.controller()
        return self._controller

    async def _sent(
        self,
        connection: Connection,
        request: Request[_RESPONSE],
        deadline: float,
        *,
        changes: bool,
    ) -> _RESPONSE:
        try:
            response = await self._send(connection, request, deadline)
        except UnreachableError:
            raise
        except NodeError as error:
            if not changes:
                raise UnreachableError(str(error)) from error
            raise outcome_unknown(str(error)) from error
        if changes and getattr(response, "error_code", 0) == TIMED_OUT:
            raise outcome_unknown(f"{connection.address} gave up waiting")
        return response

    async def _send(
        self, connection: Connection, request: Request[_RESPONSE], deadline: float
    ) -> _RESPONSE:
        """Sends a request and reads its response.

        Raises:
            UnreachableError: The node has no such version, or the time is up; nothing was sent.
            NodeError: No response.
        """
        key, version = request.__api_key__, request.__version__
        if connection.version_of(key, (version, version)) is None:
            raise NoSuchVersionError(
                f"{connection.address} has no version {version} of the API {key}, which Kafka 3.3 "
                "and later have"
            )
        remaining_s = self._request_s(deadline)
        if remaining_s <= 0:
            raise UnreachableError(f"{connection.address} was not reached in {self._timeout_s:g} s")
        return await connection.request(request, remaining_s, admin_limit(key))

    def _request_s(self, deadline: float) -> float:
        """How long one request may take: what is left of the call, or ``request.timeout.ms``."""
        return min(deadline - self._monotonic(), self._request_timeout_s)


def outcome_unknown(reason: str) -> OutcomeUnknownError:
    """The error that a change was sent, and whether it was applied is not known."""
    return OutcomeUnknownError(f"whether the change was applied is unknown: {reason}")


def _is_refused(response: Any) -> bool:
    return bool(response.error_code == NOT_CONTROLLER)
