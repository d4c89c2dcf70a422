"""One ZooKeeper session by kazoo: sends reads, and puts what comes back into the inbox.

kazoo's connection thread hands over directly, so everything arrives in the order of the wire.
Nothing here can write: of kazoo's client only reads are called.
"""

import contextlib
import logging
import socket
import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, NoNodeError, SessionClosedRequireSaslError
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.states import EventType, KazooState, KeeperState, ZnodeStat
from kazoo.retry import KazooRetry

from featurewatch.streams.zookeeper.event_queue import (
    EventQueue,
    ReadCompleted,
    SessionConnected,
    SessionDisconnected,
    WatchTriggered,
)
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

_ALIVE: Final = (KeeperState.EXPIRED_SESSION, KeeperState.CONNECTING)


class ZookeeperSession:
    """A session; another one needs another link."""

    def __init__(self, settings: ZookeeperSettings, inbox: EventQueue) -> None:
        self._inbox = inbox
        self._reasons = KazooLogHandler(settings)
        self._handler = _Handler(settings)
        login = settings.login
        logger = logging.Logger("kazoo", logging.WARNING)  # ours alone, unnamed
        logger.addHandler(self._reasons)
        self._client = KazooClient(
            settings.connect_string,
            timeout=settings.session_timeout_ms / 1000,
            handler=self._handler,
            logger=logger,
            connection_retry=KazooRetry(max_tries=-1, delay=0.1, backoff=1.6, max_delay=2.0),
            sasl_options={
                "mechanism": "DIGEST-MD5",
                "username": login.username,
                "password": login.password,
            }
            if login.username
            else None,
        )
        self._client.add_listener(self._changed)

    @property
    def reason(self) -> str:
        """Why there is no connection, in one line, as far as is known."""
        return self._reasons.line

    def open(self) -> None:
        """Begins to connect, and does so until `close`."""
        self._client.start_async()

    def close(self) -> threading.Event:
        """Ends the session in the background; the event is set when that is done."""
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
        """Sends a read."""
        watch = _Watch(request.generation, request.target, self._inbox)
        path = request.target.path

        self._handler.answer = _Answer(self, request)
        match request.operation:
            case ReadOperation.GET:
                self._client.get_async(path, watch)
            case ReadOperation.LIST:
                self._client.get_children_async(path, watch)
            case ReadOperation.EXISTS:
                self._client.exists_async(path, watch)
            case ReadOperation.CHROOT:
                self._client.exists_async(path)
            case ReadOperation.SYNC:
                self._client.sync_async(path)

    def completed(self, request: ReadRequest, outcome: ReadResult) -> None:
        """Called by kazoo's connection thread, before it reads the next answer."""
        self._inbox.put(ReadCompleted(request.token, outcome, self._client.last_zxid or 0))

    def failed(self, request: ReadRequest, error: Exception) -> None:
        """Called by kazoo's connection thread, for an error instead of an answer."""
        if isinstance(error, SessionClosedRequireSaslError):
            self._reasons.login_wanted()
        self.completed(request, _failure(error))

    def _changed(self, state: str) -> None:
        """Called by kazoo's connection thread."""
        if state == KazooState.CONNECTED:
            client_id = self._client.client_id
            if client_id is not None:
                self._inbox.put(SessionConnected(client_id[0]))
        else:
            self._inbox.put(SessionDisconnected(dead=self._client.client_state not in _ALIVE))


class _Watch(NamedTuple):
    """What kazoo calls; equal ones are kept once, however often a znode is read."""

    generation: int
    target: WatchTarget
    inbox: EventQueue

    def __call__(self, event: Any) -> None:
        if event.type != EventType.NONE:
            self.inbox.put(WatchTriggered(self.generation, self.target))


class _Answer:
    """Where kazoo puts an answer: told at once, by the thread that read it."""

    __slots__ = ("_ask", "_link")

    def __init__(self, link: ZookeeperSession, request: ReadRequest) -> None:
        self._link = link
        self._ask = request

    def set(self, value: Any = None) -> None:
        self._link.completed(self._ask, _outcome(self._ask, value))

    def set_exception(self, error: Exception) -> None:
        self._link.failed(self._ask, error)

    def rawlink(self, callback: Callable[[Any], Any]) -> None:
        """Only a sync asks for this, to take the chroot off a path that nobody wants."""


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo ships no types
    """kazoo's threads, without its queues between the connection and us, and with our own TLS."""

    def __init__(self, settings: ZookeeperSettings) -> None:
        super().__init__()
        self._tls = settings.login.tls
        # kazoo gives each server the whole session's time to accept: one that swallows packets
        # would cost the session. Java's client shares the time out as well.
        servers = settings.connect_string.count(",") + 1
        self._connect_s = max(1.0, settings.session_timeout_ms / 1000 / (servers + 1))
        self.answer: _Answer | None = None
        """Where the answer to what is asked next is put."""

    def async_result(self) -> Any:
        return self.answer

    def spawn(self, func: Callable[..., None], *args: Any, **kwargs: Any) -> Any:
        def run() -> None:
            # What ends kazoo's connection thread is in its log by then: `KazooLogHandler` has it.
            with contextlib.suppress(Exception):
                func(*args, **kwargs)

        return super().spawn(run)

    def dispatch_callback(self, callback: Any) -> None:
        callback.func(*callback.args)

    def create_connection(
        self, address: tuple[str, int], hostname: str, timeout: float, **_: Any
    ) -> socket.socket:
        # kazoo's own would trust every authority of the system beside the given one.
        connection = socket.create_connection(address, min(timeout, self._connect_s))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is None:
            return connection
        try:
            return self._tls.wrap_socket(connection, server_hostname=hostname)
        except BaseException:
            connection.close()
            raise


def _outcome(request: ReadRequest, value: Any) -> ReadResult:
    match request.operation:
        case ReadOperation.GET:
            data, stat = value
            return ReadData(data or b"", _stat(stat))
        case ReadOperation.LIST:
            return ReadChildren(tuple(value))
        case ReadOperation.SYNC:
            return Synced()
        case _:
            return ZnodeAbsent() if value is None else ReadExists(_stat(value))


def _stat(stat: ZnodeStat) -> ZnodeVersion:
    return ZnodeVersion(stat.czxid, stat.mzxid, stat.version, stat.ephemeralOwner)


def _failure(error: Exception) -> ReadResult:
    if isinstance(error, NoNodeError):
        return ZnodeAbsent()
    if isinstance(error, NoAuthError):
        return ReadForbidden()
    return ReadFailed(f"{type(error).__name__} {error}".strip())
