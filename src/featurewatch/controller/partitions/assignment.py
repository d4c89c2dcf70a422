"""A partition, its replicas, and those that a reassignment adds and removes.

Follows ``kafka.controller.ReplicaAssignment`` of 3.9.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A partition of a topic; as text ``topic-number``."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


@dataclass(frozen=True, slots=True)
class ReplicaAssignment:
    """The broker ids of a partition, the preferred leader first.

    ``replicas`` includes ``adding`` and ``removing``, which are empty unless a reassignment runs.
    ``ordered_target`` is the target in its own order, where ``replicas`` has another one
    (`append`); no znode and no request has it.
    """

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    ordered_target: tuple[int, ...] = ()

    @property
    def is_being_reassigned(self) -> bool:
        """Whether a reassignment is unfinished."""
        return bool(self.adding or self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas before the reassignment, in the current order."""
        return without(self.replicas, self.adding)

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas after the reassignment."""
        return self.ordered_target or without(self.replicas, self.removing)

    def reassign_to(self, target: Sequence[int]) -> "ReplicaAssignment":
        """The assignment while this one moves to ``target``, whose members come first.

        The order of the replaced list is lost, so a reassignment that is canceled may leave
        another preferred leader.
        """
        origin = self.origin
        replicas = tuple(dict.fromkeys((*target, *origin)))
        return ReplicaAssignment(replicas, without(replicas, origin), without(replicas, target))

    def append(self, target: Sequence[int]) -> "ReplicaAssignment":
        """The assignment while this one moves to ``target``, as Kafka Controller Internals has it.

        OAR + RAR: the present replicas in their order, then what the target adds.
        """
        origin = self.origin
        replicas = (*origin, *without(target, origin))
        removing = without(origin, target)
        ordered = () if without(replicas, removing) == tuple(target) else tuple(target)
        return ReplicaAssignment(replicas, without(target, origin), removing, ordered)

    def remove(self, broker_id: int) -> "ReplicaAssignment":
        """The assignment without one replica, in whatever list it is."""
        removed = (broker_id,)
        return ReplicaAssignment(
            without(self.replicas, removed),
            without(self.adding, removed),
            without(self.removing, removed),
            without(self.ordered_target, removed),
        )

    def is_complete(self, isr: Iterable[int]) -> bool:
        """Whether nothing is left to wait for: the ISR has every replica of the target."""
        return {*self.target} <= {*isr}


def without(broker_ids: Iterable[int], removed: Iterable[int]) -> tuple[int, ...]:
    """The ids that are not removed, in their order."""
    excluded = frozenset(removed)
    return tuple(broker_id for broker_id in broker_ids if broker_id not in excluded)
