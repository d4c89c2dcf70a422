"""Lets go of what aiokafka has fetched and nobody reads.

A rebalance drops the response of a fetch, and so does a pause or a seek. In aiokafka 0.14 such a
response, of up to 16 MiB for each partition, is then part of a reference cycle: its records and the
generator that unpacks them refer to each other until all of them are read. Python counts objects
and not bytes to decide when it looks for such cycles, and there are few of them: in a worker that
was idle otherwise, those of a day of outages were never looked for.
"""

import weakref
from typing import Any

from aiokafka.consumer import fetcher
from aiokafka.consumer.fetcher import PartitionRecords


class _UnreadRecords(PartitionRecords):  # type: ignore[misc]  # aiokafka is not typed
    """The records of a partition that a fetch returned; freed as soon as nothing refers to them."""

    def _unpack_records(self) -> Any:
        # The generator runs only while somebody calls `__next__`, and so has the records.
        return PartitionRecords._unpack_records(weakref.proxy(self))


def free_unread_records() -> None:
    """Makes the consumers of this process free what they drop; may be called again."""
    fetcher.PartitionRecords = _UnreadRecords
