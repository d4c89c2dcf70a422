"""Reads the features of a cluster's nodes. A shell: it owns the connections.

What changes them is in `admin.features.client`, apart from this, so that a command that only reads
loads only this.
"""

import asyncio
from typing import Final, Unpack

from featurewatch.admin import controller_lookup
from featurewatch.admin.connections import Bootstrap
from featurewatch.admin.errors import UnreachableError
from featurewatch.admin.features.metadata import (
    FeatureDialect,
    FeatureMetadata,
    NodeDescription,
    read_metadata,
)
from featurewatch.admin.session import AdminSession, SessionOptions
from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import Connection
from featurewatch.kafka.node_errors import NodeError
from featurewatch.streams.types import NodeId, Role

_UPDATE_FEATURES: Final = 57


class FeatureReader(AdminSession):
    """Reads one cluster's features; use as an asynchronous context, which closes the connections.

    The parameters are those of `AdminSession`.
    """

    serves_controllers = True

    def __init__(
        self,
        bootstrap: Bootstrap,
        *,
        dialect: FeatureDialect = FeatureDialect.RELEASED,
        **options: Unpack[SessionOptions],
    ) -> None:
        is_kip_778 = dialect is FeatureDialect.KIP_778
        super().__init__(bootstrap._replace(is_kip_778=is_kip_778), **options)
        self._dialect = dialect

    async def describe(
        self, *, node_id: NodeId | None = None, controller: bool = False
    ) -> FeatureMetadata:
        """A node's supported ranges, and the finalized levels as it has them.

        Without ``node_id``: the first broker that answers, with ``controller`` the controller that
        it names; of controllers the active one.

        Raises:
            UnreachableError: The node does not answer, there is none of that id, a controller
                listens where a broker is expected, or it has another dialect.
        """
        if node_id is not None:
            return await self._node(node_id)
        if controller or self._bootstrap.controllers:
            connection = await self._connections.controller()
        else:
            connection = await self._connections.any_node()
            controller_lookup.check_broker(connection)
        return await self._ask(connection)

    async def describe_all(self) -> tuple[NodeDescription, ...]:
        """Every node's features, or why they are unknown; ordered by role and id.

        Brokers, and the controllers as far as the cluster lists them: a broker does so from 3.9 on
        (DESCRIBE on the cluster), a controller from 3.7 on (ALTER).

        Raises:
            UnreachableError: No node lists the nodes.
        """
        from featurewatch.admin.features.node_listing import list_nodes

        nodes = await list_nodes(self._bootstrap, self._connect_timeout_s)
        answers = (
            self._answer(role, node_id, address) for (role, node_id), address in nodes.items()
        )
        return tuple(await asyncio.gather(*answers))

    async def _node(self, node_id: NodeId) -> FeatureMetadata:
        from featurewatch.admin.features.node_listing import list_nodes

        role = Role.CONTROLLER if self._bootstrap.controllers else Role.BROKER
        nodes = await list_nodes(self._bootstrap, self._connect_timeout_s)
        address = nodes.get((role, node_id))
        if address is None:
            ids = ", ".join(str(known_id) for kind, known_id in nodes if kind is role) or "none"
            raise UnreachableError(f"there is no {role} {node_id}: the cluster has {ids}")
        return await self._ask(await self._connections.connection(address))

    async def _answer(self, role: Role, node_id: NodeId, address: Address) -> NodeDescription:
        try:
            metadata = await self._ask(await self._connections.connection(address))
        except NodeError as error:
            return NodeDescription(role, node_id, error=str(error))
        return NodeDescription(role, node_id, metadata)

    async def _ask(self, connection: Connection) -> FeatureMetadata:
        """A node's features; of released Kafka the handshake had the first response."""
        timeout_s = self._connect_timeout_s
        try:
            if not self._dialect.is_draft:
                first, connection.last_api_versions = connection.last_api_versions, None
                answer = first or await connection.request_api_versions(timeout_s)
                return read_metadata(answer, connection.address)
            from featurewatch.admin.features import kip584_drafts as drafts

            check_draft(connection)
            response = await connection.request(drafts.features_request(), timeout_s)
        except NodeError as error:
            raise UnreachableError(str(error)) from error
        return read_metadata(response, connection.address, drafts.LEVEL_FIELD)


def check_draft(connection: Connection) -> None:
    """Raises `UnreachableError` for a draft's request to released Kafka.

    Its response would have no features, which are in other tags, and it would read a draft's
    changes as client quotas.
    """
    if _UPDATE_FEATURES in connection.api_versions:
        raise UnreachableError(
            f"{connection.address} speaks as released Kafka does, and no draft of KIP-584: "
            "pass --dialect released"
        )
