"""Topics as KIP-4's draft creates, changes, deletes, describes and lists them.

The controller's own operations do the work; this module turns the draft's requests into theirs. The
draft's description of a topic is read from the controller's memory.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.reference.zookeeper.kip4.codes import AdminRequestFailedError
from featurewatch.reference.zookeeper.kip4.controller_access import ControllerAccess
from featurewatch.reference.zookeeper.kip4.strings import parse_replica_assignment
from featurewatch.reference.zookeeper.machines.topics.context import ControllerContext
from featurewatch.reference.zookeeper.machines.topics.requests import (
    AlterConfigsRequest,
    ConfigChange,
    ConfigOperation,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    NewPartitions,
    NewTopic,
    ReassignRequest,
    TopicConfigsRequest,
    TopicConfigsResult,
    TopicRequest,
)

_MAX_VALUE_BYTES: Final = 0x7FFF
"""A string of the protocol has no more."""


class Kip4Config(NamedTuple):
    """A setting of a topic and its value."""

    key: str
    value: str


class Kip4Partition(NamedTuple):
    """A partition; ``leader`` None: it has none. ``isr`` is a part of ``replicas``."""

    number: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class Kip4Topic(NamedTuple):
    """A topic, with the settings that are its own."""

    name: str
    replication_factor: int
    configs: tuple[Kip4Config, ...]
    partitions: tuple[Kip4Partition, ...]


class Kip4TopicNames(NamedTuple):
    """All topics, in order: those that live, and those that are marked for deletion."""

    alive: tuple[str, ...]
    marked_for_deletion: tuple[str, ...]


class TopicCommandHelper:
    """Performs the draft's requests about topics.

    Every method raises `AdminRequestFailedError` and `NotControllerForAdminError`.
    """

    def __init__(self, controller: ControllerAccess) -> None:
        self._controller = controller

    async def create(
        self,
        name: str,
        partition_count: int | None,
        replication_factor: int | None,
        replica_assignment: str | None,
        configs: Sequence[Kip4Config],
    ) -> None:
        """Creates a topic, by the two numbers or by the replicas of each partition."""
        self._controller.context()
        settings: dict[str, str | None] = dict(configs)
        if len(settings) < len(configs):
            raise AdminRequestFailedError("A setting is given twice.")
        if replica_assignment is not None:
            if (partition_count, replication_factor) != (None, None):
                raise AdminRequestFailedError(
                    "Give either partitions and replicas or a replica assignment, not both."
                )
            replicas = parse_replica_assignment(replica_assignment)
            topic = NewTopic(name, assignments=dict(enumerate(replicas)), configs=settings)
        elif partition_count is None or replication_factor is None:
            raise AdminRequestFailedError("Give partitions and replicas, or a replica assignment.")
        else:
            # -1 would ask for defaults, which the draft has not.
            if partition_count < 1:
                raise AdminRequestFailedError("Number of partitions must be larger than 0.")
            if replication_factor < 1:
                raise AdminRequestFailedError("Replication factor must be larger than 0.")
            topic = NewTopic(name, partition_count, replication_factor, configs=settings)
        await self._controller.perform(CreateTopicsRequest((topic,)))

    async def alter(
        self,
        name: str,
        partition_count: int | None,
        replica_assignment: str | None,
        added: Sequence[Kip4Config],
        deleted: Sequence[str],
    ) -> None:
        """Changes settings, adds partitions and moves replicas, after all of it was checked.

        ``replica_assignment`` has the replicas of all partitions from 0 on: partitions that exist
        with others are reassigned, partitions that do not exist are added.
        """
        self._check_alive(name)
        changes = _config_changes(added, deleted)
        replicas = (
            None if replica_assignment is None else parse_replica_assignment(replica_assignment)
        )
        added_partitions, targets = self._partition_changes(name, partition_count, replicas)
        if not (changes or added_partitions or replicas is not None):
            raise AdminRequestFailedError("The request changes nothing.")
        for validate_only in (True, False):
            requests: list[TopicRequest] = []
            if changes:
                requests.append(AlterConfigsRequest({name: changes}, validate_only))
            if added_partitions:
                requests.append(CreatePartitionsRequest((added_partitions,), validate_only))
            if targets:
                requests.append(ReassignRequest(targets, True, validate_only))
            for request in requests:
                await self._controller.perform(request)

    async def delete(self, name: str) -> None:
        """Marks a topic for deletion, and begins to delete it."""
        self._controller.context()
        await self._controller.perform(DeleteTopicsRequest((name,)))

    async def describe(self, name: str) -> Kip4Topic:
        """A topic as it is, whether it is marked for deletion or not."""
        self._existing(name)
        response = await self._controller.perform(TopicConfigsRequest((name,)))
        settings = response.configs.get(name) if isinstance(response, TopicConfigsResult) else None
        context = self._existing(name)
        if settings is None:
            raise AdminRequestFailedError(f"The settings of topic '{name}' cannot be read.")
        if any(len(text.encode()) > _MAX_VALUE_BYTES for pair in settings.items() for text in pair):
            raise AdminRequestFailedError(f"A setting of topic '{name}' is too long to be sent.")
        partitions = sorted(context.partitions_of(name))
        return Kip4Topic(
            name,
            len(context.assignment(partitions[0]).origin) if partitions else 0,
            tuple(Kip4Config(key, value) for key, value in sorted(settings.items())),
            tuple(_details(context, partition) for partition in partitions),
        )

    def list(self) -> Kip4TopicNames:
        """The names of all topics."""
        context = self._controller.context()
        marked = context.queued_deletions & context.topics
        return Kip4TopicNames(tuple(sorted(context.topics - marked)), tuple(sorted(marked)))

    def _existing(self, name: str) -> ControllerContext:
        context = self._controller.context()
        if name not in context.topics:
            raise AdminRequestFailedError(f"The topic '{name}' does not exist.")
        return context

    def _check_alive(self, name: str) -> None:
        if name in self._existing(name).queued_deletions:
            raise AdminRequestFailedError("The topic is queued for deletion.")

    def _partition_changes(
        self,
        name: str,
        partition_count: int | None,
        replicas: tuple[tuple[int, ...], ...] | None,
    ) -> tuple[NewPartitions | None, dict[TopicPartition, tuple[int, ...] | None]]:
        """The partitions to add to a topic, and the targets of those that move."""
        if replicas is None:
            if partition_count is None:
                return None, {}
            return NewPartitions(name, partition_count), {}
        if partition_count not in (None, len(replicas)):
            raise AdminRequestFailedError(
                f"The replica assignment has {len(replicas)} partitions, and "
                f"{partition_count} are requested."
            )
        context = self._controller.context()
        present = sorted(context.partitions_of(name))
        targets: dict[TopicPartition, tuple[int, ...] | None] = {
            partition: target
            for partition, target in zip(present, replicas, strict=False)
            if context.assignment(partition).target != target
        }
        if len(replicas) == len(present):
            return None, targets
        # With too few lists the controller gives its reason, since a topic never shrinks.
        return NewPartitions(name, len(replicas), replicas[len(present) :]), targets


def _config_changes(
    added: Sequence[Kip4Config], deleted: Sequence[str]
) -> tuple[ConfigChange, ...]:
    """The changes of settings; a deleted one has its default again."""
    keys = [*(pair.key for pair in added), *deleted]
    if len({*keys}) < len(keys):
        raise AdminRequestFailedError("A setting is given twice.")
    return (
        *(ConfigChange(pair.key, ConfigOperation.SET, pair.value) for pair in added),
        *(ConfigChange(key, ConfigOperation.DELETE, None) for key in deleted),
    )


def _details(context: ControllerContext, partition: TopicPartition) -> Kip4Partition:
    replicas = context.assignment(partition).replicas
    leadership = context.leaderships.get(partition)
    if leadership is None:
        return Kip4Partition(partition.number, None, replicas, ())
    leader = leadership.leader if leadership.leader in context.brokers else None
    isr = tuple(broker_id for broker_id in leadership.isr if broker_id in replicas)
    return Kip4Partition(partition.number, leader, replicas, isr)
