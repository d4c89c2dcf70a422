"""Writes the changelog of the tables; a worker that has lost a partition cannot write any more.

Each partition has its own transactional id. A worker that is assigned the partition claims it
before it reads the rows: the bus then refuses every later write of the previous owner, and drops
what that one had not committed. The recovered rows are therefore the last ones, and a process
that was paused for longer than its session changes nothing when it resumes.
"""

import asyncio
from collections.abc import Collection, Iterable
from typing import Final

from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.transactions import TransactionalPublisher
from featurewatch.streams.codec.events import Message
from featurewatch.tables.rows import Row

_CLAIM: Final = Message(b"claim", None, [])
"""Written by a new owner before it reads: Faust's recovery ends at the last record of a changelog,
which must not be the marker that ends a transaction."""


class ChangelogWriter:
    """Writes rows to the partitions of a changelog that this worker has claimed.

    ``app_id`` is the consumer group, ``topic`` the changelog's full name.
    """

    def __init__(self, bus: BusSettings, app_id: str, topic: str) -> None:
        self._bus = bus
        self._app_id = app_id
        self._topic = topic
        self._owned: dict[int, TransactionalPublisher] = {}
        self._stamps: dict[int, Row] = {}
        self._stamped: set[int] = set()
        self._whole = asyncio.Lock()

    @property
    def error(self) -> str | None:
        """Why the bus accepts no rows now, in one line; None: no error is known."""
        errors = (owned.error for owned in self._owned.values())
        return next((error for error in errors if error is not None), None)

    async def claim(self, partitions: Collection[int], publisher: Publisher) -> None:
        """Fences the earlier owners of partitions, and gives up those that were claimed before.

        ``publisher`` writes the record that ends each partition. Waits while the bus cannot be
        reached.

        Raises:
            streams.bus.errors.PublishError: The bus does not allow this worker to write.
        """
        await self.close()
        self._owned = {
            partition: TransactionalPublisher(self._bus, f"{self._app_id}-{partition}")
            for partition in partitions
        }
        await asyncio.gather(*(owned.start() for owned in self._owned.values()))
        claims = [await publisher.send(self._topic, _CLAIM, partition) for partition in partitions]
        await asyncio.gather(*claims)

    async def write(self, partition: int, rows: Iterable[Row]) -> None:
        """Writes rows in order; they count once `commit` has returned, and all of them together.

        Raises:
            streams.bus.errors.FencedError: Another worker owns the partition.
        """
        owned = self._owned[partition]
        stamp = self._stamps.get(partition)
        if stamp is not None and partition not in self._stamped:
            self._stamped.add(partition)
            rows = [stamp, *rows]
        async with self._whole:
            for name, value in rows:
                await owned.send(self._topic, Message(name.encode(), value, []), partition)

    async def write_stamp(self, partition: int, stamp: Row) -> None:
        """Writes a row now, and again in each further transaction of the partition.

        So whatever rows a changelog has, it has the row of the process that wrote them last.
        """
        self._stamps[partition] = stamp
        self._stamped.discard(partition)
        await self.write(partition, [])

    async def commit(self) -> None:
        """Commits what was written to all partitions; raises `streams.bus.errors.FencedError`."""
        async with self._whole:
            self._stamped.clear()
            await asyncio.gather(*(owned.commit() for owned in self._owned.values()))

    async def close(self) -> None:
        """Gives up all partitions; what was not committed is dropped."""
        given_up, self._owned = self._owned, {}
        self._stamps.clear()
        self._stamped.clear()
        await asyncio.gather(*(owned.stop() for owned in given_up.values()))
