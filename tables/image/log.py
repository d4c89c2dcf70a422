"""The metadata log's part of an image beside levels and nodes: quorum, resync, unreadable."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from immutables import Map

from featurewatch.streams.codec.bounds import shorten
from featurewatch.streams.types import FeatureLevel, FeatureName, NodeId
from featurewatch.tables.image.nodes import NO_NODES, NodesImage


@dataclass(frozen=True, slots=True)
class Quorum:
    """The controller quorum as its control records describe it (-1: unknown)."""

    leader_id: int = -1
    leader_epoch: int = -1
    voters: tuple[NodeId, ...] = ()

    def to_row(self) -> dict[str, Any]:
        """The fields of a row."""
        return {
            "leader_id": self.leader_id,
            "leader_epoch": self.leader_epoch,
            "voters": self.voters,
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """The quorum that a row's fields hold."""
        return cls(row["leader_id"], row["leader_epoch"], tuple(row["voters"]))


NO_QUORUM: Final = Quorum()


@dataclass(frozen=True, slots=True)
class UnreadableRecords:
    """The unreadable records of one kind: their number, and location and reason of the first."""

    count: int
    place: str
    reason: str

    def to_row(self) -> dict[str, Any]:
        """The fields of a row."""
        return {"count": self.count, "place": self.place, "reason": self.reason}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """The unreadable records that a row's fields hold."""
        return cls(row["count"], row["place"], row["reason"])


Unreadable = Map[str, UnreadableRecords]
"""Unreadable records by kind: a record type, ``SNAPSHOT``, ``MESSAGE``, ``ZNODES`` or `LOST`."""


LOST: Final = "LOST"
"""The kind of the messages that the bus lost before they were read."""


def count_unreadable(unreadable: Unreadable, kind: str, place: str, reason: str) -> Unreadable:
    """Counts one more of a kind; location and reason of the first one stay."""
    first = unreadable.get(kind, UnreadableRecords(0, place, shorten(reason)))
    return unreadable.set(kind, replace(first, count=first.count + 1))


def unreadable_to_row(unreadable: Unreadable) -> dict[str, Any]:
    """The fields of a row, by kind."""
    return {kind: records.to_row() for kind, records in unreadable.items()}


def unreadable_from_row(row: Mapping[str, Any]) -> Unreadable:
    """The unreadable records that a row's fields hold, by kind."""
    return Map({kind: UnreadableRecords.from_row(records) for kind, records in row.items()})


@dataclass(frozen=True, slots=True)
class Resync:
    """A resync of the cluster from a snapshot, or from the start of a log that went backwards.

    It replaces the image's nodes and levels when it ends, so that the old ones stay until then and
    only real differences count as changes. ``end_offset`` and ``leader_epoch`` are the snapshot's
    id (-1: the log itself); ``next_index`` is the expected chunk. ``serial`` separates the rows of
    this resync from those of an earlier one; it is no property of the cluster, so comparisons
    ignore it.
    """

    serial: int = field(compare=False)
    end_offset: int = -1
    leader_epoch: int = -1
    next_index: int = 0
    levels: Map[FeatureName, FeatureLevel] = field(default_factory=Map)
    nodes: NodesImage = NO_NODES
    unreadable: Unreadable = field(default_factory=Map)

    @property
    def reads_log(self) -> bool:
        """Whether the resync reads the log itself, up to its high watermark."""
        return self.end_offset < 0

    def to_row(self) -> dict[str, Any]:
        """The fields in the cluster's row; the nodes have rows of their own."""
        return {
            "serial": self.serial,
            "end_offset": self.end_offset,
            "leader_epoch": self.leader_epoch,
            "next_index": self.next_index,
            "levels": dict(self.levels.items()),
            "unreadable": unreadable_to_row(self.unreadable),
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any], nodes: NodesImage) -> Self:
        """The resync that these fields and its rows of nodes hold."""
        return cls(
            serial=row["serial"],
            end_offset=row["end_offset"],
            leader_epoch=row["leader_epoch"],
            next_index=row["next_index"],
            levels=Map(row["levels"]),
            nodes=nodes,
            unreadable=unreadable_from_row(row["unreadable"]),
        )
