"""One ZooKeeper session by kazoo: sends reads, and puts what comes back into the queue.

kazoo's connection thread puts events directly, so they arrive in the order of the wire.
Nothing here can write: of kazoo's client only reads are called.
"""

import contextlib
import errno
import logging
import socket
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, NoNodeError, SessionClosedRequireSaslError
from kazoo.protocol.states import EventType, KazooState, KeeperState, ZnodeStat
from kazoo.retry import KazooRetry

from featurewatch.common.text import quoted
from featurewatch.kafka.address import Address
from featurewatch.kafka.failures import tls_failure
from featurewatch.streams.zookeeper.bounded_socket import BoundedSocket
from featurewatch.streams.zookeeper.event_queue import (
    EventQueue,
    ReadCompleted,
    SessionConnected,
    SessionDisconnected,
    WatchTriggered,
)
from featurewatch.streams.zookeeper.in_order_handler import CallbackResult, InOrderHandler
from featurewatch.streams.zookeeper.kazoo_log import KazooLogHandler
from featurewatch.streams.zookeeper.paths import WatchTarget
from featurewatch.streams.zookeeper.settings import ZookeeperSettings
from featurewatch.streams.zookeeper.watcher.requests import (
    ReadChildren,
    ReadData,
    ReadExists,
    ReadFailed,
    ReadForbidden,
    ReadOperation,
    ReadRequest,
    ReadResult,
    Synced,
    ZnodeAbsent,
    ZnodeVersion,
)

MAX_CHILDREN: Final = 200_000
"""The children of one znode: each is read. Kafka is made for as many partitions in a cluster."""

_ALIVE: Final = (KeeperState.EXPIRED_SESSION, KeeperState.CONNECTING)


class ZookeeperSession:
    """One session; after it ended a new object is needed."""

    def __init__(self, settings: ZookeeperSettings, queue: EventQueue) -> None:
        self._queue = queue
        self._reasons = KazooLogHandler(settings)
        self._handler = _Handler(settings)
        logger = logging.Logger("kazoo", logging.WARNING)  # ours alone, unnamed
        logger.addHandler(self._reasons)
        self._client = KazooClient(
            settings.connect_string,
            timeout=settings.session_timeout_ms / 1000,
            handler=self._handler,
            logger=logger,
            connection_retry=KazooRetry(max_tries=-1, delay=0.1, backoff=1.6, max_delay=2.0),
            sasl_options=self._sasl_options(settings),
        )
        self._client.add_listener(self._changed)

    def _sasl_options(self, settings: ZookeeperSettings) -> dict[str, Any] | None:
        login = settings.login
        if login.tickets is not None:
            from featurewatch.streams.zookeeper import kerberos  # here: few sites have it

            return {
                "mechanism": kerberos.NAME,
                "service": login.tickets.login.service,
                "tickets": login.tickets,
                "timeout_s": settings.answer_timeout_ms / 1000,
                "on_failure": self._reasons.login_failed,
            }
        if not login.username:
            return None
        return {
            "mechanism": "DIGEST-MD5",
            "username": login.username,
            "password": login.password,
        }

    @property
    def reason(self) -> str:
        """Why there is no connection, in one line, as far as is known."""
        return self._reasons.reason

    def open(self) -> None:
        """Begin to connect, and reconnect until `close`."""
        self._client.start_async()

    def close(self) -> threading.Event:
        """End the session in the background; the event is set when that is done."""
        self._client.remove_listener(self._changed)
        done = threading.Event()
        threading.Thread(target=self._close, args=(done,), daemon=True).start()
        return done

    def _close(self, done: threading.Event) -> None:
        try:
            self._client.stop()
            self._client.close()
        except Exception as error:
            logging.getLogger("featurewatch.zookeeper").debug("closing: %s", error)
        finally:
            done.set()

    def send(self, request: ReadRequest) -> None:
        """Send a read."""
        watch = _Watch(request.generation, request.target, self._queue)
        path = request.target.path
        match request.operation:
            case ReadOperation.GET:
                read = partial(self._client.get_async, path, watch)
            case ReadOperation.LIST:
                read = partial(self._client.get_children_async, path, watch)
            case ReadOperation.EXISTS:
                read = partial(self._client.exists_async, path, watch)
            case ReadOperation.CHROOT:
                read = partial(self._client.exists_async, path)
            case ReadOperation.SYNC:
                read = partial(self._client.sync_async, path)
        self._handler.send(read, partial(self.complete, request))

    def complete(self, request: ReadRequest, result: CallbackResult) -> None:
        """Called by kazoo's connection thread, before it reads the next response."""
        error = result.exception
        if isinstance(error, SessionClosedRequireSaslError):
            self._reasons.login_wanted()
        outcome = _outcome(request, result.value) if error is None else _failure(error)
        self._queue.put(ReadCompleted(request.token, outcome, self._client.last_zxid or 0))

    def _changed(self, state: str) -> None:
        """Called by kazoo's connection thread."""
        if state == KazooState.CONNECTED:
            client_id = self._client.client_id
            if client_id is not None:
                self._queue.put(SessionConnected(client_id[0]))
        else:
            self._queue.put(SessionDisconnected(permanent=self._client.client_state not in _ALIVE))


