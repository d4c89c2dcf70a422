"""Several connections to whichever controller leads the quorum now."""

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

from featurewatch.deploy.errors import RefusedError, WireError
from featurewatch.deploy.process.polling import attempts
from featurewatch.deploy.wire.connection import BlockingConnection
from featurewatch.deploy.wire.probe import METADATA_TOPIC_ID

Item = TypeVar("Item")
Result = TypeVar("Result")
Response = TypeVar("Response")

NOT_CONTROLLER = 41


def leader_address(controllers: Sequence[tuple[str, int]]) -> tuple[str, int]:
    """Host and port of the quorum's leader, by the word of the first controller that names it.

    Works with controllers of 3.9 and newer: Fetch v17 is the first whose answers name endpoints.

    Raises:
        WireError: if no controller answers with one; its text is the last answer's.
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
    said = WireError("no controller was named")
    for host, port in controllers:
        try:
            with BlockingConnection(host, port, 2.0) as connection:
                response = connection.request(request, FetchResponse)
        except WireError as error:
            said = error
            continue
        leaders = {p.current_leader.leader_id for t in response.responses for p in t.partitions}
        for node in response.node_endpoints:
            if node.node_id in leaders:
                return node.host, int(node.port)
        said = WireError(f"{host}:{port} names no leader of the quorum")
    raise said


def parse_addresses(controllers: str) -> list[tuple[str, int]]:
    """``host:port,...`` as pairs.

    Raises:
        WireError: if it is not that.
    """
    found: list[tuple[str, int]] = []
    for word in controllers.split(","):
        host, _, port = word.strip().rpartition(":")
        if not host or not port.isdigit():
            raise WireError(f"{word!r} is not host:port")
        found.append((host, int(port)))
    return found


class ControllerPool:
    """Asks the active controller many things at once, and finds it again when it moves.

    A Kafka node handles one request of a connection at a time, so the number of connections is how
    many writes to the metadata log wait for their commit together. ``retry_timeout_s``: how long a
    request is repeated while there is no leader.
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

    def ask(
        self, request: Any, answered_by: type[Response], check: Callable[[Response], None]
    ) -> Response:
        """The active controller's response; ``check`` raises `RefusedError` if it is an error.

        Raises:
            RefusedError: what ``check`` raises, except that another controller is active now.
            WireError: if no leader answers for as long as the patience lasts.
        """
        failed = WireError("no controller was asked")
        for _ in attempts(self._retry_timeout_s):
            connection = self._idle.get()
            try:
                if connection is None:
                    connection = self._connect()
                response = connection.request(request, answered_by)
                check(response)
                return response
            except WireError as error:
                if isinstance(error, RefusedError) and error.code != NOT_CONTROLLER:
                    raise
                failed = error
                if connection is not None:
                    connection.close()
                    connection = None
                with self._lock:
                    self._leader = None
            finally:
                self._idle.put(connection)
        raise failed

    def each(self, action: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """The action's results, in order; as many at a time as there are connections."""
        return list(self._threads.map(action, items))

    def close(self) -> None:
        """Waits for requests under way and closes the connections."""
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
