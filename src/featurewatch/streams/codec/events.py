"""Events to Kafka messages and back: JSON values, cluster ids as keys, CloudEvents headers.

A value is the event's fields plus ``kind``, which names its type; ranges are ``[min, max]``, bytes
are base64. Decoding checks every field of the envelope. Unknown fields are ignored, so
that a newer source and an older worker are compatible. ``streams/schemas`` has the JSON Schemas.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import orjson

from featurewatch.common.json_bytes import json_bytes
from featurewatch.common.text import shortened
from featurewatch.streams.codec import cloudevents
from featurewatch.streams.codec.checks import brief
from featurewatch.streams.codec.shapes import KINDS
from featurewatch.streams.events import (
    MAX_PAYLOAD_BYTES,
    DeadLetter,
    Event,
    LogCommit,
    LogEvent,
    ResyncRequest,
    ZookeeperEvent,
)
from featurewatch.streams.topics import (
    METADATA_LOG,
    RESYNC_REQUESTS,
    ZOOKEEPER,
    Topic,
)

AnyEvent = Event | DeadLetter | ResyncRequest
"""Input of `encode`: events of clusters, and the messages of other topics."""


class MalformedEventError(ValueError):
    """A message that is not JSON, or not of the schema: the text names the field and the reason."""


class Message(NamedTuple):
    """A Kafka message, ready to be produced; without a value it deletes its key (compaction)."""

    key: bytes
    value: bytes | None
    headers: cloudevents.Headers

    @property
    def size(self) -> int:
        """The bytes of key, value and headers."""
        headers = sum(len(name) + len(text) for name, text in self.headers)
        return len(self.value or b"") + len(self.key) + headers


def encode(topic: Topic, event: AnyEvent) -> Message:
    """The message of an event on a topic.

    Raises `TypeError` if the event holds what JSON cannot represent, or does not belong on the
    topic.
    """
    kind = kind_of(event)
    if kind not in KINDS[topic.short_name]:
        raise TypeError(f"an event of kind {kind} does not belong on the topic {topic.short_name}")
    shape = KINDS[topic.short_name][kind]
    value: dict[str, Any] = {"kind": kind}
    for name in shape.checks:
        value[name] = getattr(event, name)
    if isinstance(event, DeadLetter):
        _make_printable(value)
        _bound_payload(value)
    headers = cloudevents.headers(topic, kind, event.cluster, event.id, event.seen_ms)
    key = event.cluster.encode(errors="replace")
    return Message(key, json_bytes(value, default=_plain), headers)


def decode(topic: Topic, value: bytes | None, key: bytes | None = None) -> AnyEvent:
    """The event of a message's value; raises `MalformedEventError` and nothing else, whatever the
    bytes.

    With a ``key`` given, the event must be of the cluster that the key names.
    """
    if value is None:
        raise MalformedEventError("the message has no value")
    try:
        content = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise MalformedEventError(f"not JSON: {error}") from None
    if type(content) is not dict:
        raise MalformedEventError("not a JSON object")
    kind = content.get("kind")
    shape = KINDS[topic.short_name].get(kind) if type(kind) is str else None
    if shape is None:
        raise MalformedEventError(
            f"kind is none of {', '.join(KINDS[topic.short_name])}: {brief(kind)}"
        )
    try:
        event = shape.decode(cast("str", kind), content)
    except ValueError as error:
        raise MalformedEventError(str(error)) from None
    # Messages that are forged: a source's events on the topic of another one would count twice.
    if topic.source and "source" in shape.checks and content["source"] != topic.source:
        raise MalformedEventError(
            f"the source is {brief(content['source'])}, and this is the topic of {topic.source}"
        )
    if isinstance(event, LogCommit):
        _check_offsets(event)
    if key is not None and key != event.cluster.encode():
        raise MalformedEventError(f"the key is {brief(key)}, the cluster is {brief(event.cluster)}")
    return cast("AnyEvent", event)


def decode_log_event(value: bytes | None, key: bytes | None = None) -> LogEvent:
    """`decode` for ``metadata-log``."""
    return cast("LogEvent", decode(METADATA_LOG, value, key))


def decode_zookeeper_event(value: bytes | None, key: bytes | None = None) -> ZookeeperEvent:
    """`decode` for ``zookeeper``."""
    return cast("ZookeeperEvent", decode(ZOOKEEPER, value, key))


def decode_resync_request(value: bytes | None, key: bytes | None = None) -> ResyncRequest:
    """`decode` for ``resync-requests``."""
    return cast("ResyncRequest", decode(RESYNC_REQUESTS, value, key))


def kind_of(event: AnyEvent) -> str:
    """The ``kind`` in the value and at the end of the ``ce_type``."""
    return str(event.kind) if isinstance(event, LogCommit) else event.KIND


def _check_offsets(commit: LogCommit) -> None:
    """Raises `MalformedEventError` if a record is outside of its commit.

    A partition keeps the offset of the record that changed it last: one that is ahead would make
    all later changes count as applied.
    """
    offsets = [record["offset"] for record in commit.records]
    if not offsets:
        return
    for offset in (min(offsets), max(offsets)):
        if not commit.first_offset <= offset <= commit.last_offset:
            raise MalformedEventError(
                f"a record has offset {offset}, outside of its commit of offsets "
                f"{commit.first_offset} to {commit.last_offset}"
            )


def _plain(value: object) -> object:
    """Converts what orjson cannot serialize (it takes dicts, lists, tuples and dataclasses)."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} cannot be part of an event")


def _bound_payload(value: dict[str, Any]) -> None:
    """A dead letter must fit into a message: base64 makes its payload larger than it was."""
    value["payload"] = value["payload"][:MAX_PAYLOAD_BYTES]


def _make_printable(value: dict[str, Any]) -> None:
    """A dead letter must get through: its texts may quote bytes that are no UTF-8."""

    def printable(text: str) -> str:
        return text.encode(errors="backslashreplace").decode()

    for name in ("cluster", "location", "reason"):
        value[name] = shortened(printable(value[name]))
    value["headers"] = {printable(k): printable(v) for k, v in value["headers"].items()}
