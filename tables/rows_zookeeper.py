"""What is known from ZooKeeper beside the brokers, as a part of the cluster's row, and back."""

from collections.abc import Mapping
from typing import Any

from immutables import Map

from streams.znode_shapes import a_znode
from streams.znodes import Znode
from tables.nodes import NodesImage
from tables.zookeeper import NO_ZOOKEEPER, Reading, Remark, ZookeeperImage


def zookeeper_fields(known: ZookeeperImage) -> dict[str, Any]:
    """The fields of an image's single znodes."""
    return {
        "held": list(known.held.values()),
        "remarks": dict(known.remarks.items()),
        "peaks": dict(known.peaks.items()),
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
        remarks=_remarks(fields["remarks"]),
        peaks=Map(fields["peaks"]),
        erased=Map(fields["erased"]),
        reading=fields["reading"],
        zxid=fields["zxid"],
    )


def reading_fields(reading: Reading | None) -> dict[str, Any] | None:
    """The fields of a reading that goes on, without its brokers."""
    if reading is None:
        return None
    return {
        "serial": reading.serial,
        "name": reading.name,
        "next_index": reading.next_index,
        "held": list(reading.held.values()),
        "remarks": dict(reading.remarks.items()),
    }


def reading_of(fields: Mapping[str, Any] | None, nodes: NodesImage) -> Reading | None:
    """The reading that fields hold, with the brokers that their rows hold."""
    if fields is None:
        return None
    return Reading(
        serial=fields["serial"],
        name=fields["name"],
        next_index=fields["next_index"],
        nodes=nodes,
        held=_held(fields["held"]),
        remarks=_remarks(fields["remarks"]),
    )


def _held(items: list[dict[str, Any]]) -> Map[str, Znode]:
    znodes = map(a_znode, items)
    return Map({znode.path: znode for znode in znodes})


def _remarks(fields: Mapping[str, dict[str, Any]]) -> Map[str, Remark]:
    return Map({path: Remark(**found) for path, found in fields.items()})
