"""A handler of kazoo that delivers events in connection order."""

import logging
import select
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from kazoo.handlers.threading import SequentialThreadingHandler

LOG: Final = logging.getLogger("featurewatch.zookeeper")


class _ImmediateQueue:
    """Replaces kazoo's queue: runs the work at once, in the calling thread."""

    def put(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:  # as in kazoo's own workers: the connection thread must survive
            LOG.exception("handling a response of kazoo's failed")


class CallbackResult:
    """The result that kazoo sets once: a value or an exception.

    Calls ``on_done`` with itself then. Nobody waits for it, so it needs no lock.
    """

    __slots__ = ("_on_done", "exception", "value")

    def __init__(self, on_done: Callable[["CallbackResult"], None]) -> None:
        self._on_done = on_done
        self.value: Any = None
        self.exception: BaseException | None = None

    def set(self, value: Any = None) -> None:
        """Completes with a value."""
        self.value = value
        self._notify()

    def set_exception(self, exception: BaseException) -> None:
        """Completes with an exception."""
        self.exception = exception
        self._notify()

    def _notify(self) -> None:
        try:
            self._on_done(self)
        except Exception:
            LOG.exception("handling a response of kazoo's failed")


class InOrderHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo is untyped
    """Delivers watches and responses in the order in which they arrive on the connection.

    Kazoo dispatches them to two threads, so a response may overtake a watch that fired before it.
    This handler calls both in the thread that reads the connection; the callbacks only pass them
    on to an event loop.
    """

    def __init__(self) -> None:
        super().__init__()
        self.completion_queue = _ImmediateQueue()
        self._thread_local = threading.local()

    def send(self, request: Callable[[], Any], on_done: Callable[[Any], None]) -> None:
        """Calls ``request``, which sends one of kazoo's requests; ``on_done`` gets its result.

        The callback is linked before anything is sent. If it were linked to a completed result,
        this thread would deliver it, and the connection's next event could overtake it.
        """
        self._thread_local.on_done = on_done
        try:
            request()
        finally:
            self._thread_local.on_done = None

    def async_result(self) -> Any:
        """A new result; the first one that a request creates is the one that it returns."""
        on_done = getattr(self._thread_local, "on_done", None)
        if on_done is None:
            return super().async_result()
        self._thread_local.on_done = None
        return CallbackResult(on_done)

    def start(self) -> None:
        """Marks the handler as running; there are no workers to start."""
        self._running = True

    def stop(self) -> None:
        """Marks the handler as stopped; there are no workers to stop."""
        self._running = False

    def select(
        self, rlist: Sequence[Any], wlist: Sequence[Any], _: Sequence[Any], timeout: float | None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Waits for sockets with one system call, where kazoo's own method makes five."""
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
