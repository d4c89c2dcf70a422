"""Administers the topics of a cluster by KIP-4's draft. A shell: it owns connections and time.

    async with DraftAdminClient.connect("127.0.0.1:9092") as client:
        await client.create_topic("orders", 3, 2, {"retention.ms": "3600000"})
        await client.reassign_partitions(json_text)

The controllers of the reference system serve it (``--control-topics``); released Kafka does not.
"""

import asyncio
import json
import os
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, Self, TypeVar

from featurewatch.admin.connections import AdminConnections, Bootstrap
from featurewatch.admin.elections.status import election_status
from featurewatch.admin.errors import (
    AdminError,
    OutcomeUnknownError,
    RequestError,
    UnreachableError,
)
from featurewatch.admin.session import NoSuchVersionError
from featurewatch.common.text import quoted
from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.kafka import messages
from featurewatch.kafka.address import Address, parse_addresses
from featurewatch.kafka.client_properties import client_config, read_client_config
from featurewatch.kafka.connection import CLIENT_ID, Connection
from featurewatch.kafka.messages import Request
from featurewatch.kafka.node_errors import NodeError

if TYPE_CHECKING:
    Topic = messages.DescribeTopicResponseV0.TopicDescription

_SERVERS: Final = "bootstrap.servers"
_REQUEST_TIMEOUT_S: Final = 30.0
_CONNECT_TIMEOUT_S: Final = 10.0

NOT_CONTROLLER_FOR_ADMIN_REQUEST: Final = 22
_CLUSTER_METADATA: Final = 30_400
_READS: Final = frozenset({_CLUSTER_METADATA, 30_404, 30_405, 30_407})
"""The keys of read-only requests."""


class AdminResponse(Protocol):
    """Every response has a code: 0, 21 (the request failed) or 22 (not the controller)."""

    @property
    def error_code(self) -> int:
        """The code."""


_Response = TypeVar("_Response", bound=AdminResponse)
_Result = TypeVar("_Result")


class DraftApiError(AdminError):
    """The cluster's answer has a code other than 0; the text is the server's own."""

    def __init__(self, code: int, description: str) -> None:
        super().__init__(description)
        self.code = code


class OperationState(IntEnum):
    """The state of a reassignment or an election of one partition."""

    FAILED = -1
    IN_PROGRESS = 0
    COMPLETED = 1


@dataclass(frozen=True, slots=True)
class CachedCluster:
    """The brokers and the controller as a node named them last."""

    brokers: Mapping[int, Address]
    controller: Address


