"""The tables of silver."""

from typing import Final

from featurewatch.pipeline.lake.tables import Layer, Table

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
_RANGES: Final = "map<string, struct<min: int, max: int>>"
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
        "features": _RANGES,
    },
)
FENCING: Final = _table(
    "fencing",
    "a broker was fenced or unfenced, or began to shut down; null: this stays",
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
    {"from_offset": "bigint", "to_offset": "bigint", "reset": "boolean", "detail": "string"},
    pruned=False,
)
ZNODE_CHANGES: Final = _table(
    "znode_changes",
    "a znode was made, changed, is gone, or was read anew",
    {
        "path": "string",
        "gone": "boolean",
        "type": "string",
        "content": "string",
        "czxid": "bigint",
        "mzxid": "bigint",
        "version": "int",
        "zxid": "bigint",
        "missed": "bigint",
        "recreated": "boolean",
        "resync": "string",
    },
    pruned=False,
)
ANSWERS: Final = _table(
    "answers",
    "what a node said of its features, or that it did not answer",
    {
        "role": "string",
        "node_id": "int",
        "address": "string",
        "answered": "boolean",
        "gone": "boolean",
        "detail": "string",
        "supported": _RANGES,
        "finalized": "map<string, int>",
        "epoch": "bigint",
        "complete": "boolean",
    },
)
DISAGREEMENTS: Final = _table(
    "disagreements",
    "nodes that answer with different levels of a feature; fewer than two views: they agree again",
    {"feature": "string", "views": "array<struct<level: int, nodes: array<string>>>"},
)
SOURCE_STATES: Final = _table(
    "source_states",
    "what a source said of itself: its heartbeats, and each change of its state",
    {
        "source": "string",
        "state": "string",
        "log_offset": "bigint",
        "offset_epoch": "int",
        "high_watermark": "bigint",
        "leader_id": "int",
        "leader_epoch": "int",
        "detail": "string",
    },
)
QUARANTINE: Final = Table(
    Layer.SILVER,
    "quarantine",
    "what could not be read, with its bytes and the reason; index -1: the whole message",
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
    SOURCE_STATES,
    QUARANTINE,
)

JOINED: Final = "silver"
"""The file in gold's checkpoint that exists while gold's query fills silver too."""
