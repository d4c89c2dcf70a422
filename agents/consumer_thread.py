"""Reads the bus for Faust, and remembers where the read offsets are not consecutive.

Offsets that are missing may be none of Faust's doing: the marker that ends a transaction takes an
offset, an aborted transaction leaves its offsets out, and messages expire. What the fetcher passed
over is such a hole; what it delivered and Faust dropped is not, and may never be passed over.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from faust.transport.drivers import aiokafka as driver

_FETCH_MAX_WAIT_MS: Final = 200
"""How long a fetch of quiet partitions waits. The requests of a recovery wait behind one, and with
Faust's 1,500 ms a restart took three seconds longer. New messages end the wait at once."""


class JumpLog:
    """The places where the next record that was fetched did not have the next offset. Pure.

    A partition is any hashable object.
    """

    def __init__(self) -> None:
        self._next: dict[Any, int] = {}
        self._jumps: dict[Any, dict[int, int]] = {}

    def sought(self, partition: Any) -> None:
        """Notes that the next record of a partition may have any offset."""
        self._next.pop(partition, None)
        self._jumps.pop(partition, None)

    def positioned(self, partition: Any, offset: int) -> None:
        """Notes the offset that is to be fetched next, unless a record was fetched already."""
        self._next.setdefault(partition, offset)

    def fetched(self, partition: Any, offsets: Sequence[int]) -> None:
        """Notes the offsets of records, in the order in which they were fetched."""
        expected = self._next.get(partition)
        for offset in offsets:
            if expected is not None and offset != expected:
                self._jumps.setdefault(partition, {})[offset] = expected
            expected = offset + 1
        if expected is not None:
            self._next[partition] = expected

    def start(self, partition: Any, offset: int) -> int | None:
        """The offset that was due when ``offset`` was fetched (None: that very one was due)."""
        return self._jumps.get(partition, {}).get(offset)

    def take(self, partition: Any, offset: int) -> int | None:
        """What `start` returns, and forgets it: each record is judged once."""
        return self._jumps.get(partition, {}).pop(offset, None)


class ConsumerThread(driver.AIOKafkaConsumerThread):  # type: ignore[misc]  # faust is not typed
    """Faust's reading thread, which reads committed messages only and keeps a `JumpLog`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.jumps = JumpLog()

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        # Faust asks for it with its own transactions only; ours are those of the changelog.
        consumer._isolation_level = "read_committed"
        consumer._fetch_max_wait_ms = _FETCH_MAX_WAIT_MS
        return consumer

    async def _fetch_records(self, consumer: Any, *args: Any, **kwargs: Any) -> Any:
        assignment = consumer._subscription.subscription.assignment
        if assignment is not None:
            for partition in assignment.tps:
                state = assignment.state_value(partition)
                if state is not None and state.has_valid_position:
                    self.jumps.positioned(partition, state.position)
        records: Mapping[Any, Sequence[Any]] = await super()._fetch_records(
            consumer, *args, **kwargs
        )
        for partition, items in (records or {}).items():
            if not self.consumer._is_changelog_tp(partition):
                self.jumps.fetched(partition, [record.offset for record in items])
        return records

    async def _seek_wait(self, consumer: Any, partitions: Mapping[Any, int]) -> None:
        for partition in partitions:
            self.jumps.sought(partition)
        await super()._seek_wait(consumer, partitions)

    async def seek_to_committed(self) -> Any:
        """Seeks the committed offsets, as Faust's, and lets go of what was fetched before."""
        for partition in list(self.jumps._next):
            self.jumps.sought(partition)
        return await super().seek_to_committed()
