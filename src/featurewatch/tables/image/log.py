"""The metadata log's part of an image beside levels and nodes: position, quorum, resync."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

from immutables import Map

from featurewatch.streams.types import FeatureLevel, FeatureName, NodeId
from featurewatch.tables.image.nodes import NO_NODES, NodeChanges, NodesImage
from featurewatch.tables.image.provenance import (
    NO_PROVENANCE,
    LogProvenance,
    provenance_to_row,
)
from featurewatch.tables.image.sources import Unreadable, unreadable_from_row, unreadable_to_row


class Voter(NamedTuple):
    """A voter of a ``VotersRecord`` (KIP-853).

    ``directory_id`` is the id of the directory with its log, as Kafka prints it; ``endpoints`` are
    ``name://host:port``.
    """

    node_id: NodeId
    directory_id: str
    endpoints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Quorum:
    """The controller quorum as its control records describe it (-1: unknown).

    ``voters`` are the ids of its voters. ``members`` are the same voters where the log has them, by
    id: it is empty while they are static (kraft.version 0), and where an older featurewatch has
    stored the image.
    """

    leader_id: int = -1
    leader_epoch: int = -1
    voters: tuple[NodeId, ...] = ()
    members: tuple[Voter, ...] = ()

    def to_row(self) -> dict[str, Any]:
        """The fields of a row."""
        return {
            "leader_id": self.leader_id,
            "leader_epoch": self.leader_epoch,
            "voters": self.voters,
            **({"members": [*map(tuple, self.members)]} if self.members else {}),
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """The quorum that a row's fields hold."""
        members = tuple(
            Voter(node_id, directory_id, tuple(endpoints))
            for node_id, directory_id, endpoints in row.get("members", ())
        )
        return cls(row["leader_id"], row["leader_epoch"], tuple(row["voters"]), members)


NO_QUORUM: Final = Quorum()


@dataclass(frozen=True, slots=True)
class Resync:
    """A resync of the cluster from a snapshot, or from the start of a log that went backwards.

    It replaces the image's nodes and levels when it ends, so that the old ones stay until then and
    only real differences count as changes. ``end_offset`` and ``leader_epoch`` are the snapshot's
    id (-1: the log itself); ``next_index`` is the expected chunk. With ``continues``, the log after
    the snapshot belongs to the resync too. ``provenance`` is the last applied position. ``serial``
    separates the rows of this resync from those of an earlier one; it is no property of the
    cluster, so comparisons ignore it.
    """

    serial: int = field(compare=False)
    end_offset: int = -1
    leader_epoch: int = -1
    next_index: int = 0
    levels: Map[FeatureName, FeatureLevel] = field(default_factory=Map)
    nodes: NodesImage = NO_NODES
    unreadable: Unreadable = field(default_factory=Map)
    provenance: LogProvenance = NO_PROVENANCE
    quorum: Quorum = NO_QUORUM
    migration: int = 0
    gap: str = ""
    continues: bool = False

    @property
    def reads_log(self) -> bool:
        """Whether the resync reads the log itself, up to its high watermark."""
        return self.end_offset < 0

    def to_row(self) -> dict[str, Any]:
        """The fields in the cluster's row; the nodes have separate rows."""
        return {
            "serial": self.serial,
            "end_offset": self.end_offset,
            "leader_epoch": self.leader_epoch,
            "next_index": self.next_index,
            "levels": dict(self.levels.items()),
            "unreadable": unreadable_to_row(self.unreadable),
            "provenance": provenance_to_row(self.provenance),
            "quorum": self.quorum.to_row(),
            "migration": self.migration,
            "gap": self.gap,
            "continues": self.continues,
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
            provenance=LogProvenance(*row["provenance"]),
            quorum=Quorum.from_row(row["quorum"]),
            migration=row["migration"],
            gap=row["gap"],
            continues=row["continues"],
        )


@dataclass(frozen=True, slots=True)
class LogImage:
    """The metadata log of a cluster.

    ``provenance`` is the last applied position, ``max_offset`` the highest applied offset: they
    differ from when the log went backwards until it is followed at its end again. ``migration`` is
    the log's ZkMigrationState. ``gap`` is the reason of a gap that no snapshot has filled yet
    (empty: no gap).
    """

    provenance: LogProvenance = NO_PROVENANCE
    max_offset: int = -1
    quorum: Quorum = NO_QUORUM
    migration: int = 0
    gap: str = ""
    resync: Resync | None = None

    @property
    def went_back(self) -> bool:
        """Whether the log went backwards and is not followed at its end again."""
        return self.provenance.offset < self.max_offset

    @property
    def resync_nodes(self) -> NodesImage:
        """The nodes of the resync in progress; empty without one."""
        return NO_NODES if self.resync is None else self.resync.nodes

    def to_row(self) -> dict[str, Any]:
        """The fields in the cluster's row; the nodes of a resync have separate rows."""
        return {
            "provenance": provenance_to_row(self.provenance),
            "max_offset": self.max_offset,
            "quorum": self.quorum.to_row(),
            "migration": self.migration,
            "gap": self.gap,
            "resync": self.resync and self.resync.to_row(),
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any], resync_nodes: NodesImage) -> Self:
        """The part of the image that these fields and the rows of a resync's nodes hold."""
        resync = row["resync"]
        return cls(
            provenance=LogProvenance(*row["provenance"]),
            max_offset=row["max_offset"],
            quorum=Quorum.from_row(row["quorum"]),
            migration=row["migration"],
            gap=row["gap"],
            resync=resync and Resync.from_row(resync, resync_nodes),
        )


NO_LOG: Final = LogImage()


@dataclass(frozen=True, slots=True)
class LogDelta:
    """Changes of an event to a `LogImage`, among the nodes of the resync in progress."""

    resync_nodes: NodeChanges = field(default_factory=dict)


LOG_UNCHANGED: Final = LogDelta()
