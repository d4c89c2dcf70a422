"""Where a reader of topics begins, and on which bus."""

from datetime import datetime
from enum import Enum

from featurewatch.streams.bus.settings import BusSettings


class Since(Enum):
    """The begin of what is read."""

    BEGINNING = "beginning"
    """The oldest message that the topic still has."""
    NOW = "now"
    """What comes from now on."""


def start_of(since: Since | datetime) -> Since | int:
    """Returns the begin as the readers take it: a time is in milliseconds since the Unix epoch.

    Raises `ValueError` for a time without a zone.
    """
    if isinstance(since, Since):
        return since
    if since.tzinfo is None:
        raise ValueError(f"the time {since} has no time zone")
    return int(since.timestamp() * 1000)


def bus_settings(bus: BusSettings | str) -> BusSettings:
    """Returns the settings of a bus that is given by its servers alone."""
    return BusSettings(bus) if isinstance(bus, str) else bus
