"""The fields of the messages of the input topics, as Spark types: what a bare read parses.

One schema covers all kinds of events: fields with the same name have the same type.
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
    # metadata-log; ``data`` of a record is JSON that depends on its type
    "first_offset": "bigint",
    "last_offset": "bigint",
    "leader_epoch": "int",
    "append_ms": "bigint",
    "checksum": "bigint",
    "records": f"array<{_RECORD}>",
    "skipped": "map<string, bigint>",
    "end_offset": "bigint",
    "index": "int",
    "last": "boolean",
    "from_offset": "bigint",
    "to_offset": "bigint",
    "reason": "string",
    "reset": "boolean",
    "finished": "boolean",
    "alert": "string",
    "by": "string",
    # status of sources, on every topic
    "source": "string",
    "state": "string",
    "offset": "bigint",
    "offset_epoch": "int",
    "offset_checksum": "bigint",
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
    # zookeeper; ``content`` of a znode is JSON that depends on its type
    "path": "string",
    "znode": _ZNODE,
    "missed": "bigint",
    "recreated": "boolean",
    "zxid": "bigint",
    "resync": "string",
    "znodes": f"array<{_ZNODE}>",
}
"""The fields of all events, as name and type."""


def ddl(fields: Mapping[str, str]) -> str:
    """Returns fields as the DDL that `from_json` takes."""
    return ", ".join(f"`{name}` {type_}" for name, type_ in fields.items())
