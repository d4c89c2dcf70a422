"""Reads and changes the finalized levels of a cluster. A shell: it owns connections and time.

    async with FeatureAdmin(Bootstrap(parse_addresses("kafka-1:9092"))) as admin:
        metadata = await admin.describe()
        update = FeatureUpdate(METADATA_VERSION, FeatureLevel(30))
        result = await admin.update([update], dry_run=True)
        result.check()

The same calls serve clusters in KRaft mode, in ZooKeeper mode and of the reference system. A change
is sent to the controller of the Metadata response (KIP-584), or, through controllers' listeners, of
DescribeCluster; a controller that has moved meanwhile is located again until the time is up.
"""

import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Final, Self

from featurewatch.admin import controller_lookup
from featurewatch.admin.connections import AdminConnections, Bootstrap, ControllerUnavailableError
from featurewatch.admin.errors import (
    OutcomeUnknownError,
    RequestError,
    UnreachableError,
    UpdateRefusedError,
)
from featurewatch.admin.metadata import (
    FeatureDialect,
    FeatureMetadata,
    NodeDescription,
    read_metadata,
)
from featurewatch.admin.updates import FeatureUpdate, UpdateResult, uniform_result
from featurewatch.streams.net.address import Address
from featurewatch.streams.net.connection import Connection, NodeError, open_connection
from featurewatch.streams.net.security import PLAINTEXT, Security
from featurewatch.streams.net.transport import Connect
from featurewatch.streams.types import FeatureName, NodeId, Role, UpgradeType

__all__ = [
    "Bootstrap",
    "FeatureAdmin",
    "FeatureDialect",
    "FeatureUpdate",
    "UpdateRefusedError",
    "UpgradeType",
    "update_features",
]

# kio's messages are imported by the requests that have one: its modules take long.

_UPDATE_FEATURES: Final = 57
_REQUEST_TIMED_OUT: Final = 7
_NOT_CONTROLLER: Final = 41
_PAUSE_S: Final = 0.1