class _Watch(NamedTuple):
    """kazoo's callback; equal ones are stored once, however often a znode is read."""

    generation: int
    target: WatchTarget
    queue: EventQueue

    def __call__(self, event: Any) -> None:
        if event.type != EventType.NONE:
            self.queue.put(WatchTriggered(self.generation, self.target))


class _Handler(InOrderHandler):
    """Connects with our own TLS and limits."""

    def __init__(self, settings: ZookeeperSettings) -> None:
        super().__init__()
        self._tls = settings.login.tls
        self._max_frame_bytes = settings.max_frame_bytes
        self._answer_s = settings.answer_timeout_ms / 1000
        # kazoo waits for each server for the whole session timeout: one that drops packets would
        # cost the session. Java's client divides the timeout among the servers too.
        servers = settings.connect_string.count(",") + 1
        self._connect_s = max(1.0, settings.session_timeout_ms / 1000 / (servers + 1))

    def spawn(self, func: Callable[..., None], *args: Any, **kwargs: Any) -> Any:
        def run() -> None:
            # An error that ends kazoo's connection thread is in its log: `KazooLogHandler` has it.
            with contextlib.suppress(Exception):
                func(*args, **kwargs)

        return super().spawn(run)

    def create_connection(
        self, address: tuple[str, int], hostname: str, timeout: float, **_: Any
    ) -> BoundedSocket:
        # kazoo's own connection would trust all authorities of the system as well.
        connection = socket.create_connection(address, min(timeout, self._connect_s))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server = Address(hostname, address[1])
        if self._tls is not None:
            try:
                connection = self._tls.wrap_socket(connection, server_hostname=hostname)
            except OSError as error:
                connection.close()
                raise OSError(errno.EPROTO, tls_failure(server, error)) from error
            except BaseException:
                connection.close()
                raise
        return BoundedSocket(connection, server, self._max_frame_bytes, self._answer_s)


def _outcome(request: ReadRequest, value: Any) -> ReadResult:
    match request.operation:
        case ReadOperation.GET:
            data, stat = value
            return ReadData(data or b"", _stat(stat))
        case ReadOperation.LIST:
            return _children(value)
        case ReadOperation.SYNC:
            return Synced()
        case _:
            return ZnodeAbsent() if value is None else ReadExists(_stat(value))


def _children(names: list[str | None]) -> ReadResult:
    if len(names) > MAX_CHILDREN:
        return ReadFailed(f"it has {len(names)} children, more than {MAX_CHILDREN}")
    for name in names:
        # No server lets such a znode be made (ZooKeeper: ``PathUtils.validatePath``).
        if not name or name in (".", "..") or "/" in name or "\0" in name:
            return ReadFailed(f"it lists a child with an invalid name: {quoted(repr(name))}")
    return ReadChildren(tuple(filter(None, names)))


def _stat(stat: ZnodeStat) -> ZnodeVersion:
    return ZnodeVersion(stat.czxid, stat.mzxid, stat.version, stat.ephemeralOwner)


def _failure(error: BaseException) -> ReadResult:
    if isinstance(error, NoNodeError):
        return ZnodeAbsent()
    if isinstance(error, NoAuthError):
        return ReadForbidden()
    return ReadFailed(quoted(f"{type(error).__name__} {error}".strip()))
