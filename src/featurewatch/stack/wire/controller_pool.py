"""A pool of connections to the active controller, which follows changes of the leader."""

import queue
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Final, Self, TypeVar

from featurewatch.kafka.address import parse_addresses
from featurewatch.kafka.messages import Request
from featurewatch.stack.errors import RefusedError, WireError
from featurewatch.stack.process.polling import attempts
from featurewatch.stack.wire.connection import BlockingConnection
from featurewatch.stack.wire.probe import leader_address

Item = TypeVar("Item")
Result = TypeVar("Result")
Response = TypeVar("Response")

NOT_CONTROLLER: Final = 41


class ControllerPool:
    """Sends requests to the active controller in parallel, and finds it again when it changes.

    A Kafka node handles one request of a connection at a time, so up to ``connections`` writes to
    the metadata log wait for their commit together. While there is no leader, a request is retried
    for up to ``retry_timeout_s`` seconds.

    Raises:
        WireError: if ``controllers`` is not ``host:port,...``.
    """

    def __init__(
        self, controllers: str, connections: int = 16, retry_timeout_s: float = 30.0
    ) -> None:
        try:
            self._controllers = parse_addresses(controllers)
        except ValueError as error:
            raise WireError(str(error)) from None
        self._retry_timeout_s = retry_timeout_s
        self._leader: tuple[str, int] | None = None
        self._lock = threading.Lock()
        self._idle: queue.SimpleQueue[BlockingConnection | None] = queue.SimpleQueue()
        for _ in range(connections):
            self._idle.put(None)
        self._threads = ThreadPoolExecutor(connections, thread_name_prefix="leader-pool")

    def request(self, request: Request[Response], check: Callable[[Response], None]) -> Response:
        """Sends a request to the active controller; returns its response.

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
                response = connection.request(request)
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
                self._leader = self._find_leader()
            host, port = self._leader
        return BlockingConnection(host, port, 30.0)

    def _find_leader(self) -> tuple[str, int]:
        failure = WireError("there is no controller address")
        for host, port in self._controllers:
            try:
                return leader_address(host, port)
            except WireError as error:
                failure = error
        raise failure
