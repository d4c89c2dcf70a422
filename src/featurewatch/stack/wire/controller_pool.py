"""A pool of connections to the active controller, which follows changes of the leader."""

import datetime
import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self, TypeVar

from kio.schema.fetch.v17.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.fetch.v17.response import FetchResponse
from kio.static.primitive import i32, i32Timedelta, i64

from featurewatch.stack.errors import RefusedError, WireError
from featurewatch.stack.process.polling import attempts
from featurewatch.stack.wire.connection import BlockingConnection
from featurewatch.stack.wire.probe import METADATA_TOPIC_ID

Item = TypeVar("Item")
Result = TypeVar("Result")
Response = TypeVar("Response")

NOT_CONTROLLER = 41


def leader_address(controllers: Sequence[tuple[str, int]]) -> tuple[str, int]:
    """Host and port of the quorum's leader, from the first controller whose response has them.

    Needs controllers of 3.9 or newer: Fetch v17 is the first whose responses contain endpoints.

    Raises:
        WireError: if no controller reports a leader; the text is that of the last failure.
    """
    partition = FetchPartition(
        partition=i32(0),
        current_leader_epoch=i32(0),
        fetch_offset=i64(0),
        last_fetched_epoch=i32(0),
        partition_max_bytes=i32(1),
    )
    request = FetchRequest(
        max_wait=i32Timedelta.parse(datetime.timedelta(0)),
        min_bytes=i32(0),
        topics=(FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(partition,)),),
        forgotten_topics_data=(),
    )
    failure = WireError("there is no controller address")
    for host, port in controllers:
        try:
            with BlockingConnection(host, port, 2.0) as connection:
                response = connection.request(request, FetchResponse)
        except WireError as error:
            failure = error
            continue
        leaders = {p.current_leader.leader_id for t in response.responses for p in t.partitions}
        for node in response.node_endpoints:
            if node.node_id in leaders:
                return node.host, int(node.port)
        failure = WireError(f"{host}:{port} reports no leader of the quorum")
    raise failure


def parse_addresses(controllers: str) -> list[tuple[str, int]]:
    """Parses ``host:port,...`` into pairs of host and port.

    Raises:
        WireError: if the text has another form.
    """
    addresses: list[tuple[str, int]] = []
    for address in controllers.split(","):
        host, _, port = address.strip().rpartition(":")
        if not host or not port.isdigit():
            raise WireError(f"{address!r} is not host:port")
        addresses.append((host, int(port)))
    return addresses


class ControllerPool:
    """Sends requests to the active controller in parallel, and finds it again when it changes.

    A Kafka node handles one request of a connection at a time, so up to ``connections`` writes to
    the metadata log wait for their commit together. While there is no leader, a request is retried
    for up to ``retry_timeout_s`` seconds.
    """

    def __init__(
        self, controllers: str, connections: int = 16, retry_timeout_s: float = 30.0
    ) -> None:
        self._controllers = parse_addresses(controllers)
        self._retry_timeout_s = retry_timeout_s
        self._leader: tuple[str, int] | None = None
        self._lock = threading.Lock()
        self._idle: queue.SimpleQueue[BlockingConnection | None] = queue.SimpleQueue()
        for _ in range(connections):
            self._idle.put(None)
        self._threads = ThreadPoolExecutor(connections, thread_name_prefix="leader-pool")

    def request(
        self, request: Any, response_type: type[Response], check: Callable[[Response], None]
    ) -> Response:
        """Sends a request to the active controller; its response, of kio's class ``response_type``.

        ``check`` raises `RefusedError` if the response is an error; NOT_CONTROLLER is retried.

        Raises:
            RefusedError: as raised by ``check``, unless it is NOT_CONTROLLER.
            WireError: if no leader responds within ``retry_timeout_s``.
        """
        failure = WireError("no request was sent")
        for _ in attempts(self._retry_timeout_s):
            connection = self._idle.get()
            try:
                if connection is None:
                    connection = self._connect()
                response = connection.request(request, response_type)
                check(response)
                return response
            except WireError as error:
                if isinstance(error, RefusedError) and error.code != NOT_CONTROLLER:
                    raise
                failure = error
                if connection is not None:
                    connection.close()
                    connection = None
                with self._lock:
                    self._leader = None
            finally:
                self._idle.put(connection)
        raise failure

    def map(self, action: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """The results of ``action`` for each item, in order; runs one per connection at a time."""
        return list(self._threads.map(action, items))

    def close(self) -> None:
        """Waits for requests in flight and closes the connections."""
        self._threads.shutdown()
        while not self._idle.empty():
            connection = self._idle.get()
            if connection is not None:
                connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _connect(self) -> BlockingConnection:
        with self._lock:
            if self._leader is None:
                self._leader = leader_address(self._controllers)
            host, port = self._leader
        return BlockingConnection(host, port, 30.0)
