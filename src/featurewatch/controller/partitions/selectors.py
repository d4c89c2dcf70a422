"""The leader selectors of ZooKeeper mode: who leads a partition, its ISR, and who is informed.

Each selector is a function of one partition's lists and of the brokers that are alive. It returns
None if no replica can be elected. The released rules are ``PartitionLeaderElectionAlgorithms`` and
``Election`` of Kafka 3.9, where ties go to the first in the order of the assignment; those of the
document are Kafka Controller Internals with the tie rule of Kafka 0.8.1, the order of the ISR.
"""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Final, NamedTuple

from featurewatch.controller.partitions.assignment import ReplicaAssignment, without


@dataclass(frozen=True, slots=True)
class SelectorDialect:
    """One field for each difference between the document and released Kafka; ``name`` is the form.

    - ``ties_by_isr``: the first in the order of the ISR is elected; else of the assignment;
    - ``always_unclean``: a replica outside the ISR may lead wherever no ISR member is alive; else
      only where it is allowed;
    - ``reassigned_in_isr``, ``preferred_alive``, ``shutdown_alive``: the replica must also be in
      the ISR, or alive;
    - ``informs_stopping``: brokers that shut down are informed of the elections that replace them.
    """

    name: str
    ties_by_isr: bool
    always_unclean: bool
    reassigned_in_isr: bool
    preferred_alive: bool
    shutdown_alive: bool
    informs_stopping: bool


DOCUMENT_SELECTORS: Final = SelectorDialect(
    name="document",
    ties_by_isr=True,
    always_unclean=True,
    reassigned_in_isr=False,
    preferred_alive=False,
    shutdown_alive=False,
    informs_stopping=False,
)
RELEASED_SELECTORS: Final = SelectorDialect(
    name="released",
    ties_by_isr=False,
    always_unclean=False,
    reassigned_in_isr=True,
    preferred_alive=True,
    shutdown_alive=True,
    informs_stopping=True,
)


class ElectionInput(NamedTuple):
    """One partition as a selector sees it.

    ``live`` are the brokers whose replica is usable: registered, not shutting down, and with a
    working log directory. ``stopping`` are the brokers that shut down and are still there, with a
    working log directory.
    """

    assignment: ReplicaAssignment
    isr: tuple[int, ...]
    live: Set[int]
    stopping: Set[int] = frozenset()


class SelectedLeader(NamedTuple):
    """The result: the leader, the new ISR, and the replicas that get a LeaderAndIsr request."""

    leader: int
    isr: tuple[int, ...]
    receivers: tuple[int, ...]
    is_unclean: bool = False


def select_first(partition: ElectionInput) -> SelectedLeader | None:
    """The first leader of a new partition: the first live replica, with all live ones as ISR."""
    live = _within(partition.assignment.replicas, partition.live)
    return SelectedLeader(live[0], live, live) if live else None


def select_offline(
    dialect: SelectorDialect, partition: ElectionInput, *, allow_unclean: bool = False
) -> SelectedLeader | None:
    """The leader of a partition whose leader has died.

    A live member of the ISR; if none is alive and an unclean election is allowed, any live replica,
    which is the ISR from then on.
    """
    receivers = _within(partition.assignment.replicas, partition.live)
    leader = _first(dialect, partition, partition.live)
    if leader is not None:
        return SelectedLeader(leader, _within(partition.isr, partition.live), receivers)
    if receivers and (allow_unclean or dialect.always_unclean):
        return SelectedLeader(receivers[0], receivers[:1], receivers, is_unclean=True)
    return None


def select_reassigned(dialect: SelectorDialect, partition: ElectionInput) -> SelectedLeader | None:
    """The leader among the replicas that a reassignment keeps; the ISR stays as it is."""
    target = partition.assignment.target
    candidates = _within(target, partition.live)
    if dialect.reassigned_in_isr:
        candidates = _within(candidates, partition.isr)
    return SelectedLeader(candidates[0], partition.isr, target) if candidates else None


def select_preferred(dialect: SelectorDialect, partition: ElectionInput) -> SelectedLeader | None:
    """The first replica of the assignment, if it may lead; the ISR stays as it is."""
    replicas = partition.assignment.replicas
    if not replicas or replicas[0] not in partition.isr:
        return None
    if dialect.preferred_alive and replicas[0] not in partition.live:
        return None
    return SelectedLeader(replicas[0], partition.isr, replicas)


def select_controlled_shutdown(
    dialect: SelectorDialect, partition: ElectionInput, shutting_down: Set[int]
) -> SelectedLeader | None:
    """The leader in place of a broker that shuts down; the ISR loses all ``shutting_down``."""
    isr = without(partition.isr, shutting_down)
    present = partition.live | partition.stopping if dialect.shutdown_alive else {*partition.isr}
    leader = _first(dialect, partition, present - shutting_down)
    if leader is None:
        return None
    informed = partition.live | partition.stopping if dialect.informs_stopping else partition.live
    receivers = _within(partition.assignment.replicas, informed)
    return SelectedLeader(leader, isr, receivers)


def _first(dialect: SelectorDialect, partition: ElectionInput, usable: Set[int]) -> int | None:
    """The first usable member of the ISR, in the dialect's order."""
    replicas, isr = partition.assignment.replicas, partition.isr
    ordered = _within(isr, replicas) if dialect.ties_by_isr else _within(replicas, isr)
    return next((broker_id for broker_id in ordered if broker_id in usable), None)


def _within(broker_ids: Sequence[int], others: Iterable[int]) -> tuple[int, ...]:
    members = frozenset(others)
    return tuple(broker_id for broker_id in broker_ids if broker_id in members)
