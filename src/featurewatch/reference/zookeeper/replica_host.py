"""The light replicas of a process: serves the controller's requests, and sends AlterPartition.

The logic is in `ReplicaBrokers`. One task lets followers fetch and sends what leaders request to
the controller, over one connection; a request that fails is made again.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import Connection, open_connection
from featurewatch.kafka.node_errors import NodeError
from featurewatch.reference.zookeeper.machines.encoding import Endpoint
from featurewatch.reference.zookeeper.machines.replicas.replica_brokers import ReplicaBrokers
from featurewatch.reference.zookeeper.machines.topics.results import (
    AlterPartitionRequest,
    AlterPartitionResult,
)
from featurewatch.reference.zookeeper.wire.api_keys import (
    ALTER_PARTITION,
    LEADER_AND_ISR,
    STOP_REPLICA,
)
from featurewatch.reference.zookeeper.wire.frames import WireRequest
from featurewatch.reference.zookeeper.wire.messages.from_controller import (
    broker_response,
    read_leader_and_isr,
    read_stop_replica,
)
from featurewatch.reference.zookeeper.wire.messages.to_controller import (
    alter_partition_request,
    read_alter_partition_response,
)

POLL_S: Final = 0.05
"""Between two fetches of the followers."""
_TIMEOUT_S: Final = 10.0
_VERSION: Final = 3
_VERSION_WITHOUT_IDS: Final = 1
_log = logging.getLogger("featurewatch.reference.zookeeper")


class ReplicaHost:
    """Runs `brokers`; ``controller`` returns the active controller's address, or None.

    ``fences_fetches`` as in `LightReplicas`.
    """

    def __init__(
        self, controller: Callable[[], Endpoint | None], *, fences_fetches: bool = True
    ) -> None:
        self.brokers = ReplicaBrokers(fences_fetches=fences_fetches)
        self._controller = controller
        self._connection: Connection | None = None
        self._connected_to: Endpoint | None = None
        self._failed = self._is_closed = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to replicate; call it in the event loop."""
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._task.add_done_callback(_report)

    async def close(self) -> None:
        """Ends the task and the connection."""
        # `asyncio.wait_for` of Python 3.11 may swallow a cancellation, so the task looks at this.
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._disconnect()

    def serve(self, request: WireRequest) -> Any:
        """The response to a LeaderAndIsr, StopReplica or UpdateMetadata of the controller.

        None, which ends the connection, if its broker does not run: the controller sends it again.
        """
        if request.key == LEADER_AND_ISR:
            received: Any = read_leader_and_isr(request.body)
        elif request.key == STOP_REPLICA:
            received = read_stop_replica(request.body)
        else:
            received = request.body
        response = self.brokers.receive(received)
        return response and broker_response(received, response, request.version)

    # -- the task ----------------------------------------------------------------------------------

    async def _run(self) -> None:
        while not self._is_closed:
            await asyncio.sleep(POLL_S)
            for request in [*self.brokers.isr_requests()]:
                self.brokers.on_response(request, await self._send(request))

    async def _send(self, request: AlterPartitionRequest) -> AlterPartitionResult | None:
        """The controller's result; None after a failure, which is logged once in a row."""
        topic_ids = self.brokers.topic_ids(request)
        if any(partition.topic not in topic_ids for partition in request.partitions):
            # As in Kafka, later versions need the ids of all topics.
            request = replace(request, version=_VERSION_WITHOUT_IDS)
        try:
            connection = await self._connect()
            message = alter_partition_request(request, topic_ids)
            response = await connection.request(message, _TIMEOUT_S)
        except NodeError as error:
            await self._disconnect()
            if not self._failed:
                _log.info("AlterPartition did not reach the controller and is repeated: %s", error)
            self._failed = True
            return None
        self._failed = False
        return read_alter_partition_response(response, request, topic_ids)

    async def _connect(self) -> Connection:
        endpoint = self._controller()
        if endpoint is None:
            raise NodeError("there is no controller")
        if endpoint != self._connected_to:
            await self._disconnect()
        if self._connection is None or self._connection.closed:
            address = Address.of_peer(endpoint.host, endpoint.port)
            self._connection = await open_connection(address, timeout_s=_TIMEOUT_S)
            self._connected_to = endpoint
        versions = (_VERSION_WITHOUT_IDS, _VERSION)
        if self._connection.version_of(ALTER_PARTITION, versions) != _VERSION:
            raise NodeError(f"{self._connection.address} serves no AlterPartition of version 3")
        return self._connection

    async def _disconnect(self) -> None:
        connection, self._connection, self._connected_to = self._connection, None, None
        if connection is not None:
            await connection.close()


async def forward_metadata(request: WireRequest, controller: Endpoint | None) -> Any:
    """The controller's response to a Metadata request that a light broker received.

    None, which ends the connection, without one: the client continues with another broker.
    """
    if controller is None:
        return None
    try:
        address = Address.of_peer(controller.host, controller.port)
        connection = await open_connection(address, timeout_s=_TIMEOUT_S)
        try:
            return await connection.request(request.body, _TIMEOUT_S)
        finally:
            await connection.close()
    except NodeError as error:
        _log.info("Metadata of a light broker's client did not reach the controller: %s", error)
        return None


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("the light replicas ended by a fault of this program", exc_info=error)
