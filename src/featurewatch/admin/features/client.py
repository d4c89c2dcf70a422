"""Reads and changes the finalized levels of a cluster. A shell: it owns connections and time.

    async with FeatureAdmin.connect("kafka-1:9092") as admin:
        update = FeatureUpdate(METADATA_VERSION, FeatureLevel(30))
        metadata = await admin.update_features([update])

The same calls serve clusters in KRaft mode, in ZooKeeper mode and of the reference system. A change
is sent to the controller of the Metadata response (KIP-584), or, through controllers' listeners, of
DescribeCluster; a controller that has moved meanwhile is located again until the time is up.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeVar

from featurewatch.admin.api_errors import NOT_CONTROLLER, TIMED_OUT
from featurewatch.admin.connections import Bootstrap
from featurewatch.admin.errors import RequestError, UnreachableError, UpdateRefusedError
from featurewatch.admin.features.metadata import FeatureDialect, FeatureMetadata
from featurewatch.admin.features.reader import FeatureReader, check_draft
from featurewatch.admin.features.updates import FeatureUpdate, UpdateResult, uniform_result
from featurewatch.admin.session import outcome_unknown
from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import Connection, open_connection
from featurewatch.kafka.messages import Request
from featurewatch.kafka.node_errors import NodeError
from featurewatch.kafka.security import PLAINTEXT, Security
from featurewatch.streams.types import FeatureLevel, FeatureName, UpgradeType

__all__ = [
    "Bootstrap",
    "FeatureAdmin",
    "FeatureDialect",
    "FeatureUpdate",
    "UpdateRefusedError",
    "UpgradeType",
    "update_features",
]

_APPLIED_S: Final = 5.0
_APPLIED_POLL_S: Final = 0.05
_RESPONSE = TypeVar("_RESPONSE")


class FeatureAdmin(FeatureReader):
    """Reads and changes one cluster's features."""

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
        if self._dialect.is_draft:
            if dry_run:
                raise RequestError("the drafts of KIP-584 have no dry run")
            from featurewatch.admin.features import kip584_drafts as drafts

            request = drafts.update_request(self._dialect, requested, self._request_timeout_s)
            return await self._by_draft(request, [update.feature for update in requested])
        return await self._to_controller(
            lambda node: self._update(node, requested, dry_run), changes=not dry_run
        )

    async def delete(self, features: Iterable[FeatureName]) -> UpdateResult:
        """Removes features by DELETE_FEATURES of the early draft: no level or range is checked.

        Raises as `update` does.
        """
        names = tuple(features)
        if self._dialect is not FeatureDialect.EARLY or not names:
            raise RequestError("DELETE_FEATURES is the early draft's, and takes at least one name")
        from featurewatch.admin.features import kip584_drafts as drafts

        return await self._by_draft(drafts.delete_request(names, self._request_timeout_s), names)

    async def update_features(
        self, updates: Iterable[FeatureUpdate], *, dry_run: bool = False
    ) -> FeatureMetadata:
        """Changes levels, and returns the controller's features after it (KIP-584: updateFeatures).

        Raises:
            UpdateRefusedError: One update or the request was refused. The other exceptions are
                those of `update`.
        """
        requested = tuple(updates)
        (await self.update(requested, dry_run=dry_run)).check()
        return await self.describe_applied(() if dry_run else requested)

    async def delete_features(self, features: Iterable[FeatureName]) -> FeatureMetadata:
        """Removes features, and returns the controller's after it (KIP-584: deleteFeatures).

        The early draft has a request for that; elsewhere it is a safe downgrade to level 0. Raises
        as `update_features` does.
        """
        names = tuple(features)
        removals = [
            FeatureUpdate(name, FeatureLevel(0), UpgradeType.SAFE_DOWNGRADE) for name in names
        ]
        if self._dialect is not FeatureDialect.EARLY:
            return await self.update_features(removals)
        (await self.delete(names)).check()
        return await self.describe_applied(removals)

    async def describe_applied(self, updates: Iterable[FeatureUpdate]) -> FeatureMetadata:
        """The controller's features once it has applied a change, or after 5 seconds.

        A node applies a level that was just finalized a moment later, like all metadata.
        """
        deadline = self._monotonic() + _APPLIED_S
        levels = {update.feature: max(int(update.level), 0) for update in updates}
        while True:
            metadata = await self.describe(controller=True)
            is_applied = all(
                metadata.finalized.get(name, 0) == level for name, level in levels.items()
            )
            # kraft.version is raised by the quorum, in its own time.
            if is_applied or self._monotonic() > deadline:
                return metadata
            await self._pause(_APPLIED_POLL_S)

    async def _by_draft(self, request: Request[Any], names: Iterable[FeatureName]) -> UpdateResult:
        """Sends a draft's request, whose response is one for all of these features."""

        async def send(connection: Connection) -> UpdateResult:
            check_draft(connection)
            answer = await self._exchange(connection, request, changes=True)
            return uniform_result(names, answer.error_code, answer.error_message)

        return await self._to_controller(send, changes=True)

    async def _to_controller(
        self, send: Callable[[Connection], Awaitable[UpdateResult]], *, changes: bool
    ) -> UpdateResult:
        """Sends to the controller, and to the next one if it no longer was the controller."""

        async def checked(connection: Connection) -> UpdateResult:
            result = await send(connection)
            # The outcome is unknown to a server that gave up waiting, too.
            if changes and any(item.error == TIMED_OUT for item in result.results):
                raise outcome_unknown(f"{connection.address} gave up waiting")
            return result

        return await self.on_controller(
            checked, lambda result: any(item.error == NOT_CONTROLLER for item in result.results)
        )

    async def _update(
        self, connection: Connection, updates: tuple[FeatureUpdate, ...], dry_run: bool
    ) -> UpdateResult:
        from featurewatch.admin.features import update_request as released

        version = released.version_for(connection.api_versions)
        if version is None:
            raise UnreachableError(_no_updates(connection))
        make_request = released.update_request
        if self._dialect is FeatureDialect.KIP_778:
            from featurewatch.admin.features import kip_778

            make_request = kip_778.update_request
        request = make_request(updates, version, dry_run=dry_run, timeout_s=self._request_timeout_s)
        answer = await self._exchange(connection, request, changes=not dry_run)
        return released.read_update(answer, updates)

    async def _exchange(
        self, connection: Connection, request: Request[_RESPONSE], *, changes: bool
    ) -> _RESPONSE:
        try:
            return await connection.request(request, self._request_timeout_s)
        except NodeError as error:
            if not changes:
                raise UnreachableError(f"no answer to the dry run: {error}") from error
            raise outcome_unknown(str(error)) from error


def _no_updates(connection: Connection) -> str:
    draft = 48 in connection.api_versions
    hint = ": pass --dialect if it speaks a draft of KIP-584" if draft else ""
    return f"{connection.address} has no UpdateFeatures, which Kafka 2.7 and later have{hint}"


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
        kafka.connection.NodeError: The node cannot be reached, or broke off: whether the
            update was applied is then not known, and must be read from the cluster.
    """
    from featurewatch.admin.features import update_request as released

    connection = await open_connection(address, security, timeout_s=timeout_s)
    try:
        version = released.version_for(connection.api_versions)
        if version is None:
            raise NodeError(_no_updates(connection))
        request = released.update_request(updates, version, dry_run=dry_run, timeout_s=timeout_s)
        answer = await connection.request(request, timeout_s)
    finally:
        await connection.close()
    released.read_update(answer, updates).check()
