"""The bus: the Kafka cluster that featurewatch's own topics stand on."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.errors import (
    BusError,
    BusUnavailableError,
    PublishError,
    TopicMismatchError,
)

if TYPE_CHECKING:
    from featurewatch.streams.bus.positions import LogPosition, last_log_position, partition_of
    from featurewatch.streams.bus.publisher import Publisher
    from featurewatch.streams.bus.topics import ensure_topics

__all__ = [
    "BusError",
    "BusSettings",
    "BusUnavailableError",
    "LogPosition",
    "PublishError",
    "Publisher",
    "TopicMismatchError",
    "ensure_topics",
    "last_log_position",
    "partition_of",
]

_MODULES: Final = {
    "LogPosition": "streams.bus.positions",
    "last_log_position": "streams.bus.positions",
    "partition_of": "streams.bus.positions",
    "Publisher": "streams.bus.publisher",
    "ensure_topics": "streams.bus.topics",
}


def __getattr__(name: str) -> Any:
    """Imports the module of a name at its first use: what reads the bus publishes nothing."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"featurewatch.{_MODULES[name]}"), name)
