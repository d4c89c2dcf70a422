"""What the coroutines of a cluster's clients run on: nothing but a socket, or an event loop.

A command of the command line runs by itself, and ends its connections. Within a `ClientSession`
commands run one after another, and share connections.
"""

from collections.abc import Callable, Collection, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

if TYPE_CHECKING:
    import asyncio

    from featurewatch.kafka.transport import Connect

_RESULT = TypeVar("_RESULT")
_END_S: Final = 5.0


class ClientSession:
    """An event loop that outlives a command, with the connections that it leaves open.

    One thread's; close it when done. ``run`` is interrupted by Ctrl-C as `asyncio.run` is.
    """

    def __init__(self) -> None:
        import asyncio

        from featurewatch.kafka.reuse import IdleTransports

        self._runner = asyncio.Runner()
        self._idle = IdleTransports(self._runner.get_loop())

    def run(self, work: Coroutine[Any, Any, _RESULT]) -> _RESULT:
        """The result of what a client does; what it started and left running is canceled."""
        import asyncio

        from featurewatch.kafka.reuse import reusing

        with reusing(self._idle):
            try:
                return self._runner.run(work, context=copy_context())
            finally:
                # Also the work itself: a second Ctrl-C leaves it where it was.
                if left := asyncio.all_tasks(self._runner.get_loop()):
                    self._runner.run(_cancel(left))

    def close(self) -> None:
        """Closes the connections and the loop."""
        self._idle.close()
        self._runner.close()


_SESSION: Final[ContextVar[ClientSession | None]] = ContextVar("client_session", default=None)


@contextmanager
def client_session() -> Iterator[None]:
    """Commands that run within the block, in this thread, share connections."""
    session = ClientSession()
    token = _SESSION.set(session)
    try:
        yield
    finally:
        _SESSION.reset(token)
        session.close()


def run_client(work: Coroutine[Any, Any, _RESULT]) -> _RESULT:
    """The result of what a client does, on an event loop."""
    session = _SESSION.get()
    if session is not None:
        return session.run(work)
    import asyncio

    return asyncio.run(work)


class ClientRunner(NamedTuple):
    """How a client connects, and what runs its coroutines; ``connect`` None: by an event loop."""

    connect: "Connect | None"
    run: Callable[[Coroutine[Any, Any, Any]], Any]


def light_runner() -> ClientRunner:
    """Without an event loop, whose import takes longer than a request; unless there is one."""
    session = _SESSION.get()
    if session is not None:
        return ClientRunner(None, session.run)
    from featurewatch.kafka.transport import connect_blocking, run_blocking

    return ClientRunner(connect_blocking, run_blocking)


async def _cancel(tasks: "Collection[asyncio.Task[Any]]") -> None:
    """Cancels tasks and waits for their end; one that takes too long goes on."""
    import asyncio

    for task in tasks:
        task.cancel()
    done, _ = await asyncio.wait(tasks, timeout=_END_S)
    for task in done:
        if not task.cancelled():
            task.exception()  # the loop would report an exception that nobody has looked at
