"""The state of a preferred election, by what the cluster shows; pure."""

from collections.abc import Container, Sequence
from enum import IntEnum


class ElectionStatus(IntEnum):
    """The state of a preferred election, with the numbers of KIP-4's reassignments."""

    FAILED = -1
    """The preferred replica cannot lead: it is not in sync or not running, or there is no such
    partition."""
    IN_PROGRESS = 0
    """The preferred replica is running and in sync, and does not lead yet."""
    COMPLETED = 1


def election_status(
    leader: int | None, replicas: Sequence[int], isr: Container[int], running: Container[int]
) -> ElectionStatus:
    """Returns the state of the election of one partition (KIP-4: the head of the list leads).

    ``leader`` is None if the partition has none, and ``running`` are the brokers of the cluster.
    The last member stays in the ISR when its broker dies, and cannot be elected then.
    """
    if not replicas:
        return ElectionStatus.FAILED
    preferred = replicas[0]
    if leader == preferred:
        return ElectionStatus.COMPLETED
    can_lead = preferred in isr and preferred in running
    return ElectionStatus.IN_PROGRESS if can_lead else ElectionStatus.FAILED
