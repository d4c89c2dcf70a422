"""The shape of znodes in events: `streams.znodes` as JSON, checked."""

from collections.abc import Mapping
from typing import Any, Final, cast

from featurewatch.streams.codec.checks import (
    INT32,
    INT32_OR_NONE,
    INT64,
    OFFSET,
    OFFSET_OR_NONE,
    TIME_OR_NONE,
    Shape,
    a_flag,
    a_name,
    a_text,
    an_object,
    brief,
    integer,
    list_of,
    map_of,
    one_of,
    registered_range,
)
from featurewatch.streams.znodes import (
    AdminTask,
    AdminZnode,
    BrokerZnode,
    ClusterIdZnode,
    ControllerEpochZnode,
    ControllerZnode,
    FeaturesForm,
    FeaturesZnode,
    MigrationZnode,
    PartitionStateZnode,
    UnreadableZnode,
    Znode,
    ZnodeContent,
)

_LEVEL: Final = integer(0, 2**63 - 1)
_SESSION: Final = INT64


def _text_or_none(value: Any) -> str | None:
    return None if value is None else a_text(value)


def _text_or_number(value: Any) -> str | int | float:
    if type(value) in (str, int, float):
        return cast("str | int | float", value)
    raise ValueError(f"is neither a string nor a number: {brief(value)}")


CONTENTS: Final[Mapping[str, Shape]] = {
    "broker": Shape(
        BrokerZnode,
        {
            "node_id": INT32,
            "schema": INT32,
            "features": map_of(registered_range),
            "addresses": map_of(a_text),
            "rack": _text_or_none,
            "started_ms": TIME_OR_NONE,
        },
    ),
    "features": Shape(
        FeaturesZnode,
        {
            "form": one_of(FeaturesForm),
            "schema": OFFSET,
            "enabled": a_flag,
            "levels": map_of(_LEVEL),
            "minimums": map_of(_LEVEL),
            "metadata": map_of(map_of(_text_or_number)),
            "epoch": OFFSET_OR_NONE,
        },
    ),
    "controller": Shape(
        ControllerZnode,
        {"node_id": INT32, "kraft_epoch": INT32_OR_NONE, "elected_ms": TIME_OR_NONE},
    ),
    "controller-epoch": Shape(ControllerEpochZnode, {"epoch": INT32}),
    "cluster-id": Shape(ClusterIdZnode, {"cluster_id": a_name}),
    "migration": Shape(
        MigrationZnode,
        {
            "kraft_controller_id": INT32_OR_NONE,
            "kraft_controller_epoch": INT32_OR_NONE,
            "kraft_metadata_offset": OFFSET_OR_NONE,
            "kraft_metadata_epoch": INT32_OR_NONE,
        },
    ),
    "partition-state": Shape(
        PartitionStateZnode,
        {
            "topic": a_name,
            "partition": INT32,
            "leader": INT32_OR_NONE,
            "leader_epoch": INT32_OR_NONE,
            "controller_epoch": INT32_OR_NONE,
            "isr": list_of(INT32),
            "recovering": a_flag,
        },
    ),
    "admin": Shape(AdminZnode, {"task": one_of(AdminTask), "partitions": list_of(an_object)}),
    "unreadable": Shape(UnreadableZnode, {"reason": a_text}),
}
"""The shapes of a znode's content, by its ``type``."""


def _content(value: Any) -> ZnodeContent:
    kind = value.get("type") if type(value) is dict else None
    shape = CONTENTS.get(kind) if type(kind) is str else None
    if shape is None:
        raise ValueError(f"has none of the types {', '.join(CONTENTS)}: {brief(value)}")
    return cast("ZnodeContent", shape.decode(cast("str", kind), value))


_ZNODE: Final = Shape(
    Znode,
    {
        "path": a_name,
        "czxid": OFFSET,
        "mzxid": OFFSET,
        "version": INT32,
        "owner": _SESSION,
        "content": _content,
    },
)


def a_znode(value: Any) -> Znode:
    """The znode that a parsed JSON object describes; raises `ValueError`."""
    return cast("Znode", _ZNODE.decode("the znode", an_object(value)))


def a_znode_or_none(value: Any) -> Znode | None:
    """A znode, or null for one that is gone."""
    return None if value is None else a_znode(value)


znodes: Final = list_of(a_znode)
"""Many znodes, as a snapshot has them."""
