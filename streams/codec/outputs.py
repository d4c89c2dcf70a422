"""Outputs to Kafka messages and back.

A value is the output's fields as in `streams.outputs`; ``streams/schemas`` has the JSON Schemas. An
alert's key is its id, so that compaction keeps the newest message of each; all other keys are
cluster ids.
"""

from dataclasses import MISSING, fields
from typing import Any, Final

import orjson

from featurewatch.streams.codec import cloudevents
from featurewatch.streams.codec.events import MalformedEventError, Message
from featurewatch.streams.outputs import (
    Alert,
    AlertState,
    CapabilityClass,
    ChangeKind,
    FeatureChange,
    IncompatibleNode,
    Migration,
    Severity,
    Snapshot,
    ZookeeperController,
)
from featurewatch.streams.topics import ALERTS, EPOCHS, FEATURE_CHANGES, Topic
from featurewatch.streams.types import Role, SupportedRange, SupportedRanges

Output = FeatureChange | Alert | Snapshot

TOPICS: Final[dict[type[Output], Topic]] = {
    FeatureChange: FEATURE_CHANGES,
    Alert: ALERTS,
    Snapshot: EPOCHS,
}
"""Where each output goes; a snapshot also goes to ``state``."""


def topic_of(output: Output) -> Topic:
    """Where an output goes; a snapshot also goes to ``state``."""
    return TOPICS[type(output)]


def encode_output(output: Output) -> Message:
    """The message of an output."""
    topic = topic_of(output)
    kind = str(_kind(output))
    time_ms = output.seen_ms if isinstance(output, FeatureChange) else output.at_ms
    headers = cloudevents.headers(topic, kind, output.cluster, _cause(output), max(time_ms, 0))
    key = output.id if isinstance(output, Alert) else output.cluster
    return Message(key.encode(), orjson.dumps(output, default=list), headers)  # of ranges


def decode_change(value: bytes | None) -> FeatureChange:
    """A feature change from its message's value; raises `MalformedEventError`."""
    content = _content(FeatureChange, value)
    return FeatureChange(**{**content, "kind": _member(ChangeKind, content["kind"])})


def decode_alert(value: bytes | None) -> Alert:
    """An alert from its message's value; raises `MalformedEventError`."""
    content = _content(Alert, value)
    state = _member(AlertState, content["state"])
    return Alert(**{**content, "state": state, "severity": _member(Severity, content["severity"])})


def decode_snapshot(value: bytes | None) -> Snapshot:
    """A snapshot from its message's value; raises `MalformedEventError`."""
    content = _content(Snapshot, value)
    try:
        classes = tuple(_class(item) for item in content["classes"])
        incompatible = tuple(_incompatible(item) for item in content["incompatible"])
        parts = {name: _PARTS[name](value) for name, value in content.items() if name in _PARTS}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise MalformedEventError(f"a part of a snapshot: {error!r}") from None
    return Snapshot(**{**content, **parts, "classes": classes, "incompatible": incompatible})


def _content(shape: type[Output], value: bytes | None) -> dict[str, Any]:
    try:
        content = orjson.loads(value or b"")
    except orjson.JSONDecodeError as error:
        raise MalformedEventError(f"not JSON: {error}") from None
    if type(content) is not dict:
        raise MalformedEventError("not a JSON object")
    # Unknown fields are ignored, and fields with defaults may be missing: a newer worker and an
    # older reader are compatible, and the other way round.
    missing = [
        field.name
        for field in fields(shape)
        if field.name not in content and field.default is MISSING
    ]
    if missing:
        raise MalformedEventError(f"{shape.__name__} has no field {', '.join(missing)}")
    return {field.name: content[field.name] for field in fields(shape) if field.name in content}


def _member(enum: Any, value: Any) -> Any:
    try:
        return enum(value)
    except ValueError as error:
        raise MalformedEventError(str(error)) from None


def _class(item: dict[str, Any]) -> CapabilityClass:
    return CapabilityClass(
        role=Role(item["role"]),
        ranges=SupportedRanges(item["ranges"]),
        complete=item["complete"],
        nodes=tuple(item["nodes"]),
        fenced=tuple(item["fenced"]),
        silent=tuple(item["silent"]),
    )


def _controller(item: dict[str, Any]) -> ZookeeperController:
    return ZookeeperController(item["node_id"], item["epoch"], item["kraft_epoch"])


def _migration(item: dict[str, Any]) -> Migration:
    return Migration(
        state=item["state"],
        in_progress=item["in_progress"],
        kraft_controller_id=item["kraft_controller_id"],
        brokers_in_zookeeper=item["brokers_in_zookeeper"],
        missing=tuple(item["missing"]),
    )


_PARTS: Final = {"controller": _controller, "migration": _migration}


def _incompatible(item: dict[str, Any]) -> IncompatibleNode:
    bounds = item["range"]
    return IncompatibleNode(
        role=Role(item["role"]),
        node_id=item["node_id"],
        feature=item["feature"],
        level=item["level"],
        range=None if bounds is None else SupportedRange(*bounds),
        verdict=item["verdict"],
    )


def _kind(output: Output) -> str:
    if isinstance(output, FeatureChange):
        return output.kind
    return output.state if isinstance(output, Alert) else "snapshot"


def _cause(output: Output) -> str:
    """The ``ce_id``: an alert fires and resolves under one id, by different causes."""
    if isinstance(output, Alert):
        return f"{output.id}/{output.state}/{output.cause}"
    return output.id
