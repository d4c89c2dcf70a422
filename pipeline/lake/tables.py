"""The tables of the lake, one registry: docs/pipeline.md's tables are checked against it.

Types are Spark's DDL. Times without a zone in their name are UTC; a ``day`` is one of UTC.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class Layer(StrEnum):
    """How far from the topics a table is."""

    BRONZE = "bronze"
    SILVER = "silver"
    GOLD = "gold"


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns as name and type, in order, and how its rows are told apart.

    ``key`` names the columns of which no two rows have the same values. ``pruned`` says that equal
    keys have equal partitions, so that a row's double need be looked for in few files only.
    """

    layer: Layer
    name: str
    about: str
    columns: Mapping[str, str]
    key: tuple[str, ...]
    partitioned: tuple[str, ...] = ()
    pruned: bool = field(default=False)

    def __post_init__(self) -> None:
        unknown = {*self.key, *self.partitioned} - self.columns.keys()
        if unknown:
            raise TypeError(f"{self.name} has no columns {', '.join(sorted(unknown))}")

    @property
    def path(self) -> str:
        """Where it is, below the lake's root."""
        return f"{self.layer}/{self.name}"

    @property
    def ddl(self) -> str:
        """Its schema."""
        return ", ".join(f"`{name}` {kind}" for name, kind in self.columns.items())


_PLACE: Final = {"topic": "string", "partition": "int", "offset": "bigint"}

MESSAGES: Final = Table(
    Layer.BRONZE,
    "messages",
    "every message of the topics, as it came",
    {
        **_PLACE,
        "kafka_time": "timestamp",
        "key": "binary",
        "value": "binary",
        "headers": "array<struct<key: string, value: binary>>",
        "taken_at": "timestamp",
        "round": "bigint",
        "day": "date",
    },
    key=("topic", "partition", "offset"),
    partitioned=("topic", "day"),
)

EXPIRED: Final = "featurewatch.expired"
"""The property that says of bronze that its oldest messages were deleted."""

GAPS: Final = Table(
    Layer.BRONZE,
    "gaps",
    "messages that were gone from a topic before they could be read",
    {
        "topic": "string",
        "partition": "int",
        "from_offset": "bigint",
        "to_offset": "bigint",
        "found_at": "timestamp",
    },
    key=("topic", "partition", "from_offset", "to_offset"),
)

BRONZE: Final = (MESSAGES, GAPS)
