"""The nominal types of the field, shared by everything that flows."""

from enum import IntEnum, StrEnum
from typing import Final, NamedTuple, NewType

ClusterId = NewType("ClusterId", str)
"""Kafka's cluster id, usually 22 characters of base64."""

NodeId = NewType("NodeId", int)
"""A broker's or a controller's id; a combined node has one id and both roles."""

FeatureName = NewType("FeatureName", str)
"""A feature's name as on the wire, with dots: ``metadata.version``."""

FeatureLevel = NewType("FeatureLevel", int)
"""A level; 0 means off (Kafka: a finalized level 0 removes the feature)."""

Range = tuple[int, int]
"""A supported range, both ends inclusive: (minimum, maximum)."""

METADATA_VERSION: Final = FeatureName("metadata.version")
KRAFT_VERSION: Final = FeatureName("kraft.version")


class Role(StrEnum):
    """What a node registers as."""

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
    ``epoch`` that of the record before it; as the last record that was processed, both are that
    record's.
    """

    offset: int
    epoch: int

    def __str__(self) -> str:
        return f"offset {self.offset} of epoch {self.epoch}"


LOG_START: Final = OffsetAndEpoch(0, 0)
"""The position before the first record (the schema's default epoch -1 gets INVALID_REQUEST)."""

NO_OFFSET: Final = OffsetAndEpoch(-1, -1)
"""The last record processed, where there is none."""


class LeaderAndEpoch(NamedTuple):
    """A quorum's leader and its epoch; id -1: none, or unknown (Kafka: ``LeaderAndEpoch``)."""

    id: int
    epoch: int


NO_LEADER: Final = LeaderAndEpoch(-1, -1)


class UpgradeType(IntEnum):
    """What an update may do (``FeatureUpdate.UpgradeType``); any other number is unknown."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3

    @classmethod
    def of(cls, code: int) -> "UpgradeType":
        """By the number on the wire."""
        return cls(code) if cls.UPGRADE <= code <= cls.UNSAFE_DOWNGRADE else cls.UNKNOWN
