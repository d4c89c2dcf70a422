"""Finds out without Spark, and so without a JVM, whether a run would have anything to do.

Each query of the pipeline leaves in its checkpoint how far it has come: bronze in the offsets of
the topics, silver and gold in the versions of bronze. Whatever is not plain to see here,
such as a batch that did not finish or a table that is missing, is left to Spark, which repairs or
reports it.
"""

import fcntl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from featurewatch.pipeline.bronze.kafka import offset_ranges, warn_of_open_transactions
from featurewatch.pipeline.gold.tables import GOLD
from featurewatch.pipeline.lake.tables import EXPIRED, MESSAGES, Table
from featurewatch.pipeline.silver.tables import SILVER
from featurewatch.pipeline.spark.checkpoints import FOLD, end_of_batches
from featurewatch.streams.bus.settings import BusSettings

_TABLES: Final = (MESSAGES, *SILVER, *GOLD)
_MAINTENANCE: Final = frozenset(
    {"OPTIMIZE", "VACUUM START", "VACUUM END", "DELETE", "SET TBLPROPERTIES", "ADD COLUMNS"}
)
"""The operations of commits to bronze that bring no new messages."""
_MAX_COMMITS: Final = 100
"""At most this many commits after the last one that was read are looked at."""
_UNREADABLE: Final = (OSError, ValueError, LookupError, TypeError, AttributeError, DeltaError)


def is_up_to_date(directory: Path, bus: BusSettings) -> bool:
    """Whether the lake has every message of the bus, and silver and gold have all of bronze.

    False also if that is not known.

    Raises:
        TopicError: The bus does not respond.
    """
    with _unlocked(directory) as is_unlocked:
        return is_unlocked and _is_processed(directory) and _is_ingested(directory, bus)


def is_processed(directory: Path) -> bool:
    """Whether silver and gold have all of bronze, and no process fills the lake.

    False also if that is not known.
    """
    with _unlocked(directory) as is_unlocked:
        return is_unlocked and _is_processed(directory)


def versions(directory: Path, tables: Iterable[Table]) -> dict[str, Any] | None:
    """Returns how far gold has come and the id and version of each table, as a JSON document.

    Equal documents of a lake mean that the tables are the same. None: that cannot be known.
    """
    try:
        document: dict[str, Any] = {
            "gold": end_of_batches(directory / "checkpoints" / FOLD),
            "expired": EXPIRED in DeltaTable(directory / MESSAGES.path).metadata().configuration,
        }
        for table in tables:
            path = directory / table.path
            opened = DeltaTable(path) if DeltaTable.is_deltatable(str(path)) else None
            document[table.path] = opened and [str(opened.metadata().id), opened.version()]
    except _UNREADABLE:
        return None
    return document if document["gold"] else None


@contextmanager
def _unlocked(directory: Path) -> Iterator[bool]:
    """Whether no other process fills the lake; none can begin to during the block."""
    try:
        file = (directory / "lock").open("r+b")
    except OSError:
        yield False
        return
    with file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the kind that the JVM takes too
        except OSError:
            yield False
            return
        yield True


def _is_ingested(directory: Path, bus: BusSettings) -> bool:
    ranges = offset_ranges(bus)
    try:
        ends = end_of_batches(directory / "checkpoints" / "bronze")
        is_ingested = ends is not None and all(
            ends.get(topic, {}).get(str(partition), 0) == offsets.end
            for (topic, partition), offsets in ranges.items()
        )
    except _UNREADABLE:
        return False
    if is_ingested:
        warn_of_open_transactions(ranges)
    return is_ingested


def _is_processed(directory: Path) -> bool:
    try:
        if not all(any((directory / table.path / "_delta_log").glob("0*")) for table in _TABLES):
            return False
        checkpoint = directory / "checkpoints" / FOLD
        return _has_read(checkpoint, DeltaTable(directory / MESSAGES.path))
    except _UNREADABLE:
        return False


def _has_read(checkpoint: Path, messages: DeltaTable) -> bool:
    """Whether a query has read all messages of bronze."""
    end, newest = end_of_batches(checkpoint), messages.version()
    if not end:
        return end is not None and newest == 0  # the table was created, and nothing written to it
    is_whole = end["index"] == -1 and not end["isStartingVersion"]
    if not is_whole or end["reservoirId"] != str(messages.metadata().id):
        return False
    unread = newest - int(end["reservoirVersion"]) + 1
    if unread <= 0:
        return True
    return unread <= _MAX_COMMITS and all(
        commit["operation"] in _MAINTENANCE for commit in messages.history(unread)
    )
