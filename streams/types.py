"""The nominal types of the field, shared by everything that flows."""

from enum import StrEnum
from typing import Final, NewType

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
