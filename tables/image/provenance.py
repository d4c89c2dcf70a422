"""Where a piece of knowledge comes from."""

from dataclasses import dataclass
from typing import Final

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

NO_PROVENANCE: Final = LogProvenance(offset=-1, leader_epoch=-1, append_ms=-1)
"""Nothing was taken in yet."""
