"""Brokers and administrators of a simulated cluster, as what they ask of controllers."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from featurewatch.reference.kraft.machines.controller.requests import (
    AllocateProducerIds,
    AlterPartition,
    AlterPartitionData,
    AlterPartitionReassignments,
    AlterPartitionTopic,
    BrokerHeartbeat,
    BrokerHeartbeatResponse,
    BrokerRegistration,
    BrokerRegistrationResponse,
    BrokerState,
    ControllerRequest,
    ControllerResponse,
    CreatableTopic,
    CreateTopics,
    DeleteTopics,
    DeleteTopicState,
    FeatureUpdate,
    ReassignablePartition,
    ReassignableTopic,
    UnregisterBroker,
    UpdateFeatures,
)
from featurewatch.reference.kraft.machines.metadata.state import Feature, Listener, MetadataState
from tests.reference.kraft.machines.controller.driven import uuid
from tests.simulation.kraft.process import CLUSTER

FEATURES = (Feature("metadata.version", 1, 30), Feature("kraft.version", 0, 1))
_GONE = 77
"""STALE_BROKER_EPOCH: it must register again."""


@dataclass(slots=True)
class SimulatedBroker:
    """A broker: it registers, sends heartbeats, and changes the ISRs that it leads."""

    broker_id: int
    incarnation: int
    epoch: int = -1
    stops: bool = False

    def requests(
        self, random: Random, end: int, state: MetadataState
    ) -> Iterator[ControllerRequest]:
        """What it asks now; ``end`` is the end of the log that it has applied."""
        if self.epoch < 0:
            yield BrokerRegistration(
                self.broker_id,
                CLUSTER,
                uuid(self.incarnation),
                (Listener("PLAINTEXT", "simulated", 9000 + self.broker_id),),
                FEATURES,
                log_dirs=(uuid(500 + self.broker_id),),
            )
            return
        wants_fence = random.random() < 0.03
        yield BrokerHeartbeat(self.broker_id, self.epoch, end - 1, wants_fence, self.stops)
        if random.random() < 0.2:
            yield AllocateProducerIds(self.broker_id, self.epoch)
        if random.random() < 0.5 and (altered := self._altered(random, state)):
            yield AlterPartition(self.broker_id, self.epoch, altered)

    def _altered(self, random: Random, state: MetadataState) -> tuple[AlterPartitionTopic, ...]:
        led = [key for key, one in sorted(state.partitions.items()) if one.leader == self.broker_id]
        if not led:
            return ()
        key = random.choice(led)
        partition = state.partitions[key]
        others = [one for one in partition.replicas if one != self.broker_id]
        isr = (self.broker_id, *random.sample(others, random.randint(0, len(others))))
        members = tuple(BrokerState(one) for one in isr)
        data = AlterPartitionData(
            key[1], partition.leader_epoch, members, partition.partition_epoch
        )
        return (AlterPartitionTopic(key[0], (data,)),)

    def on_answer(self, response: ControllerResponse) -> None:
        """Takes over its epoch; starts again when it was told that it is not registered."""
        match response:
            case BrokerRegistrationResponse(0, epoch):
                self.epoch = epoch
            case BrokerHeartbeatResponse(error_code) if error_code == _GONE:
                self.epoch = -1
            case BrokerHeartbeatResponse(should_shut_down=True):
                self.restart()

    def restart(self) -> None:
        """Ends and begins again, as another life."""
        self.incarnation += 100
        self.epoch, self.stops = -1, False


def administration(random: Random, levels: tuple[int, int], *, is_kip: bool) -> ControllerRequest:
    """Something that an administrator asks."""
    chance, name = random.random(), f"topic-{random.randint(0, 5)}"
    if chance < 0.45:
        return CreateTopics((CreatableTopic(name, random.randint(1, 3), random.randint(1, 3)),))
    if chance < 0.55:
        return DeleteTopics((DeleteTopicState(name),))
    if chance < 0.65:
        replicas = tuple(random.sample((1, 2, 3), random.randint(1, 3)))
        moved = ReassignablePartition(0, random.choice((replicas, replicas, None)))
        return AlterPartitionReassignments((ReassignableTopic(name, (moved,)),))
    if chance < 0.95:
        kind = random.choice((0, 1, 2) if is_kip else (1, 2))
        level = random.randint(*levels)
        return UpdateFeatures((FeatureUpdate("metadata.version", level, upgrade_type=kind),))
    return UnregisterBroker(random.randint(1, 3))
