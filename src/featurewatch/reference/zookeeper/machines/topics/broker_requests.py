"""The requests of a controller to brokers, as values: LeaderAndIsr, UpdateMetadata, StopReplica.

The fields are those of Kafka's schemas in the newest version; a codec leaves out what an older
version has not. Errors in the responses are codes of Kafka's ``Errors``, whichever a broker sends.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.reference.zookeeper.machines.encoding import Endpoint
from featurewatch.reference.zookeeper.machines.protocol import BrokerEffect, BrokerEvent
from featurewatch.reference.zookeeper.machines.topics.context import ClusterBroker


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

    ``leaders`` are the live brokers that lead one of them, ``topic_ids`` the ids of topics by name,
    ``endpoints`` the addresses of brokers; a leader without one is left out on the wire.
    """

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    states: tuple[LeaderAndIsrState, ...]
    leaders: tuple[int, ...]
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    endpoints: Mapping[int, Endpoint] = field(default_factory=dict)


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
    """Informs a broker of the live brokers, and of partitions, if any.

    ``topic_ids`` and ``endpoints`` as in `LeaderAndIsrRequest`.
    """

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    states: tuple[MetadataState, ...]
    brokers: tuple[int, ...]
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    endpoints: Mapping[int, Endpoint] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StopReplicaState:
    """A partition in a StopReplica request.

    The leader epoch is -2 if the topic is being deleted, and -1 if it is not known.
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
class SetLiveBrokers(BrokerEffect):
    """Keep a channel to each of these brokers and to no other; what was queued for others is lost.

    It comes before the requests that follow from the change; a deposed controller has no brokers.
    """

    brokers: Mapping[int, ClusterBroker]


@dataclass(frozen=True, slots=True)
class SendBrokerRequest(BrokerEffect):
    """An effect: send a request to a broker, after all earlier ones to the same broker.

    It is repeated until the broker responds or its znode is deleted.
    """

    broker_id: int
    request: BrokerRequest


@dataclass(frozen=True, slots=True)
class LeaderAndIsrResponse:
    """The response to LeaderAndIsr: an error for all, and the error of each partition."""

    error: int = 0
    errors: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StopReplicaResponse:
    """The response to StopReplica: an error for all, and the error of each partition."""

    error: int = 0
    errors: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UpdateMetadataResponse:
    """The response to UpdateMetadata."""

    error: int = 0


BrokerResponse = LeaderAndIsrResponse | StopReplicaResponse | UpdateMetadataResponse


@dataclass(frozen=True, slots=True)
class BrokerResponded(BrokerEvent):
    """An event: a broker in ``broker_epoch`` has responded to a request."""

    broker_id: int
    broker_epoch: int
    request: BrokerRequest
    response: BrokerResponse


def deletion_errors(
    request: StopReplicaRequest, response: StopReplicaResponse
) -> dict[TopicPartition, int]:
    """The errors of the partitions that a request deletes.

    If the request as a whole has failed, each has its error. A partition that the response leaves
    out has none (``ControllerBrokerRequestBatch``).
    """
    return {
        state.partition: response.error or response.errors.get(state.partition, 0)
        for state in request.states
        if state.deletes
    }
