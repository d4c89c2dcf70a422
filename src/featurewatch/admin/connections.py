"""The connections of an admin client: to a bootstrap address, to a node, to the controller."""

from typing import Final, NamedTuple

from featurewatch.admin import controller_lookup
from featurewatch.admin.errors import UnreachableError
from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import CLIENT_ID, Connection, open_connection
from featurewatch.kafka.node_errors import NodeError
from featurewatch.kafka.security import PLAINTEXT, Security
from featurewatch.kafka.transport import Connect, connect_asyncio

MAX_IDLE: Final = 8
"""Connections kept for the next command. One command may talk to a thousand brokers, but the next
one seldom talks to more than the controller and a broker."""

_CHECK_S: Final = 2.0
"""How long a node may take to respond over an idle connection before a new one is opened."""


class Bootstrap(NamedTuple):
    """The addresses of a cluster: brokers, or with ``controllers`` the controllers' listeners.

    ``is_kip_778``: its nodes respond as KIP-778 is written (`Connection.is_kip_778`).
    ``client_id`` is the name of the client in the brokers' logs and quotas.
    """

    addresses: tuple[Address, ...]
    controllers: bool = False
    security: Security = PLAINTEXT
    is_kip_778: bool = False
    client_id: str = CLIENT_ID


class ControllerUnavailableError(UnreachableError):
    """There is no controller now; another may be elected."""


class AdminConnections:
    """Connections to the nodes of one cluster, one to an address, kept until `close`.

    ``timeout_s`` is for each step of a connection; ``connect`` as in `open_connection`.
    """

    def __init__(
        self, bootstrap: Bootstrap, timeout_s: float, connect: Connect = connect_asyncio
    ) -> None:
        self.bootstrap = bootstrap
        self.timeout_s = timeout_s
        self._connect = connect
        self._addresses = bootstrap.addresses
        self._open: dict[Address, Connection] = {}
        self._further: dict[Address, Connection] = {}
        self._idle: set[Address] = set()

    def rotate(self) -> None:
        """Starts with the next bootstrap address from now on: this one's controller was wrong."""
        self._addresses = (*self._addresses[1:], self._addresses[0])

    async def rest(self) -> None:
        """Keeps a few connections for the next client; each is checked before it is used again."""
        kept = dict([item for item in self._open.items() if not item[1].closed][-MAX_IDLE:])
        for connection in (*self._open.values(), *self._further.values()):
            if connection not in kept.values():
                await connection.close()
        self._open, self._further, self._idle = kept, {}, {*kept}
        self._addresses = self.bootstrap.addresses

    async def close(self) -> None:
        """Closes all of them."""
        for connection in (*self._open.values(), *self._further.values()):
            await connection.close()
        self._open.clear()
        self._further.clear()

    async def any_node(self) -> Connection:
        """A connection to the first bootstrap address that responds."""
        errors = []
        for address in self._addresses:
            try:
                return await self.connection(address)
            except UnreachableError as error:
                errors.append(str(error))
        raise UnreachableError("; ".join(errors))

    async def connection(self, address: Address) -> Connection:
        """The one to an address, a new one if need be; raises `UnreachableError`."""
        connection = self._open.get(address)
        if connection is not None and address in self._idle:
            self._idle.discard(address)
            await self._check(connection)
        if connection is None or connection.closed:
            try:
                connection = await self._connect_to(address)
            except NodeError as error:
                raise UnreachableError(str(error)) from error
            self._open[address] = connection
        return connection

    async def further(self, address: Address) -> Connection | None:
        """A second connection beside that of `connection`; None if the node accepts no more."""
        connection = self._further.get(address)
        if connection is None or connection.closed:
            try:
                connection = self._further[address] = await self._connect_to(address)
            except NodeError:
                return None
        return connection

    async def _check(self, connection: Connection) -> None:
        """Closes an idle connection over which the node does not respond.

        A change has to know that before it is sent, and what the node supports now: it may have
        been restarted with another release.
        """
        try:
            await connection.request_api_versions(min(self.timeout_s, _CHECK_S))
        except NodeError:
            await connection.close()

    async def _connect_to(self, address: Address) -> Connection:
        return await open_connection(
            address,
            self.bootstrap.security,
            timeout_s=self.timeout_s,
            client_id=self.bootstrap.client_id,
            connect=self._connect,
            is_kip_778=self.bootstrap.is_kip_778,
        )

    async def controller(self) -> Connection:
        """A connection to the controller by a node's response.

        Raises: UnreachableError: No node responds. ControllerUnavailableError: The cluster has no
            controller now, or it is unreachable; another may be elected.
        """
        connection = await self.any_node()
        try:
            if self.bootstrap.controllers:
                address = await controller_lookup.controller_from_quorum(connection, self.timeout_s)
            else:
                address = await controller_lookup.controller_from_metadata(
                    connection, self.timeout_s
                )
        except NodeError as error:
            raise UnreachableError(str(error)) from error
        if address is None:
            raise ControllerUnavailableError(f"{connection.address} knows of no controller")
        if address == connection.address:
            return connection
        try:
            return await self.connection(address)
        except UnreachableError as error:
            raise ControllerUnavailableError(
                f"the controller cannot be reached: {error}"
            ) from error