class DraftAdminClient:
    """Administers one cluster; use as an asynchronous context, which closes the connections.

    ``properties`` are those of Kafka's clients (KIP-4: settings related to the network client):
    ``bootstrap.servers``, and if need be ``request.timeout.ms`` (30000) for one request,
    ``default.api.timeout.ms`` (as long), after which nothing is repeated, ``retries`` (no limit),
    how often a request is repeated, ``retry.backoff.ms`` (100), the pause before that and between
    two looks at what a future waits for, ``metadata.max.age.ms`` (300000), after which the cached
    cluster is read again, ``socket.connection.setup.timeout.ms`` (10000), ``client.id``, and the
    settings of TLS and SASL. ``monotonic`` gives seconds.

    Every call raises `DraftApiError` if the answer's code is not 0, `UnreachableError` if no
    controller was reached in time, and `OutcomeUnknownError` if a change was sent and no answer
    came.

    Raises:
        RequestError: a property is unknown or cannot be used, or there is no broker.
    """

    def __init__(
        self, properties: Mapping[str, str], *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        try:
            config = client_config(properties)
        except ValueError as error:
            raise RequestError(str(error)) from None
        try:
            addresses = parse_addresses(properties.get(_SERVERS, ""))
        except ValueError as error:
            raise RequestError(f"{_SERVERS}: {error}") from None
        if not addresses:
            raise RequestError(f"{_SERVERS} names no broker: give at least one as host:port")
        network = self._network = config.network
        self._request_timeout_s = network.request_timeout_s or _REQUEST_TIMEOUT_S
        self._timeout_s = network.api_timeout_s or self._request_timeout_s
        self._request_timeout_s = min(self._request_timeout_s, self._timeout_s)
        self._monotonic = monotonic
        self._connections = AdminConnections(
            Bootstrap(
                addresses, security=config.security, client_id=network.client_id or CLIENT_ID
            ),
            min(network.connect_timeout_s or _CONNECT_TIMEOUT_S, self._timeout_s),
        )
        self._cluster: CachedCluster | None = None
        self._cluster_read_s = 0.0
        self._futures: set[asyncio.Task[Any]] = set()
        self._lock = asyncio.Lock()

    @classmethod
    def connect(
        cls, servers: str, *, config: str | os.PathLike[str] | Mapping[str, str] | None = None
    ) -> Self:
        """A client of these nodes, as ``host:port,host:port``; it connects at its first call.

        ``config`` is a properties file as Kafka's tools take it, or its properties.

        Raises:
            RequestError: as the class does, or the file cannot be used.
        """
        if config is not None and not isinstance(config, Mapping):
            try:
                config = read_client_config(Path(config)).properties
            except ValueError as error:
                raise RequestError(str(error)) from None
        return cls({**(config or {}), _SERVERS: servers})

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Cancels the futures that are not done, and closes the connections."""
        for future in [*self._futures]:
            future.cancel()
        await asyncio.gather(*self._futures, return_exceptions=True)
        await self._connections.close()

    @property
    def cluster(self) -> CachedCluster | None:
        """The cached metadata of the cluster; None: it is read before the next request."""
        return self._cluster

    # -- topics ------------------------------------------------------------------------------------

    async def create_topic(
        self,
        name: str,
        partitions: int,
        replication_factor: int,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Creates a topic whose replicas the cluster places."""
        await self._create(name, configs, partitions=partitions, replicas=replication_factor)

    async def create_topic_with_assignment(
        self, name: str, replica_assignment: str, configs: Mapping[str, str] | None = None
    ) -> None:
        """Creates a topic with the replicas of each partition, such as ``1:2,2:3``."""
        await self._create(name, configs, replica_assignment=replica_assignment)

    async def alter_topic(
        self,
        name: str,
        partitions: int | None = None,
        replica_assignment: str | None = None,
        added_configs: Mapping[str, str] | None = None,
        deleted_configs: Sequence[str] = (),
    ) -> None:
        """Adds partitions, moves replicas and changes settings.

        ``replica_assignment`` has the replicas of all partitions; those that exist with other ones
        are reassigned. ``deleted_configs`` have their defaults again.
        """
        form = messages.AlterTopicRequestV0
        added = tuple(
            form.ConfigEntry(key=key, value=value) for key, value in (added_configs or {}).items()
        )
        request = form(
            topic_name=name,
            partitions=partitions,
            replica_assignment=replica_assignment,
            added_configs=added,
            deleted_configs=tuple(deleted_configs),
        )
        await self._send(request)

    async def delete_topic(self, name: str) -> None:
        """Marks a topic for deletion."""
        await self._send(messages.DeleteTopicRequestV0(topic_name=name))

    async def list_topics(self) -> tuple[str, ...]:
        """The topics that are not marked for deletion."""
        return (await self._send(messages.ListTopicsRequestV0())).topics or ()

    async def list_topics_marked_for_deletion(self) -> tuple[str, ...]:
        """The topics that are marked for deletion and still exist."""
        return (await self._send(messages.ListTopicsRequestV0())).marked_for_deletion or ()

    async def describe_topic(self, name: str) -> "Topic":
        """The settings of a topic that are its own, and its partitions."""
        request = messages.DescribeTopicRequestV0(topic_name=name)
        description = (await self._send(request)).description
        if description is None:
            raise AdminError(f"the controller sent no description of topic {name}, and no error")
        return description

    # -- replicas ----------------------------------------------------------------------------------

    def reassign_partitions(
        self, partitions_reassignment: str
    ) -> "asyncio.Task[messages.ReassignPartitionResponseV0]":
        """Starts reassignments; the future is done when all have completed.

        It raises `DraftApiError` if they cannot be started or one has failed, which also happens if
        another reassignment replaces it. Canceling it does not cancel the reassignments.
        """
        return self._future(self._reassign(partitions_reassignment))

    async def start_reassignment(
        self, partitions_reassignment: str
    ) -> "messages.ReassignPartitionResponseV0":
        """Starts reassignments and returns at once, as the request itself does (KIP-4)."""
        request = messages.ReassignPartitionRequestV0(manual_assignment=partitions_reassignment)
        return await self._send(request)

    async def verify_reassign_partitions(
        self, partitions_reassignment: str
    ) -> dict[TopicPartition, OperationState]:
        """The state of each partition of the string."""
        request = messages.VerifyReassignPartitionRequestV0(
            manual_assignment=partitions_reassignment
        )
        response = await self._send(request)
        return {
            TopicPartition(
                result.topic_and_partition.topic_name, result.topic_and_partition.partition
            ): _state(result.result_code)
            for result in response.results
        }

    def preferred_replica_leader_election(
        self, partitions: str | None = None
    ) -> "asyncio.Task[messages.PreferredReplicaLeaderElectionResponseV0]":
        """Starts elections, None: of all partitions; the future is done when the heads lead.

        It raises `DraftApiError` if they cannot be started, or a head cannot lead.
        """
        return self._future(self._elect(partitions))

    async def verify_preferred_replica_leader_election(
        self, partitions: str | None = None
    ) -> dict[TopicPartition, OperationState]:
        """The state of each partition, None: of all, by the description of its topic.

        It is completed if the head of the replica list leads, and in progress if the head is in the
        ISR and its broker is running: otherwise it cannot be elected, and the election has failed.
        So it has if the partition does not exist.

        Raises `RequestError` if the string is not the JSON of the draft.
        """
        chosen = None if partitions is None else _partitions_of(partitions)
        metadata = await self._send(messages.ClusterMetadataRequestV0())
        running = {broker.node_id for broker in metadata.brokers}
        names = await self.list_topics() if chosen is None else [id_.topic for id_ in chosen]
        states: dict[TopicPartition, OperationState] = {}
        for name in dict.fromkeys(names):
            try:
                topic = await self.describe_topic(name)
            except DraftApiError:
                continue  # it was deleted meanwhile, or never existed
            for partition in topic.partitions:
                id_ = TopicPartition(name, partition.partition_id)
                status = election_status(
                    partition.leader, partition.replicas, partition.isr, running
                )
                states[id_] = OperationState(status)
        if chosen is None:
            return states
        return {id_: states.get(id_, OperationState.FAILED) for id_ in chosen}

    # -- sending -----------------------------------------------------------------------------------

    async def _create(self, name: str, configs: Mapping[str, str] | None, **how: Any) -> None:
        form = messages.CreateTopicRequestV0
        entries = tuple(
            form.ConfigEntry(key=key, value=value) for key, value in (configs or {}).items()
        )
        absent = dict.fromkeys(("partitions", "replicas", "replica_assignment"))
        await self._send(form(topic_name=name, configs=entries, **(absent | how)))

    async def _reassign(self, reassignment: str) -> "messages.ReassignPartitionResponseV0":
        response = await self.start_reassignment(reassignment)
        await self._wait(lambda: self.verify_reassign_partitions(reassignment), "reassignment")
        return response

    async def _elect(
        self, partitions: str | None
    ) -> "messages.PreferredReplicaLeaderElectionResponseV0":
        form = messages.PreferredReplicaLeaderElectionRequestV0
        response = await self._send(form(partitions_serialized=partitions))
        verify = self.verify_preferred_replica_leader_election
        await self._wait(lambda: verify(partitions), "election")
        return response

    async def _wait(
        self,
        verify: Callable[[], Coroutine[Any, Any, Mapping[TopicPartition, OperationState]]],
        operation: str,
    ) -> None:
        """Repeats the verification until no partition is in progress."""
        while OperationState.IN_PROGRESS in (states := await verify()).values():
            await asyncio.sleep(self._network.backoff_s)
        failed = [str(id_) for id_, state in states.items() if state is OperationState.FAILED]
        if failed:
            raise DraftApiError(
                OperationState.FAILED, f"the {operation} of {', '.join(failed[:10])} has failed"
            )

    def _future(self, work: Coroutine[Any, Any, _Result]) -> "asyncio.Task[_Result]":
        future = asyncio.get_running_loop().create_task(work)
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        return future

    async def _send(self, request: Request[_Response]) -> _Response:
        """Sends to the controller, and returns the response that belongs to the request."""
        deadline = self._monotonic() + self._timeout_s
        repeats = 0
        while True:
            try:
                connection = await self._controller()
                response = await self._exchange(connection, request)
            except (OutcomeUnknownError, NoSuchVersionError):
                raise
            except NodeError as error:
                reason = str(error)
            else:
                if response.error_code != NOT_CONTROLLER_FOR_ADMIN_REQUEST:
                    return _checked(response)
                reason = f"{connection.address}: {_description(response)}"
            self._cluster = None
            if repeats >= self._network.max_repeats:
                raise UnreachableError(
                    f"no controller took the request (retries={repeats}): {reason}"
                )
            if self._monotonic() + self._network.backoff_s > deadline:
                raise UnreachableError(
                    f"no controller took the request in {self._timeout_s:g} s: {reason}"
                )
            repeats += 1
            await asyncio.sleep(self._network.backoff_s)

    async def _exchange(self, connection: Connection, request: Request[_Response]) -> _Response:
        # One request at a time: connections are shared by the futures.
        async with self._lock:
            try:
                return await connection.request(request, self._request_timeout_s)
            except NodeError as error:
                if request.__api_key__ not in _READS:
                    self._cluster = None
                    raise OutcomeUnknownError(
                        f"whether the change was applied is unknown: {error}"
                    ) from error
                raise

    async def _controller(self) -> Connection:
        """A connection to the controller, which is read from the cluster if it is not known."""
        age_s = self._monotonic() - self._cluster_read_s
        if self._cluster is None or age_s > self._network.metadata_age_s:
            await self.update_cluster_metadata()
        if self._cluster is None:
            _raise_no_controller()
        async with self._lock:
            return await self._connections.connection(self._cluster.controller)

    async def update_cluster_metadata(self) -> None:
        """Reads the brokers and the controller from a node, once.

        Raises:
            UnreachableError: if no node responds, or the node names no controller, or does not
                serve the draft. The next call begins with another bootstrap address.
        """
        async with self._lock:
            self._cluster = None
            connection = await self._connections.any_node()
            try:
                if _CLUSTER_METADATA not in connection.api_versions:
                    raise NoSuchVersionError(
                        f"{connection.address} does not serve the draft of KIP-4, as no released "
                        "Kafka does: give the address of a controller of the reference system"
                    )
                response = await connection.request(
                    messages.ClusterMetadataRequestV0(), self._request_timeout_s
                )
            except NoSuchVersionError:
                self._connections.rotate()
                raise
            except NodeError as error:
                self._connections.rotate()
                raise UnreachableError(str(error)) from error
            if response.error_code or response.controller is None:
                self._connections.rotate()
                raise UnreachableError(f"{connection.address} names no controller")
            self._cluster = CachedCluster(
                {broker.node_id: _address(broker) for broker in response.brokers},
                _address(response.controller),
            )
            self._cluster_read_s = self._monotonic()


def _raise_no_controller() -> NoReturn:
    raise UnreachableError("the cluster was forgotten meanwhile")


def _checked(response: _Response) -> _Response:
    if response.error_code:
        raise DraftApiError(response.error_code, _description(response))
    return response


def _description(response: AdminResponse) -> str:
    description = getattr(response, "error_description", None)
    return quoted(description) if description else f"error {response.error_code}"


def _address(broker: "messages.ClusterMetadataResponseV0.Broker") -> Address:
    return Address.of_peer(broker.host, broker.port)


def _state(code: int) -> OperationState:
    """A code that the draft does not have counts as in progress, so nothing is taken for done."""
    try:
        return OperationState(code)
    except ValueError:
        return OperationState.IN_PROGRESS


def _partitions_of(text: str) -> list[TopicPartition]:
    try:
        entries = json.loads(text)["partitions"]
        partitions = [TopicPartition(entry["topic"], entry["partition"]) for entry in entries]
    except (ValueError, KeyError, TypeError, RecursionError):
        partitions = []
    if not all(type(id_.topic) is str and type(id_.number) is int for id_ in partitions):
        partitions = []
    if not partitions:
        raise RequestError('no partitions: write {"partitions":[{"topic":"t","partition":0}]}')
    return partitions
