"""The bus: the Kafka cluster that featurewatch's own topics are on."""

from featurewatch.streams.bus.positions import last_log_position, partition_of
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.errors import (
    BusError,
    BusUnavailableError,
    PublishError,
    TopicMismatchError,
)

__all__ = [
    "BusError",
    "BusSettings",
    "BusUnavailableError",
    "PublishError",
    "Publisher",
    "TopicMismatchError",
    "ensure_topics",
    "last_log_position",
    "partition_of",
]
