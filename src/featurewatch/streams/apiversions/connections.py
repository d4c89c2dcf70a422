"""Connections to nodes, kept open from one round to the next."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import Connection, ExpectedNode, open_connection
from featurewatch.kafka.node_errors import NodeError, OtherNodeError, ResponseTimeoutError
from featurewatch.streams.apiversions.node_features import NodeFeatures, read_node_features
from featurewatch.streams.apiversions.settings import ApiVersionsSettings
from featurewatch.streams.types import ClusterId, NodeKey, Role

if TYPE_CHECKING:
    from featurewatch.kafka.connection import AnyApiVersionsResponse


class ConnectionPool:
    """The open connections of a source, one to an address."""

    def __init__(self, settings: ApiVersionsSettings) -> None:
        self._settings = settings
        self._open: dict[tuple[Role, Address], Connection] = {}

    @property
    def timeout_s(self) -> float:
        """How long one request may take."""
        return self._settings.timeout_s

    async def request_features(
        self, key: NodeKey, address: Address, cluster: ClusterId | None = None
    ) -> NodeFeatures:
        """The features of a node of this cluster.

        Raises `NodeError` with one line that says why it has none, and `OtherNodeError` if
        another node listens there.
        """
        expected = None
        if cluster is not None and key.role is Role.BROKER:
            expected = ExpectedNode(cluster, key.node_id)
        reused = self._reusable(key.role, address)
        if reused is not None:
            try:
                response = await reused.request_api_versions(self._settings.timeout_s, expected)
                return _features(address, response)
            except ResponseTimeoutError:
                raise
            except OtherNodeError:
                await reused.close()  # the same name may lead to this node by the next time
                raise
            except NodeError:
                # A restarted node closed its end of the old connection: that alone is no miss.
                await reused.close()
        connection = await self.connection(key.role, address, expected)
        # A new connection begins with an ApiVersions request anyway.
        first = connection.last_api_versions
        return _features(
            address,
            first or await connection.request_api_versions(self._settings.timeout_s, expected),
        )

    async def connection(
        self, role: Role, address: Address, expected: ExpectedNode | None = None
    ) -> Connection:
        """The connection to an address, a new one if need be; raises `NodeError`."""
        reused = self._reusable(role, address)
        if reused is not None:
            return reused
        connection = await open_connection(
            address,
            self._settings.security_of(role),
            timeout_s=self._settings.timeout_s,
            expected=expected,
        )
        self._open[role, address] = connection
        return connection

    async def retain(self, wanted: Iterable[tuple[Role, Address]]) -> None:
        """Close the connections to all other addresses."""
        for role_and_address in self._open.keys() - set(wanted):
            await self._open.pop(role_and_address).close()

    def _reusable(self, role: Role, address: Address) -> Connection | None:
        connection = self._open.get((role, address))
        if connection is None or not connection.closed:
            return connection
        del self._open[role, address]
        return None


def _features(address: Address, response: "AnyApiVersionsResponse") -> NodeFeatures:
    try:
        return read_node_features(response)
    except ValueError as error:
        raise NodeError(f"{address} sent an invalid response: {error}") from error