class FeatureAdmin:
    """One cluster's features; use as an asynchronous context, which closes the connections.

    ``timeout_s`` is how long a call may take, ``connect_timeout_s`` each step of a connection.
    ``connect`` opens the transport of a connection (asyncio's by default); with
    `streams.net.transport.connect_blocking`, `describe` of one node needs no event loop.
    ``monotonic`` gives seconds of a clock that does not go back.
    """

    def __init__(
        self,
        bootstrap: Bootstrap,
        *,
        dialect: FeatureDialect = FeatureDialect.RELEASED,
        timeout_s: float = 60.0,
        connect_timeout_s: float = 10.0,
        connect: Connect | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if not bootstrap.addresses:
            raise RequestError("nobody to ask: give the address of a broker or of a controller")
        self._bootstrap = bootstrap
        self._dialect = dialect
        self._timeout_s = timeout_s
        self._monotonic = monotonic
        self._connect_timeout_s = min(connect_timeout_s, timeout_s)
        self._reach = AdminConnections(bootstrap, self._connect_timeout_s, connect)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        await self._reach.close()

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
            connection = await self._reach.controller()
        else:
            connection = await self._reach.any_node()
            controller_lookup.check_broker(connection)
        return await self._ask(connection)

    async def describe_all(self) -> tuple[NodeDescription, ...]:
        """Every node's features, or why there are none; ordered by role and id.

        Brokers, and the controllers as far as the cluster lists them: a broker does so from 3.9 on
        (DESCRIBE on the cluster), a controller from 3.7 on (ALTER).

        Raises:
            UnreachableError: No node lists the nodes.
        """
        import asyncio

        from featurewatch.admin.node_listing import list_nodes

        nodes = await list_nodes(self._bootstrap, self._connect_timeout_s)
        answers = (
            self._answer(role, node_id, address) for (role, node_id), address in nodes.items()
        )
        return tuple(await asyncio.gather(*answers))

    async def update(
        self, updates: Iterable[FeatureUpdate], *, dry_run: bool = False
    ) -> UpdateResult:
        """Requests a change of levels, or with ``dry_run`` its validation.

        Returns the result for each feature; nothing is raised for a refusal.

        Raises:
            RequestError: There is nothing to change, or the cluster has no such request.
            UnreachableError: The controller was not reached in time, or has another dialect.
                Nothing was changed.
            OutcomeUnknownError: It was sent, and no response came. Only of a real change.
        """
        requested = tuple(updates)
        if not requested:
            raise RequestError("there is nothing to change: name a feature and its level")
        if self._dialect is FeatureDialect.RELEASED:
            return await self._sent(lambda node: self._update(node, requested, dry_run))
        if dry_run:
            raise RequestError("the drafts of KIP-584 have no dry run")
        return await self._sent(lambda node: self._draft_update(node, requested))

    async def delete(self, features: Iterable[FeatureName]) -> UpdateResult:
        """Removes features by DELETE_FEATURES of the early draft: no level or range is checked.

        Raises as `update` does.
        """
        names = tuple(features)
        if self._dialect is not FeatureDialect.EARLY or not names:
            raise RequestError("DELETE_FEATURES is the early draft's, and takes at least one name")
        return await self._sent(lambda node: self._draft_delete(node, names))

    async def _sent(self, send: Any) -> UpdateResult:
        """Sends to the controller, and to the next one where it was not the controller."""
        import asyncio

        deadline = self._monotonic() + self._timeout_s
        while True:
            # One that is about to fall to another node may not be named, or not listen, for a time.
            try:
                connection = await self._reach.controller()
            except ControllerUnavailableError as error:
                why = str(error)
            else:
                result: UpdateResult = await send(connection)
                if all(item.error != _NOT_CONTROLLER for item in result.results):
                    return result
                why = f"{connection.address} is not the controller any more"
            if self._monotonic() + _PAUSE_S > deadline:
                raise UnreachableError(
                    f"no controller took the request in {self._timeout_s:g} s: {why}"
                )
            self._reach.rotate()
            await asyncio.sleep(_PAUSE_S)

    async def _update(
        self, connection: Connection, updates: tuple[FeatureUpdate, ...], dry_run: bool
    ) -> UpdateResult:
        from featurewatch.admin import update_request as released

        version = released.version_for(connection.api_versions)
        if version is None:
            raise UnreachableError(_no_updates(connection))
        request, form = released.update_request(
            updates, version, dry_run=dry_run, timeout_s=self._timeout_s
        )
        answer = await self._exchange(connection, request, form, changes=not dry_run)
        result = released.read_update(answer, updates)
        self._check_timeout(result, connection, changes=not dry_run)
        return result

    async def _draft_update(
        self, connection: Connection, updates: tuple[FeatureUpdate, ...]
    ) -> UpdateResult:
        from featurewatch.admin import draft_messages as drafts

        _check_draft(connection)
        request, form = drafts.update_request(self._dialect, updates, self._timeout_s)
        answer = await self._exchange(connection, request, form, changes=True)
        names = (update.feature for update in updates)
        result = uniform_result(names, int(answer.error_code), answer.error_message)
        self._check_timeout(result, connection, changes=True)
        return result

    async def _draft_delete(
        self, connection: Connection, names: tuple[FeatureName, ...]
    ) -> UpdateResult:
        from featurewatch.admin import draft_messages as drafts

        _check_draft(connection)
        request, form = drafts.delete_request(names, self._timeout_s)
        answer = await self._exchange(connection, request, form, changes=True)
        result = uniform_result(names, int(answer.error_code), answer.error_message)
        self._check_timeout(result, connection, changes=True)
        return result

    async def _exchange(
        self, connection: Connection, request: Any, form: Any, *, changes: bool
    ) -> Any:
        try:
            return await connection.request(request, form, self._timeout_s)
        except NodeError as error:
            if not changes:
                raise UnreachableError(f"no answer to the dry run: {error}") from error
            raise OutcomeUnknownError(
                f"whether the change was applied is unknown: {error}"
            ) from error

    @staticmethod
    def _check_timeout(result: UpdateResult, connection: Connection, *, changes: bool) -> None:
        """The outcome is unknown to a server that gave up waiting, too."""
        if changes and any(item.error == _REQUEST_TIMED_OUT for item in result.results):
            raise OutcomeUnknownError(
                f"whether the change was applied is unknown: {connection.address} gave up waiting"
            )

    async def _node(self, node_id: NodeId) -> FeatureMetadata:
        from featurewatch.admin.node_listing import list_nodes

        role = Role.CONTROLLER if self._bootstrap.controllers else Role.BROKER
        nodes = await list_nodes(self._bootstrap, self._connect_timeout_s)
        address = nodes.get((role, node_id))
        if address is None:
            ids = ", ".join(str(known_id) for kind, known_id in nodes if kind is role) or "none"
            raise UnreachableError(f"there is no {role} {node_id}: the cluster has {ids}")
        return await self._ask(await self._reach.connection(address))

    async def _answer(self, role: Role, node_id: NodeId, address: Address) -> NodeDescription:
        try:
            metadata = await self._ask(await self._reach.connection(address))
        except NodeError as error:
            return NodeDescription(role, node_id, error=str(error))
        return NodeDescription(role, node_id, metadata)

    async def _ask(self, connection: Connection) -> FeatureMetadata:
        """A node's features; of released Kafka the handshake had the first response."""
        timeout_s = self._connect_timeout_s
        try:
            if self._dialect is FeatureDialect.RELEASED:
                first, connection.last_api_versions = connection.last_api_versions, None
                answer = first or await connection.request_api_versions(timeout_s)
                return read_metadata(answer, connection.address)
            from featurewatch.admin import draft_messages as drafts

            _check_draft(connection)
            request, form = drafts.features_request(self._dialect)
            response = await connection.request(request, form, timeout_s)
        except NodeError as error:
            raise UnreachableError(str(error)) from error
        return read_metadata(response, connection.address, drafts.level_field(self._dialect))


def _no_updates(connection: Connection) -> str:
    draft = 48 in connection.api_versions
    hint = ": give --dialect if it speaks a draft of KIP-584" if draft else ""
    return f"{connection.address} has no UpdateFeatures, which Kafka 2.7 and later have{hint}"


def _check_draft(connection: Connection) -> None:
    """Raises `UnreachableError` for a draft's request to released Kafka.

    Its response would have no features, which are in other tags, and it would read a draft's
    changes as client quotas.
    """
    if _UPDATE_FEATURES in connection.api_versions:
        raise UnreachableError(
            f"{connection.address} speaks as released Kafka does, and no draft of KIP-584: "
            "give --dialect released"
        )


async def update_features(
    address: Address,
    updates: tuple[FeatureUpdate, ...],
    *,
    dry_run: bool = False,
    security: Security = PLAINTEXT,
    timeout_s: float = 30.0,
) -> None:
    """Sends one request to a broker, which forwards it, or to the active controller.

    Raises:
        UpdateRefusedError: The controller refused one or more of the updates.
        streams.net.connection.NodeError: The node cannot be reached, or broke off: whether the
            update was applied is then not known, and must be read from the cluster.
    """
    from featurewatch.admin import update_request as released

    connection = await open_connection(address, security, timeout_s=timeout_s)
    try:
        version = released.version_for(connection.api_versions)
        if version is None:
            raise NodeError(_no_updates(connection))
        request, form = released.update_request(
            updates, version, dry_run=dry_run, timeout_s=timeout_s
        )
        answer = await connection.request(request, form, timeout_s)
    finally:
        await connection.close()
    released.read_update(answer, updates).check()
