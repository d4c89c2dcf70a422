"""Describes the metadata quorum, and adds and removes voters (KIP-595, KIP-853).

async with QuorumAdmin.connect("kafka-1:9092") as admin:
    quorum = await admin.describe()
    print(quorum.leader_id, quorum.tolerance)
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, Final
from uuid import UUID

from featurewatch.admin.api_errors import (
    NOT_CONTROLLER,
    TIMED_OUT,
    UNSUPPORTED_VERSION,
    api_error,
)
from featurewatch.admin.cluster.configs import ConfigOwner, describe_request
from featurewatch.admin.cluster.reader import metadata_request
from featurewatch.admin.cluster.responses import cluster_of
from featurewatch.admin.errors import KafkaApiError, UnreachableError, check_response
from featurewatch.admin.features.metadata import read_metadata
from featurewatch.admin.session import AdminSession, NoSuchVersionError, outcome_unknown
from featurewatch.kafka import messages
from featurewatch.kafka.connection import Connection
from featurewatch.kafka.messages import Request, message_class
from featurewatch.kafka.node_errors import NodeError
from featurewatch.streams.quorum import QuorumDescription, VoterEndpoint, read_description
from featurewatch.streams.types import (
    KRAFT_VERSION,
    METADATA_VERSION,
    ClusterId,
    FeatureLevel,
    NodeId,
)

_DESCRIBE_QUORUM: Final = 55
_DESCRIBE_QUORUM_VERSIONS: Final = (0, 2)
_METADATA_TOPIC: Final = "__cluster_metadata"
_DESCRIBE_CLUSTER: Final = 60
_ADD_VOTER: Final = 80
_REMOVE_VOTER: Final = 81
_CONTROLLERS: Final = 2
_NOT_LEADER: Final = 6
_API_NAMES: Final = {
    _DESCRIBE_QUORUM: "DESCRIBE_QUORUM",
    _ADD_VOTER: "ADD_RAFT_VOTER",
    _REMOVE_VOTER: "REMOVE_RAFT_VOTER",
}


class QuorumAdmin(AdminSession):
    """The metadata quorum of one cluster in KRaft mode; brokers forward the requests."""

    serves_controllers: ClassVar[bool] = True

    async def describe(self) -> QuorumDescription:
        """The quorum as the active controller knows it; ``cluster_id`` is left out.

        Raises:
            KafkaApiError: The login may not see it (DESCRIBE on the cluster), or
                (UNSUPPORTED_VERSION) the cluster is not in KRaft mode.
            UnreachableError: No node responds, or the quorum has no leader in time.
        """
        if not self.names_controllers:
            found = await self._describe_by(await self.broker())
            if found is not None:
                return found
        found = await self.on_controller(self._describe_by, lambda result: result is None)
        assert found is not None  # noqa: S101 - `on_controller` has repeated it until then
        return found

    async def cluster_id(self) -> ClusterId:
        """The id of the cluster, as a broker or the active controller has it.

        Raises:
            KafkaApiError: The login may not see that: through controllers it takes ALTER on the
                cluster.
            UnreachableError: No node responds.
        """
        if self.names_controllers:
            connection = await self._current_controller()
            request: Request[Any] = messages.DescribeClusterRequestV1(
                include_cluster_authorized_operations=False, endpoint_type=_CONTROLLERS
            )
        else:
            connection = await self.broker()
            request = messages.DescribeClusterRequestV0(include_cluster_authorized_operations=False)
        response = await self._exchange(connection, request, changes=False)
        check_response(response, _DESCRIBE_CLUSTER)
        return ClusterId(response.cluster_id)

    async def broker_setting(self, name: str) -> dict[NodeId, str]:
        """The value of a setting, wherever it is set, by broker; of those that answer and have it.

        Raises:
            UnreachableError: No broker responds; there is none where controllers were named.
        """
        found: dict[NodeId, str] = {}
        for broker in cluster_of(await self.ask(metadata_request(()))).brokers:
            request = describe_request([ConfigOwner.broker(broker.node_id)], (name,))
            try:
                response = await self.exchange_with(broker.address, request)
            except UnreachableError:
                continue
            for result in response.results:
                values = [one.value for one in result.configs if one.name == name]
                if result.error_code == 0 and values and values[0]:
                    found[broker.node_id] = values[0]
        return found

    async def add_voter(
        self,
        node_id: NodeId,
        directory_id: UUID | None,
        endpoints: Iterable[VoterEndpoint],
        *,
        cluster_id: ClusterId | None = None,
    ) -> None:
        """Makes a controller that runs a voter; returns when the new voters have committed that.

        ``cluster_id``: the leader refuses if that is not its cluster.

        Raises:
            KafkaApiError: The leader refused, or no node has the request (UNSUPPORTED_VERSION).
            UnreachableError: The leader was not reached. Nothing was changed.
            OutcomeUnknownError: It was sent, and it is not known whether it was committed.
        """
        timeout_ms = max(1, int(self._request_timeout_s * 900))
        listener = messages.AddRaftVoterRequestV0.Listener
        request = messages.AddRaftVoterRequestV0(
            cluster_id=cluster_id,
            timeout_ms=timeout_ms,
            voter_id=node_id,
            voter_directory_id=directory_id,
            listeners=tuple(
                listener(name=one.listener, host=one.host, port=one.port) for one in endpoints
            ),
        )
        await self._change(request, _ADD_VOTER)

    async def remove_voter(self, node_id: NodeId, directory_id: UUID | None) -> None:
        """Removes a voter; returns when the voters that remain have committed that.

        Raises: as `add_voter`.
        """
        request = messages.RemoveRaftVoterRequestV0(
            cluster_id=None, voter_id=node_id, voter_directory_id=directory_id
        )
        await self._change(request, _REMOVE_VOTER)

    async def _change(self, request: Request[Any], api_key: int) -> None:
        async def send(connection: Connection) -> Any:
            return await self._exchange(connection, request, changes=True)

        try:
            response = await self.on_controller(
                send, lambda result: bool(result.error_code == NOT_CONTROLLER)
            )
        except NoSuchVersionError as error:
            raise _unsupported(api_key) from error
        # Texts come with what the leader decides before it appends the change; without one it was
        # appended, and the leader waited or resigned (LeaderState.maybeExpirePendingOperation).
        if response.error_code == _NOT_LEADER:
            raise outcome_unknown("the leader of the quorum changed meanwhile")
        if response.error_code == TIMED_OUT and not response.error_message:
            raise outcome_unknown("the leader gave up waiting for a majority of the new voters")
        check_response(response, api_key)

    async def _describe_by(self, connection: Connection) -> QuorumDescription | None:
        """The description by one node; None if it does not lead, and cannot ask who does."""
        version = connection.version_of(_DESCRIBE_QUORUM, _DESCRIBE_QUORUM_VERSIONS)
        if version is None:
            raise _unsupported(_DESCRIBE_QUORUM)
        levels = connection.last_api_versions
        response = await self._exchange(connection, _description_request(version), changes=False)
        check_response(response, _DESCRIBE_QUORUM)
        partitions = [part for topic in response.topics for part in topic.partitions]
        if len(partitions) != 1:
            raise UnreachableError(
                f"{connection.address} describes {len(partitions)} quorums instead of one"
            )
        (partition,) = partitions
        if partition.error_code in (_NOT_LEADER, NOT_CONTROLLER):
            return None
        message = getattr(partition, "error_message", None)
        if (error := api_error(partition.error_code, message, _DESCRIBE_QUORUM)) is not None:
            raise KafkaApiError(*error)
        described = read_description(
            partition, getattr(response, "nodes", ()), _kraft_version(connection, levels)
        )
        return replace(described, metadata_version=_metadata_version(connection, levels))

    async def _exchange(
        self, connection: Connection, request: Request[Any], *, changes: bool
    ) -> Any:
        """The response of a node, whatever its error."""
        deadline = self._monotonic() + self._timeout_s
        try:
            return await self._send(connection, request, deadline)
        except UnreachableError:
            raise
        except NodeError as error:
            if changes:
                raise outcome_unknown(str(error)) from error
            raise UnreachableError(str(error)) from error


def _description_request(version: int) -> Request[Any]:
    form = message_class("DescribeQuorumRequest", version)
    partition = form.PartitionData(partition_index=0)
    topic = form.TopicData(topic_name=_METADATA_TOPIC, partitions=(partition,))
    request: Request[Any] = form(topics=(topic,))
    return request


def _kraft_version(connection: Connection, api_versions: Any) -> FeatureLevel | None:
    """The finalized kraft.version of a node; 0 is not listed, so it counts with support alone."""
    if api_versions is None:
        return None
    metadata = read_metadata(api_versions, connection.address)
    level = metadata.finalized.get(KRAFT_VERSION)
    if level is None and KRAFT_VERSION in metadata.supported and metadata.epoch is not None:
        return FeatureLevel(0)
    return level


def _metadata_version(connection: Connection, api_versions: Any) -> FeatureLevel | None:
    """The finalized metadata.version of a node; None: it reports none."""
    if api_versions is None:
        return None
    return read_metadata(api_versions, connection.address).finalized.get(METADATA_VERSION)


def _unsupported(api_key: int) -> KafkaApiError:
    """The error of Kafka's client where a node lacks a request."""
    return KafkaApiError(UNSUPPORTED_VERSION, f"The node does not support {_API_NAMES[api_key]}")
