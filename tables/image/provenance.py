"""Where a piece of knowledge comes from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from featurewatch.streams.types import NodeId, Role
from featurewatch.streams.znodes import Znode


@dataclass(frozen=True, slots=True, order=True)
class LogProvenance:
    """A place in the metadata log: the last offset taken in, its leader epoch, its append time.

    The analogue of Kafka's ``MetadataProvenance``. What came by a snapshot has the last offset that
    the snapshot covers. ``append_ms`` is -1 where it is not known.
    """

    offset: int
    leader_epoch: int
    append_ms: int


@dataclass(frozen=True, slots=True)
class AnswerProvenance:
    """An ApiVersions answer: who gave it, under which epoch, and when it was heard."""

    role: Role
    node_id: NodeId
    epoch: int
    seen_ms: int


@dataclass(frozen=True, slots=True)
class ZnodeProvenance:
    """A znode as it was read: ``zxid`` is the transaction that last changed it (its mzxid).

    For levels that went with their znode, ``czxid`` and ``version`` are -1 and ``zxid`` is the
    newest transaction that the source knew of when it found the znode gone.
    """

    path: str
    czxid: int
    zxid: int
    version: int
    seen_ms: int

    def same_data(self, other: object) -> bool:
        """Whether the other is of the same version of the same life of the same znode."""
        return (
            isinstance(other, ZnodeProvenance)
            and (self.path, self.czxid) == (other.path, other.czxid)
            and self.version == other.version
        )


def znode_provenance(znode: Znode, seen_ms: int) -> ZnodeProvenance:
    """Where a znode's content comes from."""
    return ZnodeProvenance(znode.path, znode.czxid, znode.mzxid, znode.version, seen_ms)


Provenance = LogProvenance | AnswerProvenance | ZnodeProvenance


def provenance_to_row(provenance: Provenance) -> tuple[Any, ...]:
    """The fields of a provenance; their number tells its kind."""
    at = provenance
    if isinstance(at, LogProvenance):
        return at.offset, at.leader_epoch, at.append_ms
    if isinstance(at, ZnodeProvenance):
        return at.path, at.czxid, at.zxid, at.version, at.seen_ms
    return at.role, at.node_id, at.epoch, at.seen_ms


def provenance_from_row(row: Sequence[Any]) -> Provenance:
    """The provenance that a row's fields hold."""
    if len(row) == 3:
        return LogProvenance(*row)
    if len(row) == 5:
        return ZnodeProvenance(*row)
    role, *rest = row
    return AnswerProvenance(Role(role), *rest)


NO_PROVENANCE: Final = LogProvenance(offset=-1, leader_epoch=-1, append_ms=-1)
"""Nothing was taken in yet."""
