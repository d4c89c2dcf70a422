"""Runs a process as a service: notifies the service manager, and reloads on SIGHUP."""

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from typing import TYPE_CHECKING, Final

from featurewatch.common.service_manager import ServiceManager
from featurewatch.common.service_state import STATE, ServiceState
from featurewatch.common.tasks import start_background

if TYPE_CHECKING:
    from featurewatch.cli.config.settings import Settings

LOG: Final = logging.getLogger("featurewatch.service")

_CHECK_S: Final = 1.0
"""Between two looks at whether the process is ready."""


class Service:
    """What a process tells its service manager.

    ``required`` are the parts without which it is not ready. ``read`` reads the settings of the
    process again; it raises `UsageError` for wrong ones.
    """

    def __init__(
        self,
        manager: ServiceManager,
        required: Collection[str],
        read: "Callable[[], Settings]",
        state: ServiceState = STATE,
    ) -> None:
        self._manager = manager
        self._required = required
        self._read = read
        self._state = state
        self._settings = read()
        self._status = ""
        self._stuck: list[str] = []
        self._has_been_ready = False

    @contextlib.asynccontextmanager
    async def notifying(self) -> AsyncIterator[None]:
        """Notifies as long as the context lasts, if there is a service manager."""
        if not self._manager.address:
            yield
            return
        task = start_background("notifying the service manager", self.run)
        try:
            yield
        finally:
            await task.close()

    async def run(self) -> None:
        """Notifies until cancelled: the status when it changes, READY once, and signs of life.

        A sign of life is sent by the event loop, and only while no loop of work is stuck.
        """
        clock = asyncio.get_running_loop().time
        ping_s = self._manager.ping_interval_s
        next_ping_s = clock()
        wait_s = _CHECK_S if ping_s is None else min(_CHECK_S, ping_s)
        while True:
            self.check()
            if ping_s is not None and clock() >= next_ping_s and not self._stuck:
                self._manager.notify(WATCHDOG="1")
                next_ping_s = clock() + ping_s
            await asyncio.sleep(wait_s)

    def check(self) -> None:
        """Notifies what has changed since the last call."""
        stuck = self._state.stuck()
        if stuck and not self._stuck:
            LOG.error("%s: the service manager gets no sign of life", "; ".join(stuck))
        self._stuck = stuck
        now = self._state.readiness(self._required)
        if now.is_ready and not self._has_been_ready:
            self._has_been_ready = True
            self._status = now.status
            self._manager.notify(READY="1", STATUS=now.status)
        elif now.status != self._status:
            self._status = now.status
            self._manager.notify(STATUS=now.status)

    def reload(self) -> None:
        """Rereads what can be reread, and logs what takes a restart."""
        if self._has_been_ready:
            self._manager.notify_reloading()
        try:
            for line in self._state.reload():
                LOG.info("reload: %s", line)
            LOG.info("reload: %s", self._compare_settings())
        finally:
            if self._has_been_ready:
                self._manager.notify(READY="1", STATUS=self._status)

    def stop(self) -> None:
        """Says that the process ends."""
        self._manager.notify(STOPPING="1", STATUS="stopping")

    @contextlib.contextmanager
    def reloading_on_hangup(self) -> Iterator[None]:
        """Reloads on SIGHUP, unless that is ignored or the terminal's, which ends the process."""
        is_default = signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
        is_terminals = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
        if not is_default or is_terminals:
            yield
            return
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, self.reload)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGHUP)

    def _compare_settings(self) -> str:
        from featurewatch.cli.errors import UsageError

        try:
            now = self._read()
        except UsageError as error:
            return f"the settings cannot be used, and those of the start stay: {error}"
        changed = changed_sections(self._settings, now)
        if not changed:
            return "the settings are those of the start"
        return f"restart this process to apply the changed settings: {', '.join(changed)}"


def changed_sections(before: "Settings", now: "Settings") -> list[str]:
    """Returns the names of the sections of settings that differ, in their order."""
    names = type(before).model_fields
    return [name for name in names if getattr(before, name) != getattr(now, name)]
