"""Bugs in controllers of topics and their brokers, each of which the auditor must notice."""

from typing import Any

from featurewatch.controller.partitions import selectors
from featurewatch.reference.zookeeper.machines.replicas.light_replicas import LightReplicas
from featurewatch.reference.zookeeper.machines.task_queue import Task
from featurewatch.reference.zookeeper.machines.topics.context import PartitionLeadership
from featurewatch.reference.zookeeper.machines.topics.state_store import (
    FencedWriter,
    PartitionStateStore,
    StateUpdates,
)
from tests.simulation.reference import node


def nothing(*_: Any, **__: Any) -> Task[None]:
    """Does nothing."""
    yield from ()


def unfenced(_: FencedWriter, operations: list[Any]) -> Task[list[Any]]:
    """Writes without the fence."""
    return [*(yield tuple(operations))]


def same_epoch(
    state: PartitionLeadership,
    leader: int,
    isr: tuple[int, ...],
    controller_epoch: int,
    *,
    recovering: bool,
) -> PartitionLeadership:
    """The next state, with the same leader epoch."""
    return PartitionLeadership(
        leader, isr, state.leader_epoch, controller_epoch, state.partition_epoch, recovering
    )


def unclean(dialect: Any, partition: Any, *, allow_unclean: bool = False) -> Any:
    """Elects any live replica."""
    del allow_unclean
    return selectors.select_offline(dialect, partition, allow_unclean=True)


def lower_epoch(
    state: PartitionLeadership,
    leader: int,
    isr: tuple[int, ...],
    controller_epoch: int,
    *,
    recovering: bool,
) -> PartitionLeadership:
    """The next state, with a lower leader epoch."""
    epoch = state.leader_epoch - 1
    return PartitionLeadership(
        leader, isr, epoch, controller_epoch, state.partition_epoch, recovering
    )


def empty_isr(
    state: PartitionLeadership,
    leader: int,
    isr: tuple[int, ...],
    controller_epoch: int,
    *,
    recovering: bool,
) -> PartitionLeadership:
    """The next state, without an ISR."""
    del isr
    return _CHANGED(state, leader, (), controller_epoch, recovering=recovering)


def isr_without_leader(
    state: PartitionLeadership,
    leader: int,
    isr: tuple[int, ...],
    controller_epoch: int,
    *,
    recovering: bool,
) -> PartitionLeadership:
    """The next state, with a leader outside the ISR."""
    isr = tuple(member for member in isr if member != leader) or isr
    return _CHANGED(state, leader, isr, controller_epoch, recovering=recovering)


def not_written(_: PartitionStateStore, leaderships: Any) -> Task[StateUpdates]:
    """States count as written that are only in memory."""
    yield from ()
    return StateUpdates(dict(leaderships), [])


def accepts_all(self: LightReplicas, request: Any) -> Any:
    """Accepts requests of any controller."""
    self.controller_epoch = 0
    return _RECEIVE(self, request)


_CHANGED = PartitionLeadership.changed
_RECEIVE = LightReplicas.receive
_SEND = node.Channels.send


def lossy(self: node.Channels, broker_id: int, request: Any) -> None:
    """Loses the requests to broker 1 that name partitions."""
    if broker_id != 1 or not getattr(request, "states", ()):
        _SEND(self, broker_id, request)
