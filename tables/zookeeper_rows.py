"""What is known from ZooKeeper beside the brokers, as a part of the cluster's row, and back."""

from collections.abc import Mapping
from typing import Any

from immutables import Map

from featurewatch.streams.codec.znode_shapes import a_znode
from featurewatch.streams.znodes import Znode
from featurewatch.tables.image.nodes import NodesImage
from featurewatch.tables.image.zookeeper import (
    NO_ZOOKEEPER,
    ZnodeIssue,
    ZnodeResync,
    ZookeeperImage,
)


def zookeeper_fields(known: ZookeeperImage) -> dict[str, Any]:
    """The fields of an image's single znodes."""
    return {
        "held": list(known.held.values()),
        "remarks": dict(known.issues.items()),
        "peaks": dict(known.max_versions.items()),
        "erased": dict(known.erased.items()),
        "reading": known.reading,
        "zxid": known.zxid,
    }


def zookeeper_of(fields: Mapping[str, Any] | None) -> ZookeeperImage:
    """The single znodes that fields hold; None: nothing is known."""
    if fields is None:
        return NO_ZOOKEEPER
    return ZookeeperImage(
        held=_held(fields["held"]),
        issues=_remarks(fields["remarks"]),
        max_versions=Map(fields["peaks"]),
        erased=Map(fields["erased"]),
        reading=fields["reading"],
        zxid=fields["zxid"],
    )


def resync_fields(reading: ZnodeResync | None) -> dict[str, Any] | None:
    """The fields of a reading that goes on, without its brokers."""
    if reading is None:
        return None
    return {
        "serial": reading.serial,
        "name": reading.name,
        "next_index": reading.next_index,
        "held": list(reading.held.values()),
        "remarks": dict(reading.issues.items()),
    }


def resync_of(fields: Mapping[str, Any] | None, nodes: NodesImage) -> ZnodeResync | None:
    """The reading that fields hold, with the brokers that their rows hold."""
    if fields is None:
        return None
    return ZnodeResync(
        serial=fields["serial"],
        name=fields["name"],
        next_index=fields["next_index"],
        nodes=nodes,
        held=_held(fields["held"]),
        issues=_remarks(fields["remarks"]),
    )


def _held(items: list[dict[str, Any]]) -> Map[str, Znode]:
    znodes = map(a_znode, items)
    return Map({znode.path: znode for znode in znodes})


def _remarks(fields: Mapping[str, dict[str, Any]]) -> Map[str, ZnodeIssue]:
    return Map({path: ZnodeIssue(**found) for path, found in fields.items()})
