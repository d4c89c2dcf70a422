"""What stands in the messages of the input topics, as Spark's types.

One schema for all kinds of events: their fields agree where they have the same name. A test holds
it against `streams.codec.event_shapes`, which decides what is an event.
"""

from collections.abc import Mapping
from typing import Final

_RECORD: Final = "struct<offset: bigint, type: string, version: int, data: string>"
_ZNODE: Final = (
    "struct<path: string, czxid: bigint, mzxid: bigint, version: int, owner: bigint,"
    " content: string>"
)

EVENT: Final[Mapping[str, str]] = {
    "kind": "string",
    "cluster": "string",
    "seen_ms": "bigint",
    # metadata-log; the data of a record is JSON of its type
    "first_offset": "bigint",
    "last_offset": "bigint",
    "leader_epoch": "int",
    "append_ms": "bigint",
    "records": f"array<{_RECORD}>",
    "skipped": "map<string, bigint>",
    "end_offset": "bigint",
    "index": "int",
    "last": "boolean",
    "from_offset": "bigint",
    "to_offset": "bigint",
    "reason": "string",
    "reset": "boolean",
    # what sources say of themselves, on every topic
    "source": "string",
    "state": "string",
    "offset": "bigint",
    "offset_epoch": "int",
    "high_watermark": "bigint",
    "leader_id": "int",
    "detail": "string",
    # api-versions
    "role": "string",
    "node_id": "int",
    "address": "string",
    "supported": "map<string, array<int>>",
    "finalized": "map<string, int>",
    "epoch": "bigint",
    "complete": "boolean",
    "gone": "boolean",
    "feature": "string",
    "views": "array<struct<level: int, nodes: array<string>>>",
    # zookeeper; the content of a znode is JSON of its type
    "path": "string",
    "znode": _ZNODE,
    "missed": "bigint",
    "recreated": "boolean",
    "zxid": "bigint",
    "reading": "string",
    "znodes": f"array<{_ZNODE}>",
}
"""The fields of all events, as name and type."""

_FEATURES: Final = "array<struct<name: string, minSupportedVersion: int, maxSupportedVersion: int>>"

NODE_RECORD: Final[Mapping[str, str]] = {
    "brokerId": "int",
    "controllerId": "int",
    "id": "int",
    "incarnationId": "string",
    "brokerEpoch": "bigint",
    "epoch": "bigint",
    "features": _FEATURES,
    "inControlledShutdown": "string",
    "fenced": "string",
    "isMigratingZkBroker": "boolean",
    "zkMigrationReady": "boolean",
}
"""Registrations of both roles, and all that changes them. ``fenced`` is true or false in one record
and 1, 0 or -1 in another."""

LEVEL_RECORD: Final[Mapping[str, str]] = {"name": "string", "featureLevel": "int"}

CONTROL_RECORD: Final[Mapping[str, str]] = {
    "leaderId": "int",
    "voters": "array<struct<voterId: int>>",
    "kRaftVersion": "int",
    "zkMigrationState": "int",
}


def ddl(fields: Mapping[str, str]) -> str:
    """Some fields as `from_json` wants them."""
    return ", ".join(f"`{name}` {kind}" for name, kind in fields.items())
