"""The connections of an admin client: to a bootstrap address, to a node, to the controller."""

from typing import NamedTuple

from featurewatch.admin import controller_lookup
from featurewatch.admin.errors import UnreachableError
from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import Connection, NodeError, open_connection
from featurewatch.kafka.security import PLAINTEXT, Security
from featurewatch.kafka.transport import Connect


class Bootstrap(NamedTuple):
    """The addresses of a cluster: brokers, or with ``controllers`` the controllers' listeners."""

    addresses: tuple[Address, ...]
    controllers: bool = False
    security: Security = PLAINTEXT


class ControllerUnavailableError(UnreachableError):
    """There is no controller now; another may be elected."""


class AdminConnections:
    """Connections to the nodes of one cluster, one to an address, kept until `close`.

    ``timeout_s`` is for each step of a connection; ``connect`` as in `open_connection`.
    """

    def __init__(
        self, bootstrap: Bootstrap, timeout_s: float, connect: Connect | None = None
    ) -> None:
        self._bootstrap = bootstrap
        self._connect = connect
        self._timeout_s = timeout_s
        self._addresses = bootstrap.addresses
        self._open: dict[Address, Connection] = {}
        self._further: list[Connection] = []

    def rotate(self) -> None:
        """Starts with the next bootstrap address from now on: this one's controller was wrong."""
        self._addresses = (*self._addresses[1:], self._addresses[0])

    async def close(self) -> None:
        """Closes all of them."""
        for connection in (*self._open.values(), *self._further):
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
        if connection is not None and not connection.closed:
            return connection
        try:
            connection = await self._connect_to(address)
        except NodeError as error:
            raise UnreachableError(str(error)) from error
        self._open[address] = connection
        return connection

    async def further(self, address: Address) -> Connection | None:
        """One beside that of `connection`; None: the node does not take another one."""
        self._further = [other for other in self._further if not other.closed]
        for other in self._further:
            if other.address == address:
                return other
        try:
            connection = await self._connect_to(address)
        except NodeError:
            return None
        self._further.append(connection)
        return connection

    async def _connect_to(self, address: Address) -> Connection:
        return await open_connection(
            address, self._bootstrap.security, timeout_s=self._timeout_s, connect=self._connect
        )

    async def controller(self) -> Connection:
        """A connection to the controller by a node's response.

        Raises: UnreachableError: No node responds. ControllerUnavailableError: There is none now,
            or it is unreachable: another may be elected.
        """
        connection = await self.any_node()
        try:
            if self._bootstrap.controllers:
                address = await controller_lookup.controller_from_quorum(
                    connection, self._timeout_s
                )
            else:
                address = await controller_lookup.controller_from_metadata(
                    connection, self._timeout_s
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
