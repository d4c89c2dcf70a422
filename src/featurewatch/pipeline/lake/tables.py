"""The registry of the lake's tables; docs/how-to/pipeline.md is checked against it.

Types are Spark's DDL. Timestamps are UTC, and a ``day`` is a UTC day.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class Layer(StrEnum):
    """The layer of a table, by its distance from the topics."""

    BRONZE = "bronze"
    SILVER = "silver"
    GOLD = "gold"


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns (name to type, in order), and how its rows are identified.

    ``key`` names the columns that identify a row. ``pruned``: rows with equal keys are in equal
    partitions, so a duplicate is searched for in few files only.
    """

    layer: Layer
    name: str
    about: str
    columns: Mapping[str, str]
    key: tuple[str, ...]
    partitioned: tuple[str, ...] = ()
    pruned: bool = field(default=False)
    path: str = field(init=False, compare=False, default="")
    """The path below the lake's root; read for each row of a batch."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", f"{self.layer}/{self.name}")
        unknown = {*self.key, *self.partitioned} - self.columns.keys()
        if unknown:
            raise TypeError(f"{self.name} has no columns {', '.join(sorted(unknown))}")

    @property
    def ddl(self) -> str:
        """The schema as DDL."""
        return ddl_of(self.columns)


def ddl_of(columns: Mapping[str, str]) -> str:
    """Returns columns, as name to type, in Spark's DDL."""
    return ", ".join(f"`{name}` {type_}" for name, type_ in columns.items())


READER_VERSION: Final = 1
"""The version of Delta's protocol that reads each table: the lowest one, which every reader has."""
PROPERTIES: Final[Mapping[str, str]] = {
    "delta.enableDeletionVectors": "false",
    "delta.columnMapping.mode": "none",
    "delta.logRetentionDuration": "interval 1 hours",
    "delta.enableExpiredLogCleanup": "false",
    "delta.checkpointInterval": "20",
}
"""The properties with which each table is created.

Each commit is a file in the table's log, and each of the next commits looks through all of them:
with ten thousand one takes twenty times as long. Only the maintenance removes old ones, since it
knows how far the query that follows bronze has come. A table is opened for each batch, and that
takes 0.7 ms for each commit since the last checkpoint; Delta's Rust library makes one every hundred
commits by default.

Features that raise `READER_VERSION` are off, whatever the defaults of a Spark cluster are: DuckDB,
Polars, pandas and others lack some of them (docs/how-to/read-the-lake.md).
"""

_POSITION: Final = {"topic": "string", "partition": "int", "offset": "bigint"}

MESSAGES: Final = Table(
    Layer.BRONZE,
    "messages",
    "every message of the topics, as it came",
    {
        **_POSITION,
        "kafka_time": "timestamp",
        "key": "binary",
        "value": "binary",
        "headers": "array<struct<key: string, value: binary>>",
        "ingested_at": "timestamp",
        "round": "bigint",
        "day": "date",
    },
    key=("topic", "partition", "offset"),
    partitioned=("topic", "day"),
)

REPLAYED_PREFIX: Final = "replay."
"""The topics of messages that were replayed from files begin with it; no bus has such a topic."""
REPLAYED: Final = f"topic LIKE '{REPLAYED_PREFIX}%'"
"""Selects the messages of bronze that were replayed from files, in SQL."""

EXPIRED: Final = "featurewatch.expired"
"""The table property that marks bronze once its oldest messages were deleted."""

GAPS: Final = Table(
    Layer.BRONZE,
    "gaps",
    "messages that were deleted from a topic before they could be read",
    {
        "topic": "string",
        "partition": "int",
        "from_offset": "bigint",
        "to_offset": "bigint",
        "detected_at": "timestamp",
    },
    key=("topic", "partition", "from_offset", "to_offset"),
)

BRONZE: Final = (MESSAGES, GAPS)
