"""The provenance of nodes and levels: the log position, response or znode they come from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from featurewatch.streams.types import NodeId, Role
from featurewatch.streams.znodes import Znode


@dataclass(frozen=True, slots=True, order=True)
class LogProvenance:
    """A position in the metadata log: the last applied offset, its leader epoch and append time.

    The analogue of Kafka's ``MetadataProvenance``. For a snapshot, ``offset`` is the last offset
    that it covers. ``append_ms`` is milliseconds since the Unix epoch (-1: unknown).
    """

    offset: int
    leader_epoch: int
    append_ms: int


@dataclass(frozen=True, slots=True)
class AnswerProvenance:
    """An ApiVersions response: the node, its features epoch, and when the response was received."""

    role: Role
    node_id: NodeId
    epoch: int
    seen_ms: int


@dataclass(frozen=True, slots=True)
class ZnodeProvenance:
    """A znode as it was read: ``zxid`` is the transaction that last changed it (its mzxid).

    For levels that were removed with their znode, ``czxid`` and ``version`` are -1 and ``zxid`` is
    the source's newest transaction when it noticed the deletion.
    """

    path: str
    czxid: int
    zxid: int
    version: int
    seen_ms: int

    def same_data(self, other: object) -> bool:
        """Whether the other has the same version of the same znode, not deleted in between."""
        return (
            isinstance(other, ZnodeProvenance)
            and (self.path, self.czxid) == (other.path, other.czxid)
            and self.version == other.version
        )


def znode_provenance(znode: Znode, seen_ms: int) -> ZnodeProvenance:
    """The provenance of a znode's content."""
    return ZnodeProvenance(znode.path, znode.czxid, znode.mzxid, znode.version, seen_ms)


Provenance = LogProvenance | AnswerProvenance | ZnodeProvenance


def provenance_to_row(provenance: Provenance) -> tuple[Any, ...]:
    """The fields of a provenance in a row; their number determines its class."""
    if isinstance(provenance, LogProvenance):
        return provenance.offset, provenance.leader_epoch, provenance.append_ms
    if isinstance(provenance, ZnodeProvenance):
        return (
            provenance.path,
            provenance.czxid,
            provenance.zxid,
            provenance.version,
            provenance.seen_ms,
        )
    return provenance.role, provenance.node_id, provenance.epoch, provenance.seen_ms


def provenance_from_row(row: Sequence[Any]) -> Provenance:
    """The provenance that a row's fields hold."""
    if len(row) == 3:
        return LogProvenance(*row)
    if len(row) == 5:
        return ZnodeProvenance(*row)
    role, *rest = row
    return AnswerProvenance(Role(role), *rest)


NO_PROVENANCE: Final = LogProvenance(offset=-1, leader_epoch=-1, append_ms=-1)
"""The provenance before any event was applied."""
