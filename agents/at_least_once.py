"""Faust, held to three promises that its own book-keeping does not keep.

An offset is committed only after the desk has finished its event and all that the event led to is
on the bus. Faust acknowledges an event also when its agent was cancelled in the middle, and skips
and acknowledges events that arrive while a rebalance goes on; so what is committed is taken from
the `OffsetTracker`, and not from Faust's acknowledgements.

No event is passed over. After a recovery Faust lets its fetcher run before it has sought the
committed offsets; what comes between the two may be dropped. `_Recovery` stops the flow first, and
the ledger notices a hole.

Commits wait until the bus has all rows and outputs: Faust calls the producer's flush before each.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import faust
from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery
from faust.transport.drivers import aiokafka as driver


class IncompleteEventError(RuntimeError):
    """An event was broken off in the middle: its offset must not be committed."""


class SkippedOffsetsError(RuntimeError):
    """Events were passed over: the process must end and read them from the last commit on."""


class OffsetTracker:
    """What was finished, by partition: the next offset of each that has to come.

    ``flush`` waits until the bus has everything that was sent.
    """

    def __init__(self, flush: Callable[[], Awaitable[None]]) -> None:
        self._flush = flush
        self._next: dict[Any, int] = {}
        self._broken_off = False

    def reset(self) -> None:
        """The partitions were assigned anew: each begins at what is committed of it."""
        self._next.clear()

    def next_offset(self, partition: Any) -> int | None:
        """The offset that has to come next, and the one to commit (None: nothing was finished)."""
        return self._next.get(partition)

    def mark_processed(self, partition: Any, offset: int) -> None:
        """An offset was worked on; those before it, too."""
        self._next[partition] = offset + 1

    def fail(self) -> None:
        """An event could not be finished; nothing is committed any more by this process."""
        self._broken_off = True

    async def wait_acknowledged(self) -> None:
        """Waits until all that was sent has arrived.

        Raises:
            UnfinishedError: An event was broken off.
        """
        if self._broken_off:
            raise IncompleteEventError("an event was broken off: its offset is not committed")
        await self._flush()


class _Consumer(driver.Consumer):  # type: ignore[misc]  # faust is not typed
    async def perform_seek(self) -> None:
        """Where nothing was committed yet, too: Faust leaves the position where it happens to be,
        which may be behind messages that it fetched and dropped during a rebalance.
        """
        await super().perform_seek()
        fresh = [
            tp
            for tp in self.assignment()
            if not self._is_changelog_tp(tp) and self._committed_offset.get(tp) is None
        ]
        if fresh:
            await self.seek_wait(await self.earliest_offsets(*fresh))

    def _new_offset(self, tp: Any) -> int | None:
        super()._new_offset(tp)  # it forgets the acknowledgements that it has counted
        tracker: OffsetTracker = self.app.ledger
        return tracker.next_offset(tp)


class _Producer(driver.Producer):  # type: ignore[misc]  # faust is not typed
    async def flush(self) -> None:
        tracker: OffsetTracker = self.app.ledger
        await tracker.wait_acknowledged()
        await super().flush()


class _Transport(driver.Transport):  # type: ignore[misc]  # faust is not typed
    Consumer = _Consumer
    Producer = _Producer


class _Recovery(Recovery):  # type: ignore[misc]  # faust is not typed
    async def on_recovery_completed(self, generation_id: int = 0) -> None:
        self.app.consumer.stop_flow()  # what it calls resumes it, after it has sought
        await super().on_recovery_completed(generation_id)


class _TableManager(TableManager):  # type: ignore[misc]  # faust is not typed
    _recovery: _Recovery | None = None

    @property
    def recovery(self) -> _Recovery:
        if self._recovery is None:
            self._recovery = _Recovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return self._recovery


class AtLeastOnceApp(faust.App):  # type: ignore[misc]  # faust is not typed
    """A Faust app that commits by a `OffsetTracker`."""

    def __init__(self, *args: Any, ledger: OffsetTracker, **settings: Any) -> None:
        self.ledger = ledger
        super().__init__(*args, TableManager=_TableManager, **settings)

    def committed(self, partition: Any) -> int | None:
        """The committed offset of a partition of ours (None: nothing was committed yet)."""
        offset: int | None = self.consumer._committed_offset.get(partition)
        return offset

    async def log_start(self, partition: Any) -> int:
        """The first offset that a partition still has."""
        offsets = await self.consumer.earliest_offsets(partition)
        return int(offsets[partition])

    def _new_transport(self) -> _Transport:
        return _Transport(self.conf.broker_consumer, self, loop=self.loop)

    def _new_producer_transport(self) -> _Transport:
        return _Transport(self.conf.broker_producer, self, loop=self.loop)
