"""The shape of each event on the topics: its fields, and what each of them may hold.

`streams.codec` decodes by these; ``streams/schemas`` says the same as JSON Schema.
"""

import base64
import binascii
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Final, cast

from streams.cloudevents import LATEST_MS
from streams.events import (
    CommitKind,
    DeadLetter,
    Disagreement,
    Event,
    FeatureView,
    LogCommit,
    LogGap,
    NodeAnswer,
    NodeSilent,
    SnapshotChunk,
    SourceState,
    SourceStatus,
)
from streams.topics import API_VERSIONS, DEAD_LETTERS, METADATA_LOG
from streams.types import Range, Role

# Checks: each takes a parsed JSON value and returns what the event holds, or raises ValueError with
# the end of a sentence that begins with the field's name.

Check = Callable[[Any], Any]


def brief(value: object) -> str:
    """A value as it may stand in an error: one line, at most 60 characters."""
    # reprlib stays shallow: a plain repr of deeply nested JSON ends in a RecursionError.
    text = reprlib.repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _int(low: int, high: int) -> Check:
    def check(value: Any) -> int:
        # Not isinstance: JSON's true is not 1.
        if type(value) is int and low <= value <= high:
            return value
        raise ValueError(f"is not an integer from {low} to {high}: {brief(value)}")

    return check


def _text(value: Any) -> str:
    if type(value) is str:
        return value
    raise ValueError(f"is not a string: {brief(value)}")


def _name(value: Any) -> str:
    if type(value) is str and value:
        return value
    raise ValueError(f"is not a string with at least one character: {brief(value)}")


def _flag(value: Any) -> bool:
    if type(value) is bool:
        return value
    raise ValueError(f"is neither true nor false: {brief(value)}")


def _one_of(enum: type[StrEnum]) -> Check:
    members = {str(member): member for member in enum}

    def check(value: Any) -> StrEnum:
        if type(value) is str and value in members:
            return members[value]
        raise ValueError(f"is none of {', '.join(members)}: {brief(value)}")

    return check


