"""Writes the changelog of the tables; a worker that has lost a partition cannot write any more.

Each partition has its own transactional id. A worker that is assigned the partition claims it
before it reads the rows: the bus then refuses every later write of the previous owner, and drops
what that one had not committed. The recovered rows are therefore the last ones, and a process
that was paused for longer than its session changes nothing when it resumes.

A bus may lose the end of a transaction, when its coordinator starts and does not know the leader of
a partition yet. No row of that partition can then be read any more. Its claim ends the transaction
and voids the rows: whether the bus had committed them is not known.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Final

import orjson
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from featurewatch.agents.at_least_once import RevokedError
from featurewatch.streams.bus.client_errors import SETTLING, STARTING
from featurewatch.streams.bus.errors import BusError, PublishError
from featurewatch.streams.bus.offsets import ends
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.transactions import TransactionalPublisher
from featurewatch.streams.codec.events import Message
from featurewatch.tables.rows import Row

LOG: Final = logging.getLogger("featurewatch.worker")

STAMP: Final = "topic-ids/"
"""The key of a partition's row with the ids of topics, before the number of the partition."""

UNENDED: Final = "a transaction whose end the bus has lost"
"""In a stamp, instead of the changelog's own id: the rows before it count for nothing."""

_RETRY_S: Final = 0.5

_CLAIM: Final = Message(b"claim", None, [])
"""Written by a new owner before it reads: Faust's recovery ends at the last record of a changelog,
which must not be the marker that ends a transaction."""


def stamp_of(partition: int, ids: Mapping[str, str]) -> Row:
    """The row with the ids of the topics that a partition was read from and written to."""
    return f"{STAMP}{partition}", orjson.dumps(ids)


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

    def owns(self, partition: int) -> bool:
        """Whether a partition is claimed.

        The group may assign the inputs of a partition without its changelog: its assignment may be
        from when that topic was missing.
        """
        return partition in self._owned

    async def claim(self, partitions: Collection[int], publisher: Publisher) -> None:
        """Fences the earlier owners of partitions, and gives up those that were claimed before.

        ``publisher`` writes the record that ends each partition. Waits while the bus cannot be
        reached.

        Raises:
            streams.bus.errors.PublishError: The bus does not allow this worker to write, or a
                partition has an open transaction that is not this worker's.
            streams.bus.errors.BusError: The bus does not say where the partitions end.
        """
        await self.close()
        self._owned = {
            partition: TransactionalPublisher(self._bus, f"{self._app_id}-{partition}")
            for partition in partitions
        }
        await asyncio.gather(*(owned.start() for owned in self._owned.values()))
        await self._write_claims(partitions, publisher)
        if unended := await self._unended(partitions):
            await self._void(unended)
            await self._write_claims(unended, publisher)
            for partition, offset in (await self._unended(unended)).items():
                raise PublishError(
                    f"{self._topic} partition {partition}: the transaction that is open since "
                    f"offset {offset} is not this worker's, and no row after it can be read: end "
                    f"it with kafka-transactions.sh abort --topic {self._topic} --partition "
                    f"{partition} --start-offset {offset}"
                )

    async def _write_claims(self, partitions: Collection[int], publisher: Publisher) -> None:
        claims = [await publisher.send(self._topic, _CLAIM, partition) for partition in partitions]
        await asyncio.gather(*claims)

    async def _unended(self, partitions: Collection[int]) -> dict[int, int]:
        """The offsets of transactions that are open although every owner before was fenced."""
        admin = AdminClient(self._bus.client())
        keys = [(self._topic, partition) for partition in partitions]
        while True:
            try:
                found = await asyncio.to_thread(ends, admin, keys) if keys else {}
            except KafkaException as error:
                if error.args[0].code() not in SETTLING | STARTING:
                    text = f"the ends of {self._topic} are not known: {error.args[0].str()}"
                    raise BusError(text) from error
                await asyncio.sleep(_RETRY_S)
            else:
                return {
                    partition: stable
                    for (_, partition), (stable, end) in found.items()
                    if stable < end
                }

    async def _void(self, unended: Mapping[int, int]) -> None:
        """Ends the transactions, with a stamp that voids all rows up to it.

        The transaction that this worker begins continues the open one of the same producer id.
        """
        for partition, offset in unended.items():
            LOG.error(
                "%s partition %d: the bus has lost the end of the transaction at offset %d: the "
                "rows are given up, and their clusters continue from what was published",
                *(self._topic, partition, offset),
            )
            await self.write(partition, [stamp_of(partition, {self._topic: UNENDED})])
        await self.commit()

    async def write(self, partition: int, rows: Iterable[Row]) -> None:
        """Writes rows in order; they count once `commit` has returned, and all of them together.

        Raises:
            streams.bus.errors.FencedError: Another worker owns the partition.
            RevokedError: The partition is not claimed, or not any more.
        """
        owned = self._owned.get(partition)
        if owned is None:
            raise RevokedError(f"{self._topic} partition {partition} is not claimed now")
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
