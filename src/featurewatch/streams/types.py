"""The nominal types of the field, shared by everything that flows."""

from collections.abc import Iterable, Mapping
from enum import IntEnum, StrEnum
from typing import Final, NamedTuple, NewType

ClusterId = NewType("ClusterId", str)
"""Kafka's cluster id, usually 22 characters of base64."""

MAX_CLUSTER_ID_CHARS: Final = 249
"""A longer id, or one with unprintable characters, is invalid. It is the key of every message, and
a label of every metric; a topic's name may be as long."""

NodeId = NewType("NodeId", int)
"""A broker's or a controller's id; a combined node has one id and both roles."""

FeatureName = NewType("FeatureName", str)
"""A feature's name as on the wire, with dots: ``metadata.version``."""

FeatureLevel = NewType("FeatureLevel", int)
"""A level; 0 means off (Kafka: a finalized level 0 removes the feature).

Only in a features znode of KIP-584's early draft is 0 a level like any other."""


class SupportedRange(NamedTuple):
    """The levels of a feature that a node supports, both ends inclusive."""

    minimum: int
    maximum: int

    def includes(self, level: int) -> bool:
        """Whether a level is within the range; level 0 is no exception."""
        return self.minimum <= level <= self.maximum

    def overlaps(self, other: "SupportedRange") -> bool:
        """Whether some level is within both."""
        return self.minimum <= other.maximum and other.minimum <= self.maximum

    @property
    def is_valid(self) -> bool:
        """Whether 0 ≤ minimum ≤ maximum, as KIP-584 asks of a supported range."""
        return 0 <= self.minimum <= self.maximum

    def __str__(self) -> str:
        return f"{self.minimum}-{self.maximum}"


UNSUPPORTED: Final = SupportedRange(0, 0)
"""The range of a feature that a node does not name (``QuorumFeatures.DISABLED``)."""


class SupportedRanges(dict[FeatureName, SupportedRange]):
    """The supported ranges of a node, by feature; not to be changed once it is made."""

    def __init__(
        self,
        ranges: Mapping[FeatureName, tuple[int, int]]
        | Iterable[tuple[FeatureName, tuple[int, int]]] = (),
    ) -> None:
        items = ranges.items() if isinstance(ranges, Mapping) else ranges
        super().__init__((feature, SupportedRange(*bounds)) for feature, bounds in items)

    def of(self, feature: FeatureName) -> SupportedRange:
        """The range of a feature; `UNSUPPORTED` where it is not named."""
        return self.get(feature, UNSUPPORTED)


METADATA_VERSION: Final = FeatureName("metadata.version")
KRAFT_VERSION: Final = FeatureName("kraft.version")


class Role(StrEnum):
    """The role under which a node registers."""

    BROKER = "broker"
    CONTROLLER = "controller"


class NodeKey(NamedTuple):
    """A node in one role: a combined node is two of these."""

    role: Role
    node_id: NodeId

    def __str__(self) -> str:
        return f"{self.role}-{self.node_id}"


class OffsetAndEpoch(NamedTuple):
    """A log offset and the leader epoch of the record at or before it (Kafka: ``OffsetAndEpoch``).

    As a position to read from, and as the name of a snapshot, ``offset`` is the next one and
    ``epoch`` that of the record before it.
    """

    offset: int
    epoch: int

    def __str__(self) -> str:
        return f"offset {self.offset} of epoch {self.epoch}"


LOG_START: Final = OffsetAndEpoch(0, 0)
"""The position before the first record (the schema's default epoch -1 gets INVALID_REQUEST)."""

NO_CHECKSUM: Final = -1
"""A checksum that is not known."""

LATEST_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999: RFC 3339 has four digits for the year."""


class LastRecord(NamedTuple):
    """The last record of a log that was processed: a reader of the log resumes after it.

    ``checksum`` is the CRC-32C in the header of the batch that holds the record. Offset and leader
    epoch alone also fit a log that replaced this one, the checksum does not.
    """

    offset: int
    epoch: int
    checksum: int = NO_CHECKSUM

    @property
    def next_position(self) -> OffsetAndEpoch:
        """Where to read on."""
        return OffsetAndEpoch(self.offset + 1, self.epoch) if self.offset >= 0 else LOG_START


NO_OFFSET: Final = LastRecord(-1, -1)
"""The last record processed, if no record was."""


class LeaderAndEpoch(NamedTuple):
    """A quorum's leader and its epoch; id -1: none, or unknown (Kafka: ``LeaderAndEpoch``)."""

    id: int
    epoch: int


NO_LEADER: Final = LeaderAndEpoch(-1, -1)


class UpgradeType(IntEnum):
    """The type of an update (``FeatureUpdate.UpgradeType``); any other number is unknown."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3

    @classmethod
    def of(cls, code: int) -> "UpgradeType":
        """By the number on the wire."""
        return cls(code) if cls.UPGRADE <= code <= cls.UNSAFE_DOWNGRADE else cls.UNKNOWN
