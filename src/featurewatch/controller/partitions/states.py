"""The states of partitions and replicas, and which state may follow which.

A table maps a target state to the states that may precede it, in the order in which Kafka prints
them (``kafka.controller.PartitionState`` and ``ReplicaState`` of 3.9; Kafka Controller Internals).
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeVar


class PartitionState(StrEnum):
    """The state of a partition in the controller's memory."""

    NEW = "NewPartition"
    """It has assigned replicas, and no leader and no ISR yet."""
    ONLINE = "OnlinePartition"
    """A leader is elected."""
    OFFLINE = "OfflinePartition"
    """A leader was elected once and has died."""
    NON_EXISTENT = "NonExistentPartition"
    """It was never created, or was created and then deleted."""

    @property
    def number(self) -> int:
        """The number that Kafka reports in its metrics, from 0."""
        return [*PartitionState].index(self)


class ReplicaState(StrEnum):
    """The state of a replica in the controller's memory; the document has only four of them."""

    NEW = "NewReplica"
    """Created with its topic or by a reassignment; it may only become a follower."""
    ONLINE = "OnlineReplica"
    """Started, and one of the assigned replicas; it may become leader or follower."""
    OFFLINE = "OfflineReplica"
    """Its broker or its log directory has failed."""
    DELETION_STARTED = "ReplicaDeletionStarted"
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"
    """It cannot be deleted now; at the start of a controller, every replica of a dead broker."""
    NON_EXISTENT = "NonExistentReplica"
    """It is deleted, or was never created."""

    @property
    def number(self) -> int:
        """The number that Kafka reports in its metrics, from 1."""
        return 1 + [*ReplicaState].index(self)


PartitionTransitions = Mapping[PartitionState, tuple[PartitionState, ...]]
ReplicaTransitions = Mapping[ReplicaState, tuple[ReplicaState, ...]]

_P, _R = PartitionState, ReplicaState

DOCUMENT_PARTITIONS: Final[PartitionTransitions] = {
    _P.NEW: (_P.NON_EXISTENT,),
    _P.ONLINE: (_P.NEW, _P.ONLINE, _P.OFFLINE),
    _P.OFFLINE: (_P.NEW, _P.ONLINE),
    _P.NON_EXISTENT: (_P.OFFLINE,),
}
"""The seven transitions of Kafka Controller Internals."""

RELEASED_PARTITIONS: Final[PartitionTransitions] = {
    **DOCUMENT_PARTITIONS,
    _P.OFFLINE: (_P.NEW, _P.ONLINE, _P.OFFLINE),
}
"""The eight transitions of released Kafka."""

DOCUMENT_REPLICAS: Final[ReplicaTransitions] = {
    _R.NEW: (_R.NON_EXISTENT,),
    _R.ONLINE: (_R.NEW, _R.ONLINE, _R.OFFLINE),
    _R.OFFLINE: (_R.NEW, _R.ONLINE),
    _R.NON_EXISTENT: (_R.OFFLINE,),
}
"""The seven transitions of Kafka Controller Internals; its states are the keys."""

RELEASED_REPLICAS: Final[ReplicaTransitions] = {
    _R.NEW: (_R.NON_EXISTENT,),
    _R.ONLINE: (_R.NEW, _R.ONLINE, _R.OFFLINE, _R.DELETION_INELIGIBLE),
    _R.OFFLINE: (_R.NEW, _R.ONLINE, _R.OFFLINE, _R.DELETION_INELIGIBLE),
    _R.DELETION_STARTED: (_R.OFFLINE,),
    _R.DELETION_SUCCESSFUL: (_R.DELETION_STARTED,),
    _R.DELETION_INELIGIBLE: (_R.OFFLINE, _R.DELETION_STARTED),
    _R.NON_EXISTENT: (_R.DELETION_SUCCESSFUL,),
}
"""The fourteen transitions of released Kafka."""

_State = TypeVar("_State", PartitionState, ReplicaState)


def invalid_transition(
    subject: str, transitions: Mapping[_State, tuple[_State, ...]], state: _State, target: _State
) -> str | None:
    """Why ``subject`` cannot go from ``state`` to ``target``, as Kafka logs it; None if it can."""
    valid = transitions.get(target, ())
    if state in valid:
        return None
    return (
        f"{subject} should be in one of {','.join(valid)} states before moving to {target} state."
        f" Instead it is in {state} state"
    )
