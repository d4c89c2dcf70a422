"""The shape of each event on the topics: its fields, and the check of each.

`streams.codec.events` decodes by these; ``streams/schemas`` has the same as JSON Schema.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

from featurewatch.streams.codec.checks import (
    CHECKSUM_OR_NONE,
    INT32,
    INT32_OR_NONE,
    LEVEL,
    OFFSET,
    OFFSET_OR_NONE,
    TIME,
    TIME_OR_NONE,
    Shape,
    a_cluster_name,
    a_detail,
    a_flag,
    a_name,
    a_text,
    brief,
    map_of,
    one_of,
    supported_range,
)
from featurewatch.streams.codec.znode_shapes import a_znode_or_none, znodes
from featurewatch.streams.events import (
    Acknowledgement,
    CommitKind,
    DeadLetter,
    Disagreement,
    FeatureView,
    LogCommit,
    LogGap,
    NodeAnswer,
    NodeSilent,
    ResyncRequest,
    SnapshotChunk,
    SourceResync,
    SourceState,
    SourceStatus,
    ZnodeChange,
    ZnodeSnapshot,
)
from featurewatch.streams.topics import (
    API_VERSIONS,
    DEAD_LETTERS,
    METADATA_LOG,
    RESYNC_REQUESTS,
    ZOOKEEPER,
)
from featurewatch.streams.types import Role


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
        views.append(FeatureView(LEVEL(view.get("level")), tuple(map(a_name, view["nodes"]))))
    return tuple(views)


def _payload(value: Any) -> bytes:
    text = a_text(value)
    try:
        # Python's decoder takes surplus padding.
        if len(text) % 4 == 0:
            return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        pass
    raise ValueError(f"is not base64: {brief(value)}")


_COMMIT = Shape(
    LogCommit,
    {
        "cluster": a_name,
        "kind": one_of(CommitKind),
        "first_offset": OFFSET,
        "last_offset": OFFSET,
        "leader_epoch": INT32,
        "append_ms": TIME_OR_NONE,
        "records": _records,
        "skipped": map_of(OFFSET),
        "seen_ms": TIME,
        "checksum": CHECKSUM_OR_NONE,
    },
    ordered=("first_offset", "last_offset"),
    optional=frozenset({"checksum"}),
)
_CHUNK = Shape(
    SnapshotChunk,
    {
        "cluster": a_name,
        "end_offset": OFFSET,
        "leader_epoch": INT32,
        "index": INT32,
        "last": a_flag,
        "append_ms": TIME_OR_NONE,
        "records": _records,
        "skipped": map_of(OFFSET),
        "seen_ms": TIME,
    },
)
_GAP = Shape(
    LogGap,
    {
        "cluster": a_name,
        "from_offset": OFFSET,
        "to_offset": OFFSET,
        "reason": a_detail,
        "reset": a_flag,
        "seen_ms": TIME,
    },
)
_STATUS = Shape(
    SourceStatus,
    {
        "cluster": a_name,
        "source": a_name,
        "state": one_of(SourceState),
        "offset": OFFSET_OR_NONE,
        "offset_epoch": INT32_OR_NONE,
        "high_watermark": OFFSET_OR_NONE,
        "leader_id": INT32_OR_NONE,
        "leader_epoch": INT32_OR_NONE,
        "detail": a_detail,
        "seen_ms": TIME,
        "offset_checksum": CHECKSUM_OR_NONE,
        "name": a_cluster_name,
    },
    optional=frozenset({"offset_checksum", "name"}),
)
_ACKNOWLEDGEMENT = Shape(
    Acknowledgement,
    {
        "cluster": a_name,
        "alert": a_name,
        "by": a_detail,
        "reason": a_detail,
        "seen_ms": TIME,
    },
)
_RESYNC = Shape(
    SourceResync,
    {
        "cluster": a_name,
        "source": a_name,
        "finished": a_flag,
        "reason": a_detail,
        "seen_ms": TIME,
    },
)
_ANSWER = Shape(
    NodeAnswer,
    {
        "cluster": a_name,
        "role": one_of(Role),
        "node_id": INT32,
        "address": a_text,
        "supported": map_of(supported_range),
        "finalized": map_of(LEVEL),
        "epoch": OFFSET_OR_NONE,
        "complete": a_flag,
        "seen_ms": TIME,
    },
)
_SILENT = Shape(
    NodeSilent,
    {
        "cluster": a_name,
        "role": one_of(Role),
        "node_id": INT32,
        "address": a_text,
        "gone": a_flag,
        "detail": a_detail,
        "seen_ms": TIME,
    },
)
_DISAGREEMENT = Shape(
    Disagreement, {"cluster": a_name, "feature": a_name, "views": _views, "seen_ms": TIME}
)
_DEAD_LETTER = Shape(
    DeadLetter,
    {
        "cluster": a_text,
        "location": a_text,
        "reason": a_detail,
        "payload": _payload,
        "seen_ms": TIME,
        "headers": map_of(a_text),
        "payload_bytes": OFFSET,
        "payload_sha256": a_text,
    },
)
_RESYNC_REQUEST = Shape(
    ResyncRequest, {"cluster": a_name, "source": a_text, "reason": a_detail, "seen_ms": TIME}
)

_ZNODE_CHANGE = Shape(
    ZnodeChange,
    {
        "cluster": a_name,
        "path": a_name,
        "znode": a_znode_or_none,
        "missed": OFFSET,
        "recreated": a_flag,
        "zxid": OFFSET,
        "seen_ms": TIME,
    },
)
_ZNODE_SNAPSHOT = Shape(
    ZnodeSnapshot,
    {
        "cluster": a_name,
        "resync": a_name,
        "index": INT32,
        "last": a_flag,
        "znodes": znodes,
        "reason": a_detail,
        "zxid": OFFSET,
        "seen_ms": TIME,
    },
)

KINDS: Final[Mapping[str, Mapping[str, Shape]]] = {
    METADATA_LOG.short_name: {
        "batch": _COMMIT,
        "transaction": _COMMIT,
        "snapshot-chunk": _CHUNK,
        "gap": _GAP,
        "resync": _RESYNC,
        "status": _STATUS,
        "acknowledgement": _ACKNOWLEDGEMENT,
    },
    API_VERSIONS.short_name: {
        "node-answer": _ANSWER,
        "node-silent": _SILENT,
        "disagreement": _DISAGREEMENT,
        "resync": _RESYNC,
        "status": _STATUS,
    },
    ZOOKEEPER.short_name: {
        "znode-change": _ZNODE_CHANGE,
        "znode-snapshot": _ZNODE_SNAPSHOT,
        "status": _STATUS,
    },
    DEAD_LETTERS.short_name: {"dead-letter": _DEAD_LETTER},
    RESYNC_REQUESTS.short_name: {"resync-request": _RESYNC_REQUEST},
}
"""The shapes of each topic, by its short name and by kind."""
