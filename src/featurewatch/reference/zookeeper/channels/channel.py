"""The channel to one broker: one request in flight, repeated until the broker responds."""

import asyncio
import logging
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import Connection, open_connection
from featurewatch.kafka.node_errors import NodeError
from featurewatch.reference.zookeeper.channels.backlog import RequestBacklog
from featurewatch.reference.zookeeper.machines.encoding import Endpoint
from featurewatch.reference.zookeeper.machines.topics.broker_requests import (
    BrokerRequest,
    BrokerResponded,
    BrokerResponse,
)
from featurewatch.reference.zookeeper.wire.messages.to_brokers import (
    api_of,
    failed_response,
    response_of,
    wire_requests,
)

_LOUD_AFTER: Final = 5
"""More consecutive failures than this are not a start, whose port opens after its znode exists."""

_UNENCODABLE: Final = (struct.error, ValueError, TypeError, AttributeError)
_log = logging.getLogger("featurewatch.reference.zookeeper")


@dataclass(frozen=True, slots=True)
class ChannelSettings:
    """Limits of a channel.

    ``timeout_s`` is for one response (Kafka: ``controller.socket.timeout.ms``). After a failure
    the channel waits ``first_backoff_s``, then twice as long each time, up to ``max_backoff_s``.
    More than ``max_states`` waiting states of partitions are merged.
    """

    timeout_s: float = 30.0
    connect_timeout_s: float = 5.0
    first_backoff_s: float = 0.05
    max_backoff_s: float = 1.0
    max_states: int = 50_000


class BrokerChannel:
    """Sends requests to a broker of one epoch; make it in an event loop, and close it.

    ``deliver`` gets an event for each response. After a failure the request is sent again. A
    request that cannot be written in bytes gets a response with UNKNOWN_SERVER_ERROR.
    """

    def __init__(
        self,
        broker_id: int,
        broker_epoch: int,
        name: str,
        deliver: Callable[[BrokerResponded], None],
        settings: ChannelSettings,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self._name = name
        self._deliver = deliver
        self._settings = settings
        self._backlog = RequestBacklog(settings.max_states)
        self._endpoint: Endpoint | None = None
        self._connection: Connection | None = None
        self._changed = asyncio.Event()
        self._failures = 0
        self._is_closed = False
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._task.add_done_callback(self._on_end)

    @property
    def queued_states(self) -> int:
        """How many states of partitions wait or are in flight."""
        return self._backlog.states

    def set_endpoint(self, endpoint: Endpoint | None) -> None:
        """Sets the broker's address; another one ends the connection, not the requests."""
        if endpoint != self._endpoint:
            self._endpoint = endpoint
            self._failures = 0
            if self._connection is not None:
                self._connection.abort()
            self._changed.set()

    def send(self, request: BrokerRequest) -> None:
        """Queues a request after all earlier ones."""
        self._backlog.add(request)
        self._changed.set()

    async def close(self) -> None:
        """Ends the channel; what waits is dropped."""
        # `asyncio.wait_for` of Python 3.11 may swallow a cancellation, so the task looks at this.
        self._is_closed = True
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    # -- the task ----------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            while not self._is_closed:
                self._changed.clear()
                request = self._backlog.take()
                if request is None or self._endpoint is None:
                    if request is not None:
                        self._on_no_address(api_of(request).name)
                    await self._changed.wait()
                    continue
                response = await self._attempt(request, self._endpoint)
                if response is None:
                    await self._back_off()
                    continue
                self._backlog.finish()
                self._deliver(BrokerResponded(self.broker_id, self.broker_epoch, request, response))
        finally:
            await self._disconnect()

    async def _attempt(self, request: BrokerRequest, endpoint: Endpoint) -> BrokerResponse | None:
        """The response; None after a failure."""
        api = api_of(request)
        try:
            connection = await self._connect(endpoint)
            version = connection.version_of(api.key, api.versions)
            if version is None:
                raise NodeError(
                    f"{connection.address} serves no {api.name} of versions {api.versions[0]} to "
                    f"{api.versions[1]}: is it a broker in ZooKeeper mode?"
                )
            response = await self._exchange(connection, request, version)
        except NodeError as error:
            await self._disconnect()
            self._on_failure(api.name, error)
            return None
        except _UNENCODABLE as error:
            reason = f"{type(error).__name__}: {error}"
            _log.error(
                "%s: %s to broker %d cannot be written and is dropped: %s",
                self._name,
                api.name,
                self.broker_id,
                reason,
            )
            return failed_response(request)
        self._on_success()
        return response

    async def _connect(self, endpoint: Endpoint) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = await open_connection(
                Address.of_peer(endpoint.host, endpoint.port),
                timeout_s=min(self._settings.connect_timeout_s, self._settings.timeout_s),
                client_id=self._name,
            )
        return self._connection

    async def _exchange(
        self, connection: Connection, request: BrokerRequest, version: int
    ) -> BrokerResponse:
        received: list[Any] = [
            await connection.request(message, self._settings.timeout_s)
            for message in wire_requests(request, version)
        ]
        return response_of(request, version, received)

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _back_off(self) -> None:
        """Waits; a new address ends the wait."""
        settings = self._settings
        exponent = min(self._failures - 1, 30)
        pause_s = min(settings.first_backoff_s * 2**exponent, settings.max_backoff_s)
        endpoint = self._endpoint
        try:
            async with asyncio.timeout(pause_s):
                while self._endpoint == endpoint and not self._is_closed:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return

    # -- the log -----------------------------------------------------------------------------------

    def _on_failure(self, name: str, error: NodeError) -> None:
        self._failures += 1
        if self._failures in (1, _LOUD_AFTER):
            level = logging.INFO if self._failures == 1 else logging.WARNING
            _log.log(
                level,
                "%s: %s did not reach broker %d, and is sent again until the broker responds or "
                "its registration ends: %s",
                self._name,
                name,
                self.broker_id,
                error,
            )

    def _on_no_address(self, name: str) -> None:
        self._failures += 1
        if self._failures == 1:
            _log.warning(
                "%s: %s to broker %d waits, because the broker's znode has no plaintext address: "
                "give the broker a PLAINTEXT listener",
                self._name,
                name,
                self.broker_id,
            )

    def _on_success(self) -> None:
        if self._failures >= _LOUD_AFTER:
            _log.info("%s: broker %d responds again", self._name, self.broker_id)
        self._failures = 0

    def _on_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error(
                "%s: the channel to broker %d ended by a fault of this program",
                self._name,
                self.broker_id,
                exc_info=error,
            )
