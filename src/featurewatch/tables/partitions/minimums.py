"""The minimum of the ISR that topics, brokers and the cluster have set (``min.insync.replicas``).

Kafka looks for it at the topic, then at the leader's broker, then at the cluster; else it is 1. The
log has what was set by a client or a controller (``ConfigRecord``), not the brokers' files.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from immutables import Map

CONFIG_RECORD: Final = "CONFIG_RECORD"
SETTING: Final = "min.insync.replicas"

_KINDS: Final = {2: "t", 4: "b"}
"""The types of resources that may set it: topics and brokers (``ConfigResource.Type``)."""
_CLUSTER: Final = "b/"
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{0,249}")
_VALUE: Final = re.compile(r"[0-9]{1,9}")
_MAX_SETTINGS: Final = 500_000


class MinIsr(NamedTuple):
    """A minimum that was set, by the record with the offset ``offset``."""

    value: int
    offset: int


MinIsrs = Map[str, MinIsr]
"""The settings, by `resource_of`."""

NO_MIN_ISRS: Final[MinIsrs] = Map()


def topic_resource(name: str) -> str:
    """The key of a topic's setting."""
    return f"t/{name}"


def topic_of(resource: str) -> str | None:
    """The topic whose setting this is; None: it may be that of any topic."""
    return resource[2:] if resource.startswith("t/") else None


def min_isr_of(settings: MinIsrs, topic: str, leader: int) -> int:
    """The minimum for a partition of a topic, before its number of replicas limits it."""
    if not settings:
        return 1
    found = settings.get(f"t/{topic}") or settings.get(f"b/{leader}") or settings.get(_CLUSTER)
    return found.value if found else 1


def configure(
    settings: MinIsrs, offset: int, data: Mapping[str, Any]
) -> tuple[MinIsrs, str | None]:
    """Applies a ConfigRecord; the second result is the resource whose minimum it changed, if any.

    Raises:
        KeyError, TypeError, ValueError: The record is not readable.
    """
    if data["name"] != SETTING or "value" not in data:
        return settings, None
    kind, name, value = _KINDS.get(data["resourceType"]), data["resourceName"], data["value"]
    if kind is None:
        return settings, None
    if type(name) is not str or not _NAME.fullmatch(name):
        raise ValueError(f"{SETTING} is set for a resource without a name")
    resource = f"{kind}/{name}"
    known = settings.get(resource)
    if known is not None and offset <= known.offset:
        return settings, None
    if value is None:
        return (settings if known is None else settings.delete(resource)), resource
    if type(value) is not str or not _VALUE.fullmatch(value):
        raise ValueError(f"{SETTING} is not a whole number")
    if known is None and len(settings) >= _MAX_SETTINGS:
        raise ValueError(f"{SETTING} is set for more topics than can be followed")
    return settings.set(resource, MinIsr(int(value), offset)), resource
