"""Runs the coroutines of commands on one event loop, with the connections of one cluster."""

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeVar

from featurewatch.admin.connections import AdminConnections, Bootstrap
from featurewatch.cli.command_line import Exit
from featurewatch.cli.errors import ExitCode

_RESULT = TypeVar("_RESULT")
_END_S: Final = 5.0


class ClientSession:
    """An event loop for one command or, in a shell, for one after another, which share connections.

    The main thread's; close it when done. ``run`` is interrupted by Ctrl-C as `asyncio.run` is.
    """

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._connections: AdminConnections | None = None

    def run(self, work: Coroutine[Any, Any, _RESULT]) -> _RESULT:
        """The result of a command's work; what it started and left running is canceled.

        SIGTERM cancels the work, as Ctrl-C does, so that it leaves the cluster in order.

        Raises:
            Exit: It was terminated.
        """
        loop = self._runner.get_loop()
        try:
            return self._runner.run(_until_terminated(work))
        except asyncio.CancelledError:
            raise Exit(ExitCode.TERMINATED) from None
        finally:
            # Also the work itself: a second Ctrl-C leaves it where it was.
            if left := asyncio.all_tasks(loop):
                self._runner.run(_cancel(left))

    async def connections(self, bootstrap: Bootstrap, timeout_s: float) -> AdminConnections:
        """The connections to a cluster; a command that names another one, or has another login,
        closes those of the command before it."""
        known = self._connections
        if known is None or (known.bootstrap, known.timeout_s) != (bootstrap, timeout_s):
            if known is not None:
                await known.close()
            known = self._connections = AdminConnections(bootstrap, timeout_s)
        return known

    def close(self) -> None:
        """Closes the connections and the loop."""
        if self._connections is not None:
            self._runner.run(self._connections.close())
        self._runner.close()


_SHELL: Final[ContextVar[ClientSession | None]] = ContextVar("shell_session", default=None)


@contextmanager
def shell_session() -> Iterator[None]:
    """Commands that run within the block share one session."""
    session = ClientSession()
    token = _SHELL.set(session)
    try:
        yield
    finally:
        _SHELL.reset(token)
        session.close()


@contextmanager
def command_session() -> Iterator[ClientSession]:
    """The shell's session, or one for a single command."""
    session = _SHELL.get()
    if session is not None:
        yield session
        return
    session = ClientSession()
    try:
        yield session
    finally:
        session.close()


async def _until_terminated(work: Coroutine[Any, Any, _RESULT]) -> _RESULT:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine runs in a task
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await work
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


async def _cancel(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancels tasks and waits for their end; one that takes too long keeps running."""
    for task in tasks:
        task.cancel()
    done, _ = await asyncio.wait(tasks, timeout=_END_S)
    for task in done:
        if not task.cancelled():
            task.exception()  # the loop would report an exception that was never retrieved
