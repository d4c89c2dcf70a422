"""Topic ids: text as in znodes and in the machines, UUIDs in messages."""

import base64
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from featurewatch.controller.partitions.assignment import TopicPartition

_BYTES: Final = 16
_STATE = TypeVar("_STATE")


def topic_uuid(text: str | None) -> uuid.UUID | None:
    """The UUID of Kafka's text for it; None without a text, or if it is not a UUID."""
    if text is None:
        return None
    try:
        raw = base64.b64decode(text.encode() + b"==", altchars=b"-_", validate=True)
    except ValueError:
        return None
    return uuid.UUID(bytes=raw) if len(raw) == _BYTES else None


def topic_id_text(topic_id: uuid.UUID) -> str:
    """Kafka's text of a UUID: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def by_topic(
    states: Iterable[_STATE], partition_of: Callable[[_STATE], TopicPartition]
) -> dict[str, list[_STATE]]:
    """States grouped by topic, topics in the order of their first state."""
    grouped: dict[str, list[_STATE]] = {}
    for state in states:
        grouped.setdefault(partition_of(state).topic, []).append(state)
    return grouped


def names_by_uuid(topic_ids: Mapping[str, str]) -> dict[uuid.UUID, str]:
    """The names of topics by UUID."""
    pairs = ((topic_uuid(text), name) for name, text in topic_ids.items())
    return {topic_id: name for topic_id, name in pairs if topic_id is not None}
