"""The tables of silver. Columns that hold fields of events have the types of those."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final, get_args, get_origin

from featurewatch.pipeline.lake.tables import Layer, Table
from featurewatch.streams.events import (
    Disagreement,
    LogGap,
    NodeAnswer,
    NodeSilent,
    QuorumStatus,
    SourceStatus,
    ZnodeChange,
    ZnodeSnapshot,
)
from featurewatch.streams.fields import INT32_MAX, Bounds, unwrap
from featurewatch.streams.types import SupportedRange
from featurewatch.streams.znodes import Znode

_CAUSE: Final = {
    "cluster": "string",
    "id": "string",
    "index": "int",
    "at": "timestamp",
    "seen_at": "timestamp",
    "day": "date",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
}
"""The columns of every row: the cluster, the event and the position in it, the time of the cause
and when it was seen, and the position of the message."""

_LOG: Final = {"log_offset": "bigint", "leader_epoch": "int", "from_snapshot": "boolean"}
_RANGE: Final = "struct<min: int, max: int>"
_KEY: Final = ("id", "index")


def _table(name: str, about: str, columns: dict[str, str], *, pruned: bool = True) -> Table:
    return Table(
        Layer.SILVER,
        name,
        about,
        {**_CAUSE, **columns},
        key=_KEY,
        partitioned=("day",),
        pruned=pruned,
    )


def _columns(event: type, *names: str, **renamed: str) -> dict[str, str]:
    """Returns columns for fields of an event; ``renamed`` maps columns to fields of other names."""
    types = {field.name: field.type for field in fields(event)}
    columns = dict(zip(names, names, strict=True)) | renamed
    return {column: _type(types[name]) for column, name in columns.items()}


def _type(annotation: Any) -> str:
    base, metadata = unwrap(annotation)
    if base is int:
        highest = max(item.high for item in metadata if isinstance(item, Bounds))
        return "int" if highest <= INT32_MAX else "bigint"
    if base is bool:
        return "boolean"
    if base is SupportedRange:
        return _RANGE
    arguments = get_args(base)
    if get_origin(base) is Mapping:
        return f"map<{_type(arguments[0])}, {_type(arguments[1])}>"
    if get_origin(base) is tuple:
        return f"array<{_type(arguments[0])}>"
    if is_dataclass(base):
        members = ", ".join(f"{field.name}: {_type(field.type)}" for field in fields(base))
        return f"struct<{members}>"
    return "string"


REGISTRATIONS: Final = _table(
    "registrations",
    "a broker or controller registered, or was unregistered",
    {
        **_LOG,
        "role": "string",
        "node_id": "int",
        "registered": "boolean",
        "incarnation": "string",
        "node_epoch": "bigint",
        "fenced": "boolean",
        "shutting_down": "boolean",
        "migrating": "boolean",
        "features": f"map<string, {_RANGE}>",
    },
)
FENCING: Final = _table(
    "fencing",
    "a broker was fenced or unfenced, or began to shut down; null: unchanged",
    {
        **_LOG,
        "node_id": "int",
        "node_epoch": "bigint",
        "fenced": "boolean",
        "shutting_down": "boolean",
    },
)
LEVELS: Final = _table(
    "levels",
    "a level was finalized; 0: the feature was removed",
    {**_LOG, "feature": "string", "level": "int"},
)
CONTROL_RECORDS: Final = _table(
    "control_records",
    "leaders, voters and kraft.version of the quorum, and states of a migration",
    {
        **_LOG,
        "type": "string",
        "leader_id": "int",
        "voters": "array<int>",
        "kraft_version": "int",
        "migration_state": "int",
    },
)
LOG_GAPS: Final = _table(
    "log_gaps",
    "a stretch of a metadata log that its source could not have",
    _columns(LogGap, "from_offset", "to_offset", "reset", detail="reason"),
    pruned=False,
)
ZNODE_CHANGES: Final = _table(
    "znode_changes",
    "a znode was created, changed, deleted, or read again",
    {
        **_columns(ZnodeChange, "path"),
        "gone": "boolean",
        "type": "string",
        "content": "string",
        **_columns(Znode, "czxid", "mzxid", "version"),
        **_columns(ZnodeChange, "zxid", "missed", "recreated"),
        **_columns(ZnodeSnapshot, "resync"),
    },
    pruned=False,
)
ANSWERS: Final = _table(
    "answers",
    "features that a node reported, or that it did not answer",
    {
        **_columns(NodeAnswer, "role", "node_id", "address"),
        "answered": "boolean",
        **_columns(NodeSilent, "gone", "detail"),
        **_columns(NodeAnswer, "supported", "finalized", "epoch", "complete"),
    },
)
DISAGREEMENTS: Final = _table(
    "disagreements",
    "nodes that answer with different levels of a feature; fewer than two views: they agree again",
    _columns(Disagreement, "feature", "views"),
)
QUORUMS: Final = _table(
    "quorums",
    "the metadata quorum as its active controller describes it: voters, observers, their states",
    _columns(QuorumStatus, "leader_id", "leader_epoch", "voters", "observers", "detail"),
)
SOURCE_STATES: Final = _table(
    "source_states",
    "source status reports: heartbeats, and each change of the source's state",
    {
        **_columns(SourceStatus, "source", "state", log_offset="offset"),
        **_columns(SourceStatus, "offset_epoch", "high_watermark"),
        **_columns(SourceStatus, "leader_id", "leader_epoch", "detail"),
    },
)
QUARANTINE: Final = Table(
    Layer.SILVER,
    "quarantine",
    "unreadable input, with its bytes and the reason; index -1: the whole message",
    {
        "cluster": "string",
        "topic": "string",
        "partition": "int",
        "offset": "bigint",
        "index": "int",
        "type": "string",
        "reason": "string",
        "payload": "binary",
        "kafka_time": "timestamp",
        "day": "date",
    },
    key=("topic", "partition", "offset", "index"),
    partitioned=("day",),
    pruned=True,
)

SILVER: Final = (
    REGISTRATIONS,
    FENCING,
    LEVELS,
    CONTROL_RECORDS,
    LOG_GAPS,
    ZNODE_CHANGES,
    ANSWERS,
    DISAGREEMENTS,
    QUORUMS,
    SOURCE_STATES,
    QUARANTINE,
)