def _map_of(check_item: Check) -> Check:
    def check(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise ValueError(f"is not an object: {brief(value)}")
        return {_name(name): check_item(item) for name, item in value.items()}

    return check


def _range(value: Any) -> Range:
    if type(value) is not list or len(value) != 2:
        raise ValueError(f"is not a range [min, max]: {brief(value)}")
    low, high = _LEVEL(value[0]), _LEVEL(value[1])
    if low > high:
        raise ValueError(f"is a range whose minimum is above its maximum: {brief(value)}")
    return low, high


def _records(value: Any) -> list[dict[str, Any]]:
    if type(value) is not list:
        raise ValueError(f"is not a list: {brief(value)}")
    # The hot path of the worker: a thousand records in a message. One flat loop of type checks is
    # the cheapest full check there is, at a fifth of what orjson.loads takes.
    try:
        for record in value:
            if (
                type(record["offset"]) is int
                and type(record["type"]) is str
                and type(record["version"]) is int
                and type(record["data"]) is dict
            ):
                continue
            raise ValueError(f"holds a record with a wrong type: {brief(record)}")
    except (KeyError, TypeError, IndexError):
        raise ValueError(
            f"holds what is no record with offset, type, version and data: {brief(record)}"
        ) from None
    return value


def _views(value: Any) -> tuple[FeatureView, ...]:
    if type(value) is not list:
        raise ValueError(f"is not a list: {brief(value)}")
    views = []
    for view in value:
        if type(view) is not dict or type(view.get("nodes")) is not list:
            raise ValueError(f"holds what is no view with a level and nodes: {brief(view)}")
        views.append(FeatureView(_LEVEL(view.get("level")), tuple(map(_name, view["nodes"]))))
    return tuple(views)


def _payload(value: Any) -> bytes:
    try:
        return base64.b64decode(_text(value), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"is not base64: {brief(value)}") from None


_OFFSET: Final = _int(0, 2**63 - 1)
_OFFSET_OR_NONE: Final = _int(-1, 2**63 - 1)
_INT32: Final = _int(0, 2**31 - 1)
_INT32_OR_NONE: Final = _int(-1, 2**31 - 1)
_LEVEL: Final = _int(0, 2**15 - 1)
_TIME: Final = _int(0, LATEST_MS)
_TIME_OR_NONE: Final = _int(-1, LATEST_MS)


@dataclass(frozen=True, slots=True)
class Shape:
    """An event's class, the check of each of its fields, and pairs that must not be reversed."""

    event: type
    checks: Mapping[str, Check]
    ordered: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        declared = {field.name for field in fields(self.event)}
        if declared != set(self.checks):
            raise TypeError(f"{self.event.__name__}: {declared ^ set(self.checks)} without a match")

    def decode(self, kind: str, content: Mapping[str, Any]) -> Event | DeadLetter:
        """The event; raises `ValueError` with a sentence that names the field."""
        values = {}
        name = ""
        try:
            for name, check in self.checks.items():
                values[name] = check(content[name])
        except KeyError:
            raise ValueError(f"{kind} has no field {name}") from None
        except ValueError as error:
            raise ValueError(f"{name} of {kind} {error}") from None
        if self.ordered and values[self.ordered[0]] > values[self.ordered[1]]:
            raise ValueError(f"{self.ordered[0]} of {kind} is above {self.ordered[1]}")
        return cast("Event | DeadLetter", self.event(**values))


_COMMIT = Shape(
    LogCommit,
    {
        "cluster": _name,
        "kind": _one_of(CommitKind),
        "first_offset": _OFFSET,
        "last_offset": _OFFSET,
        "leader_epoch": _INT32,
        "append_ms": _TIME_OR_NONE,
        "records": _records,
        "skipped": _map_of(_OFFSET),
        "seen_ms": _TIME,
    },
    ordered=("first_offset", "last_offset"),
)
_CHUNK = Shape(
    SnapshotChunk,
    {
        "cluster": _name,
        "end_offset": _OFFSET,
        "leader_epoch": _INT32,
        "index": _INT32,
        "last": _flag,
        "append_ms": _TIME_OR_NONE,
        "records": _records,
        "skipped": _map_of(_OFFSET),
        "seen_ms": _TIME,
    },
)
_GAP = Shape(
    LogGap,
    {
        "cluster": _name,
        "from_offset": _OFFSET,
        "to_offset": _OFFSET,
        "reason": _text,
        "reset": _flag,
        "seen_ms": _TIME,
    },
)
_STATUS = Shape(
    SourceStatus,
    {
        "cluster": _name,
        "source": _name,
        "state": _one_of(SourceState),
        "offset": _OFFSET_OR_NONE,
        "offset_epoch": _INT32_OR_NONE,
        "high_watermark": _OFFSET_OR_NONE,
        "leader_id": _INT32_OR_NONE,
        "leader_epoch": _INT32_OR_NONE,
        "detail": _text,
        "seen_ms": _TIME,
    },
)
_ANSWER = Shape(
    NodeAnswer,
    {
        "cluster": _name,
        "role": _one_of(Role),
        "node_id": _INT32,
        "address": _text,
        "supported": _map_of(_range),
        "finalized": _map_of(_LEVEL),
        "epoch": _OFFSET_OR_NONE,
        "complete": _flag,
        "seen_ms": _TIME,
    },
)
_SILENT = Shape(
    NodeSilent,
    {
        "cluster": _name,
        "role": _one_of(Role),
        "node_id": _INT32,
        "address": _text,
        "gone": _flag,
        "detail": _text,
        "seen_ms": _TIME,
    },
)
_DISAGREEMENT = Shape(
    Disagreement, {"cluster": _name, "feature": _name, "views": _views, "seen_ms": _TIME}
)
_DEAD_LETTER = Shape(
    DeadLetter,
    {
        "cluster": _text,
        "place": _text,
        "reason": _text,
        "payload": _payload,
        "seen_ms": _TIME,
        "headers": _map_of(_text),
    },
)

KINDS: Final[Mapping[str, Mapping[str, Shape]]] = {
    METADATA_LOG.short_name: {
        "batch": _COMMIT,
        "transaction": _COMMIT,
        "snapshot-chunk": _CHUNK,
        "gap": _GAP,
        "status": _STATUS,
    },
    API_VERSIONS.short_name: {
        "node-answer": _ANSWER,
        "node-silent": _SILENT,
        "disagreement": _DISAGREEMENT,
        "status": _STATUS,
    },
    DEAD_LETTERS.short_name: {"dead-letter": _DEAD_LETTER},
}
"""What may stand on each topic, by its short name and by kind."""
