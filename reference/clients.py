"""Kazoo clients that speak in the order of the connection, and a clock that never goes back."""

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.retry import KazooRetry

_log = logging.getLogger("reference")


class _AtOnce:
    """What kazoo takes for a queue: it is done at once, where it comes from."""

    def put(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:  # as kazoo's own workers do: its connection thread must live
            _log.exception("kazoo's answer could not be handed on")


class _InOrder(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo is untyped
    """Keeps watches and answers in the order of the connection.

    Kazoo hands them to two threads, so that an answer may overtake the watch that fired before it.
    Here both are handed on in the thread that reads the connection; what is called there only
    passes it to the loop.
    """

    def __init__(self) -> None:
        super().__init__()
        self.completion_queue = _AtOnce()

    def start(self) -> None:
        self._running = True

    def stop(self) -> None:
        self._running = False

    def dispatch_callback(self, callback: Any) -> None:
        self.completion_queue.put(partial(callback.func, *callback.args))


def kazoo_client(connect: str, session_timeout_s: float) -> KazooClient:
    """A client that connects again for ever; ``connect`` may end in a chroot."""
    retry = KazooRetry(max_tries=-1, delay=0.05, backoff=2, max_delay=1.0)
    return KazooClient(
        hosts=connect,
        timeout=session_timeout_s,
        handler=_InOrder(),
        connection_retry=retry,
    )


def wall_clock() -> Callable[[], float]:
    """Milliseconds since 1970 that never go back."""
    began, started = time.time(), time.monotonic()
    return lambda: (began + time.monotonic() - started) * 1000
