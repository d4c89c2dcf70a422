"""What is known from the metadata log beside levels and nodes: quorum, resync, unreadable."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from immutables import Map

from featurewatch.streams.types import FeatureLevel, FeatureName, NodeId
from featurewatch.tables.image.nodes import NO_NODES, NodesImage


@dataclass(frozen=True, slots=True)
class Quorum:
    """The controller quorum as its control records tell it (-1: not known)."""

    leader_id: int = -1
    leader_epoch: int = -1
    voters: tuple[NodeId, ...] = ()

    def to_row(self) -> dict[str, Any]:
        """Its fields."""
        return {
            "leader_id": self.leader_id,
            "leader_epoch": self.leader_epoch,
            "voters": self.voters,
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """The quorum that fields hold."""
        return cls(row["leader_id"], row["leader_epoch"], tuple(row["voters"]))


NO_QUORUM: Final = Quorum()


@dataclass(frozen=True, slots=True)
class UnreadableRecords:
    """What could not be read of one kind: how often, and the first case."""

    count: int
    place: str
    reason: str

    def to_row(self) -> dict[str, Any]:
        """Its fields."""
        return {"count": self.count, "place": self.place, "reason": self.reason}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """What fields hold."""
        return cls(row["count"], row["place"], row["reason"])


Unreadable = Map[str, UnreadableRecords]
"""What could not be read, by kind: a type of records, ``SNAPSHOT`` or ``MESSAGE``."""


def count_unreadable(unreadable: Unreadable, kind: str, place: str, reason: str) -> Unreadable:
    """One more of a kind; place and reason of the first case stay."""
    first = unreadable.get(kind, UnreadableRecords(0, place, reason))
    return unreadable.set(kind, replace(first, count=first.count + 1))


def unreadable_to_row(unreadable: Unreadable) -> dict[str, Any]:
    """Their fields, by kind."""
    return {kind: records.to_row() for kind, records in unreadable.items()}


def unreadable_from_row(row: Mapping[str, Any]) -> Unreadable:
    """What fields hold, by kind."""
    return Map({kind: UnreadableRecords.from_row(records) for kind, records in row.items()})


@dataclass(frozen=True, slots=True)
class Resync:
    """The cluster being read anew, from a snapshot or from the start of a log that went backwards.

    It becomes the image at its end, so that what was known stays until then and only what really
    differs is a change. ``end_offset`` and ``leader_epoch`` name the snapshot (-1: the log itself)
    and ``next_index`` is the chunk that must come next. ``serial`` tells the rows of this resync
    from those of one before; it is no property of the cluster, and is left out of comparisons.
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
        """Whether it is the log that is read anew, up to its high watermark."""
        return self.end_offset < 0

    def to_row(self) -> dict[str, Any]:
        """The fields of a part of the cluster's row; its nodes have rows of their own."""
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
        """The resync that a part of the cluster's row holds, with its nodes."""
        return cls(
            serial=row["serial"],
            end_offset=row["end_offset"],
            leader_epoch=row["leader_epoch"],
            next_index=row["next_index"],
            levels=Map(row["levels"]),
            nodes=nodes,
            unreadable=unreadable_from_row(row["unreadable"]),
        )
