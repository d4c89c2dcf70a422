"""An offset is committed only after all that its events led to is on the bus.

Faust commits in the background, and acknowledges an event even if its agent was cancelled in the
middle. So the commit asks the `Ledger` first, through the producer's flush, which Faust calls
before every commit.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import faust
from faust.transport.drivers import aiokafka as driver


class UnfinishedError(RuntimeError):
    """An event was broken off in the middle: its offset must not be committed."""


class Ledger:
    """Knows whether everything that was begun has been finished and has arrived."""

    def __init__(self, flush: Callable[[], Awaitable[None]]) -> None:
        self._flush = flush
        self._broken_off = False

    def break_off(self) -> None:
        """An event could not be finished; nothing is committed any more by this process."""
        self._broken_off = True

    async def settle(self) -> None:
        """Waits until all that was sent has arrived.

        Raises:
            UnfinishedError: An event was broken off.
        """
        if self._broken_off:
            raise UnfinishedError("an event was broken off: its offset is not committed")
        await self._flush()


class _Producer(driver.Producer):  # type: ignore[misc]  # faust is not typed
    async def flush(self) -> None:
        await self.app.ledger.settle()
        await super().flush()


class _Transport(driver.Transport):  # type: ignore[misc]  # faust is not typed
    Producer = _Producer


class DurableApp(faust.App):  # type: ignore[misc]  # faust is not typed
    """A Faust app whose commits wait for a `Ledger`."""

    def __init__(self, *args: Any, ledger: Ledger, **settings: Any) -> None:
        self.ledger = ledger
        super().__init__(*args, **settings)

    def _new_transport(self) -> _Transport:
        return _Transport(self.conf.broker_consumer, self, loop=self.loop)

    def _new_producer_transport(self) -> _Transport:
        return _Transport(self.conf.broker_producer, self, loop=self.loop)
