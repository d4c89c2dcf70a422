"""The nominal types of the field, shared by everything that flows."""

from enum import IntEnum, StrEnum
from typing import Final, NamedTuple, NewType

ClusterId = NewType("ClusterId", str)
"""Kafka's cluster id, usually 22 characters of base64."""

NodeId = NewType("NodeId", int)
"""A broker's or a controller's id; a combined node has one id and both roles."""

FeatureName = NewType("FeatureName", str)
"""A feature as it stands on the wire, dots kept: ``metadata.version``."""

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
