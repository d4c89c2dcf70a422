"""Where a piece of knowledge comes from."""

from dataclasses import dataclass
from typing import Final

from streams.types import NodeId, Role


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


Provenance = LogProvenance | AnswerProvenance

NOWHERE: Final = LogProvenance(offset=-1, leader_epoch=-1, append_ms=-1)
"""Nothing was taken in yet."""
