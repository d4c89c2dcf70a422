"""Kazoo clients that speak in the order of the connection, and a clock that never goes back."""

import logging
import select
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.retry import KazooRetry

_log = logging.getLogger("reference")


class _ImmediateQueue:
    """What kazoo takes for a queue: it is done at once, where it comes from."""

    def put(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:  # as kazoo's own workers do: its connection thread must live
            _log.exception("kazoo's answer could not be handed on")


class CallbackResult:
    """What kazoo sets once: a value or an exception. Nobody waits for it, so it has no locks."""

    __slots__ = ("_on_done", "exception", "value")

    def __init__(self, on_done: Callable[["CallbackResult"], None]) -> None:
        self._on_done = on_done
        self.value: Any = None
        self.exception: BaseException | None = None

    def set(self, value: Any = None) -> None:
        """It is done."""
        self.value = value
        self._notify()

    def set_exception(self, exception: BaseException) -> None:
        """It has failed."""
        self.exception = exception
        self._notify()

    def _notify(self) -> None:
        try:
            self._on_done(self)
        except Exception:
            _log.exception("kazoo's answer could not be handed on")


class InOrderHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo is untyped
    """Keeps watches and answers in the order of the connection.

    Kazoo hands them to two threads, so that an answer may overtake the watch that fired before it.
    Here both are handed on in the thread that reads the connection; what is called there only
    passes it to the loop.
    """

    def __init__(self) -> None:
        super().__init__()
        self.completion_queue = _ImmediateQueue()
        self._thread_local = threading.local()

    def send(self, request: Callable[[], Any], on_done: Callable[[Any], None]) -> None:
        """Makes a request of kazoo's whose result ``on_done`` is given.

        Linked before anything is sent: of a result that is there first, the answer would be handed
        on by this thread, and what the connection's thread reads next could overtake it.
        """
        self._thread_local.on_done = on_done
        try:
            request()
        finally:
            self._thread_local.on_done = None

    def async_result(self) -> Any:
        """A result to come; the first that a request makes is the one that it gives back."""
        on_done = getattr(self._thread_local, "on_done", None)
        if on_done is None:
            return super().async_result()
        self._thread_local.on_done = None
        return CallbackResult(on_done)

    def start(self) -> None:
        """There are no workers to start."""
        self._running = True

    def stop(self) -> None:
        """There are no workers to stop."""
        self._running = False

    def select(
        self, rlist: Sequence[Any], wlist: Sequence[Any], _: Sequence[Any], timeout: float | None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Waits for sockets, with one call to the system where kazoo's own makes five."""
        poller = select.poll()
        for sock in rlist:
            poller.register(sock, select.POLLIN)
        for sock in wlist:
            poller.register(sock, select.POLLOUT)
        ready = {fd for fd, _ in poller.poll(None if timeout is None else timeout * 1000)}
        return (
            [sock for sock in rlist if sock.fileno() in ready],
            [sock for sock in wlist if sock.fileno() in ready],
            [],
        )

    def dispatch_callback(self, callback: Any) -> None:
        """Calls a watcher."""
        self.completion_queue.put(partial(callback.func, *callback.args))


def kazoo_client(connect: str, session_timeout_s: float) -> KazooClient:
    """A client that connects again for ever; ``connect`` may end in a chroot."""
    retry = KazooRetry(max_tries=-1, delay=0.05, backoff=2, max_delay=1.0)
    return KazooClient(
        hosts=connect,
        timeout=session_timeout_s,
        handler=InOrderHandler(),
        connection_retry=retry,
    )


def monotonic_wall_clock() -> Callable[[], float]:
    """Milliseconds since 1970 that never go back."""
    wall_start_s, monotonic_start_s = time.time(), time.monotonic()
    return lambda: (wall_start_s + time.monotonic() - monotonic_start_s) * 1000
