"""The requests of a controller to brokers, as values: LeaderAndIsr, UpdateMetadata, StopReplica.

The fields are those of Kafka's schemas in the newest version; a codec leaves out what an older
version has not.
"""

from dataclasses import dataclass

from featurewatch.controller.partitions.assignment import TopicPartition


@dataclass(frozen=True, slots=True)
class LeaderAndIsrState:
    """A partition in a LeaderAndIsr request.

    ``controller_epoch`` is that of the controller that wrote the state, which may be older than the
    request's; ``is_new``: the broker may create the replica.
    """

    partition: TopicPartition
    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    is_new: bool
    recovering: bool


@dataclass(frozen=True, slots=True)
class LeaderAndIsrRequest:
    """Makes a broker the leader or a follower of partitions.

    ``leaders`` are the live brokers that lead one of them.
    """

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    states: tuple[LeaderAndIsrState, ...]
    leaders: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MetadataState:
    """A partition in an UpdateMetadata request; ``offline`` are the replicas that cannot be used.

    The leader is -2 if the topic is being deleted.
    """

    partition: TopicPartition
    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    replicas: tuple[int, ...]
    offline: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class UpdateMetadataRequest:
    """Informs a broker of the live brokers, and of partitions; all partitions may be none."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    states: tuple[MetadataState, ...]
    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StopReplicaState:
    """A partition in a StopReplica request.

    The leader epoch is -2 if the topic is being deleted, and -1 if there is none.
    """

    partition: TopicPartition
    leader_epoch: int
    deletes: bool


@dataclass(frozen=True, slots=True)
class StopReplicaRequest:
    """Stops replicas on a broker, and deletes those with ``deletes``."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    states: tuple[StopReplicaState, ...]


BrokerRequest = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest


@dataclass(frozen=True, slots=True)
class SendBrokerRequest:
    """An effect: send a request to a broker, after all earlier ones to the same broker.

    It is repeated until the broker responds or its znode is gone.
    """

    broker_id: int
    request: BrokerRequest
