"""A Faust app that processes each message at least once, which Faust alone does not guarantee.

An offset is committed only after its event was processed and the bus has acknowledged everything
that the event produced. Faust acknowledges an event also when its agent was cancelled in the
middle, and skips and acknowledges events that arrive during a rebalance; so the committed offsets
come from the `OffsetTracker` and not from Faust's acknowledgements.

No event is skipped. After a recovery Faust lets its fetcher run before it seeks the committed
offsets, and may drop messages that arrive in between. `_Recovery` stops the flow first, and
`EventProcessor` detects a hole in the offsets.

Commits wait until the bus has all rows and outputs: Faust calls the producer's flush before each.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from typing import Any, Final

import faust
from aiokafka.errors import KafkaError
from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from featurewatch.agents.consumer_thread import ConsumerThread, JumpLog

LOG: Final = logging.getLogger("featurewatch.worker")

_RETRY_S: Final = 0.5


class IncompleteEventError(RuntimeError):
    """An event was not processed to its end: its offset must not be committed."""


class SkippedOffsetsError(RuntimeError):
    """Events were skipped: the process must end and restart from the last commit."""


class RevokedError(RuntimeError):
    """A partition no longer belongs to this worker."""


class OffsetTracker:
    """The next offset of each partition; all offsets before it are processed.

    ``flush`` waits until the bus has acknowledged everything that was sent.
    """

    def __init__(self, flush: Callable[[], Awaitable[None]]) -> None:
        self._flush = flush
        self._next: dict[Any, int] = {}
        self._has_failed = False

    def reset(self) -> None:
        """Forgets all offsets, after a new assignment: each partition starts at its last commit."""
        self._next.clear()

    def next_offset(self, partition: Any) -> int | None:
        """The offset expected next, which is also the one to commit (None: none was processed)."""
        return self._next.get(partition)

    def mark_processed(self, partition: Any, offset: int) -> None:
        """Marks an offset, and all before it, as processed."""
        self._next[partition] = offset + 1

    def fail(self) -> None:
        """Forbids all further commits of this run: an event was not processed to its end."""
        self._has_failed = True

    @property
    def has_failed(self) -> bool:
        """Whether no offset may be committed any more."""
        return self._has_failed

    async def wait_acknowledged(self) -> None:
        """Waits until the bus has acknowledged everything that was sent.

        Raises:
            IncompleteEventError: An event was not processed to its end.
        """
        if self._has_failed:
            raise IncompleteEventError("an event was interrupted, so its offset is not committed")
        await self._flush()


class _Consumer(driver.Consumer):  # type: ignore[misc]  # faust is not typed
    async def perform_seek(self) -> None:
        """Seeks the committed offset, or the start of a partition that has no commit yet.

        Faust leaves the position of such a partition as it is, which may be after messages that it
        fetched and dropped during a rebalance.
        """
        await super().perform_seek()
        restarted, self.app.restarted = self.app.restarted, set()
        for tp in restarted:
            self._read_offset[tp] = self._committed_offset[tp] = None
        uncommitted = [
            tp
            for tp in self.assignment()
            if not self._is_changelog_tp(tp) and self._committed_offset.get(tp) is None
        ]
        if uncommitted:
            await self.seek_wait(await self.earliest_offsets(*uncommitted))

    async def _commit(self, offsets: Any) -> bool:
        # Once an event was not processed to its end, nothing is committed, and nothing is raised:
        # Faust would abort its stop, and its reading thread would continue.
        tracker: OffsetTracker = self.app.tracker
        return not tracker.has_failed and bool(await super()._commit(offsets))

    async def wait_empty(self) -> None:
        """Waits until the messages under way are processed, unless nothing more will be.

        After a failure a commit may be under way that waits for the end of the run: Faust's stop
        would wait for it.
        """
        self._give_up_unacked()
        tracker: OffsetTracker = self.app.tracker
        if not tracker.has_failed:
            await super().wait_empty()

    async def _wait_for_ack(self, timeout: float) -> None:
        self._give_up_unacked()
        await super()._wait_for_ack(timeout)

    def _give_up_unacked(self) -> None:
        tracker: OffsetTracker = self.app.tracker
        if tracker.has_failed:
            # Faust would wait for them in a loop that never yields.
            self._unacked_messages.clear()

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    @property
    def jumps(self) -> JumpLog:
        """Where what the thread fetched was not consecutive."""
        jumps: JumpLog = self._thread.jumps
        return jumps

    def _to_message(self, tp: Any, record: Any) -> Any:
        start = self.jumps.start(tp, record.offset)
        if start is not None and start > record.offset:
            # The log went back; Faust drops what is below the offsets that it has seen.
            self._read_offset[tp] = self._committed_offset[tp] = None
        return super()._to_message(tp, record)

    def _new_offset(self, tp: Any) -> int | None:
        super()._new_offset(tp)  # clears the acknowledgements that Faust has counted
        tracker: OffsetTracker = self.app.tracker
        return tracker.next_offset(tp)


class _Producer(driver.Producer):  # type: ignore[misc]  # faust is not typed
    async def flush(self) -> None:
        tracker: OffsetTracker = self.app.tracker
        if not tracker.has_failed:
            await tracker.wait_acknowledged()
        await super().flush()


class _Transport(driver.Transport):  # type: ignore[misc]  # faust is not typed
    Consumer = _Consumer
    Producer = _Producer


class _Recovery(Recovery):  # type: ignore[misc]  # faust is not typed
    async def _build_highwaters(
        self, consumer: Any, tps: set[Any], destination: Any, title: str
    ) -> None:
        await self.app.claim({tp.partition for tp in tps})
        await super()._build_highwaters(consumer, tps, destination, title)

    async def on_recovery_completed(self, generation_id: int = 0) -> None:
        self.app.consumer.stop_flow()  # the call below resumes it after the seek
        await super().on_recovery_completed(generation_id)


class _TableManager(TableManager):  # type: ignore[misc]  # faust is not typed
    _recovery: _Recovery | None = None

    @property
    def recovery(self) -> _Recovery:
        if self._recovery is None:
            self._recovery = _Recovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return self._recovery


class AtLeastOnceApp(faust.App):  # type: ignore[misc]  # faust is not typed
    """A Faust app that commits the offsets of its ``tracker``.

    ``claim`` is awaited with the partitions whose tables are about to be recovered,
    ``check_membership`` with the member id that the consumer group does not know any more, before
    the app joins again.
    """

    def __init__(
        self,
        *args: Any,
        tracker: OffsetTracker,
        claim: Callable[[Collection[int]], Awaitable[None]],
        check_membership: Callable[[str], Coroutine[Any, Any, None]],
        **settings: Any,
    ) -> None:
        self.tracker = tracker
        self.claim = claim
        self.restarted: set[Any] = set()
        """The partitions that are read from their beginning after the next recovery."""
        self.check_membership = check_membership
        super().__init__(*args, TableManager=_TableManager, **settings)

    def committed(self, partition: Any) -> int | None:
        """The committed offset of an assigned partition (None: there is no commit yet)."""
        offset: int | None = self.consumer._committed_offset.get(partition)
        return offset

    async def restart(self, topic: str, number: int) -> None:
        """Makes a partition of a topic be read from its beginning, whatever was committed.

        To be called before the recovery of the tables is complete.
        """
        partition = TP(topic, number)
        if partition in self.consumer.assignment():
            self.restarted.add(partition)
            # So that it is read from there too if this process ends before the next commit.
            await self.consumer._commit({partition: await self.log_start(partition)})

    async def expired(self, partitions: Iterable[tuple[str, int]]) -> set[tuple[str, int]]:
        """Those of the partitions that have lost messages after their committed offsets.

        Without a commit, all messages count. Waits for the bus as long as it takes.
        """
        assigned = {*map(TP._make, partitions)} & self.consumer.assignment()
        committed = await self.reader.committed(assigned)
        starts: Mapping[Any, int] | None = None if assigned else {}
        while starts is None:
            starts = await self._log_starts(assigned)
        return {
            (partition.topic, partition.partition)
            for partition, start in starts.items()
            if start > committed.get(partition, 0)
        }

    def take_jump(self, partition: Any, offset: int) -> int | None:
        """The offset that was due when the message at ``offset`` was fetched (None: that one).

        Returns it once.
        """
        jumps: JumpLog = self.consumer.jumps
        return jumps.take(partition, offset)

    async def log_start(self, partition: Any) -> int:
        """The first offset that a partition still has; waits for the bus as long as it takes.

        Raises:
            RevokedError: The partition no longer belongs to this worker.
        """
        while partition in self.consumer.assignment():
            starts = await self._log_starts([partition])
            if starts is not None:
                return int(starts[partition])
        raise RevokedError(f"{partition} no longer belongs to this worker")

    async def _log_starts(self, partitions: Collection[Any]) -> Mapping[Any, int] | None:
        """The first offsets that partitions still have (None, after a pause: not known yet)."""
        try:
            starts: Mapping[Any, int] = await self.consumer.earliest_offsets(*partitions)
        except KafkaError as error:
            names = ", ".join(map(str, partitions))
            LOG.warning("%s: the first offset is not known yet: %r", names, error)
            await asyncio.sleep(_RETRY_S)
            return None
        return starts

    @property
    def reader(self) -> ConsumerThread:
        """The thread that reads the bus."""
        thread: ConsumerThread = self.consumer._thread
        return thread

    def _new_transport(self) -> _Transport:
        return _Transport(self.conf.broker_consumer, self, loop=self.loop)

    def _new_producer_transport(self) -> _Transport:
        return _Transport(self.conf.broker_producer, self, loop=self.loop)
