"""Outputs to Kafka messages and back.

A value is the output's fields as in `streams.outputs`; ``streams/schemas`` has the JSON Schemas. An
alert's key is its id, so that compaction keeps the newest message of each; all other keys are
cluster ids.
"""

from dataclasses import MISSING, fields, replace
from hashlib import sha256
from typing import Final, TypeVar, cast

import orjson

from featurewatch.common.json_bytes import json_bytes
from featurewatch.common.text import MAX_DETAIL_CHARS, shortened
from featurewatch.streams.codec import cloudevents
from featurewatch.streams.codec.events import MalformedEventError, Message
from featurewatch.streams.codec.shapes import Shape, shape_of
from featurewatch.streams.outputs import (
    Alert,
    FeatureChange,
    Operation,
    Snapshot,
)
from featurewatch.streams.topics import ALERTS, EPOCHS, FEATURE_CHANGES, OPERATIONS, STATE, Topic

_MAX_EVIDENCE_BYTES: Final = 64 * 1024
"""Of an alert, as JSON: it lists hundreds of nodes, and what reads alerts takes no more."""

Output = FeatureChange | Alert | Snapshot | Operation
_OutputT = TypeVar("_OutputT", bound=Output)

TOPICS: Final[dict[type[Output], Topic]] = {
    FeatureChange: FEATURE_CHANGES,
    Alert: ALERTS,
    Snapshot: EPOCHS,
    Operation: OPERATIONS,
}
"""Where each output goes; a snapshot also goes to ``state``, by `encode_state`."""


def topic_of(output: Output) -> Topic:
    """Where an output goes; a snapshot also goes to ``state``."""
    return TOPICS[type(output)]


def encode_output(output: Output) -> Message:
    """The message of an output."""
    topic = topic_of(output)
    kind = output.message_kind
    time_ms = output.seen_ms if isinstance(output, FeatureChange | Operation) else output.at_ms
    headers = cloudevents.headers(topic, kind, output.cluster, event_id(output), max(time_ms, 0))
    key = output.id if isinstance(output, Alert) else output.cluster
    return Message(key.encode(), encode_value(output), headers)


def encode_value(output: Output) -> bytes:
    """The value of an output's message."""
    if isinstance(output, Alert):
        output = _bounded(output)
    return json_bytes(output, default=list)  # of ranges


def encode_state(snapshot: Snapshot) -> Message:
    """The message of a snapshot on ``state``: the same revision has many, and each its own id."""
    value = json_bytes(snapshot, default=list)
    event_id = f"{snapshot.id}/{sha256(value).hexdigest()}"
    headers = cloudevents.headers(
        STATE, "snapshot", snapshot.cluster, event_id, max(snapshot.at_ms, 0)
    )
    return Message(snapshot.cluster.encode(), value, headers)


def _bounded(alert: Alert) -> Alert:
    """An alert that people and Alertmanager can take: what it quotes may be of any length."""
    evidence = orjson.dumps(alert.evidence, default=list)
    if len(alert.summary) <= MAX_DETAIL_CHARS and len(evidence) <= _MAX_EVIDENCE_BYTES:
        return alert
    if len(evidence) > _MAX_EVIDENCE_BYTES:
        omitted = {"omitted_bytes": len(evidence), "sha256": sha256(evidence).hexdigest()}
        alert = replace(alert, evidence=omitted)
    return replace(alert, summary=shortened(alert.summary))


def decode_change(value: bytes | None) -> FeatureChange:
    """A feature change from its message's value; raises `MalformedEventError`."""
    return decode_output(FeatureChange, value)


def decode_alert(value: bytes | None) -> Alert:
    """An alert from its message's value; raises `MalformedEventError`."""
    return decode_output(Alert, value)


def decode_snapshot(value: bytes | None) -> Snapshot:
    """A snapshot from its message's value; raises `MalformedEventError`."""
    return decode_output(Snapshot, value)


def decode_operation(value: bytes | None) -> Operation:
    """A step of an operation from its message's value; raises `MalformedEventError`."""
    return decode_output(Operation, value)


_SHAPES: Final[dict[type, Shape]] = {
    # Fields with defaults may be missing, and unknown ones are ignored: a newer worker and an older
    # reader are compatible, and the other way round.
    cls: replace(
        shape_of(cls),
        optional=frozenset(field.name for field in fields(cls) if field.default is not MISSING),
    )
    for cls in TOPICS
}


def decode_output(cls: type[_OutputT], value: bytes | None) -> _OutputT:
    """An output of this class from its message's value; raises `MalformedEventError`."""
    try:
        content = orjson.loads(value or b"")
    except orjson.JSONDecodeError as error:
        raise MalformedEventError(f"not JSON: {error}") from None
    if type(content) is not dict:
        raise MalformedEventError("not a JSON object")
    shape = _SHAPES[cls]
    missing = [name for name in shape.checks if name not in content and name not in shape.optional]
    if missing:
        raise MalformedEventError(f"{cls.__name__} has no field {', '.join(missing)}")
    try:
        return cast("_OutputT", shape.decode(cls.__name__, content))
    except ValueError as error:
        raise MalformedEventError(str(error)) from None


def event_id(output: Output) -> str:
    """The ``ce_id`` of an output's message; what UTF-8 cannot encode is replaced.

    An alert fires and resolves under one id, by different causes. Its times belong to it, since a
    log that is read again has the same events again.
    """
    if isinstance(output, Alert):
        name = f"{output.id}/{output.state}/{output.cause}@{output.since_ms}-{output.at_ms}"
    else:
        name = output.id
    return name.encode(errors="replace").decode()
