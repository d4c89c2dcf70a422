"""Requests and responses by chance, and the JSON form that Kafka's own converters give them."""

import base64
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.reference.zookeeper.machines.encoding import BrokerListener, Endpoint
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.machines.topics.broker_requests import (
    BrokerRequest,
    LeaderAndIsrRequest,
    LeaderAndIsrState,
    MetadataState,
    StopReplicaRequest,
    StopReplicaState,
    UpdateMetadataRequest,
)
from featurewatch.reference.zookeeper.machines.topics.context import PartitionLeadership
from featurewatch.reference.zookeeper.machines.topics.results import (
    AlterPartitionRequest,
    AlterPartitionResult,
    ControlledShutdownResult,
    PartitionResult,
    RequestedIsr,
)

Json = dict[str, Any]
ERRORS = (ErrorCode.NONE, ErrorCode.STALE_BROKER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR)

TOPICS = ("t", "orders", "ä€\U0001f600", "a" * 249, "__consumer_offsets")
INT32, INT64 = 2**31 - 1, 2**63 - 1
NO_ID = "A" * 22


class Chance(Random):
    """Values of Kafka's types, the outermost ones often enough."""

    def int32(self) -> int:
        """Any int32; mostly small."""
        return self.choice([-2, -1, 0, 1, self.randrange(1000), INT32, -INT32 - 1])

    def int64(self) -> int:
        """Any int64."""
        return self.choice([-1, 0, self.randrange(1 << 40), INT64, -INT64 - 1])

    def ids(self) -> tuple[int, ...]:
        """Some broker ids."""
        return tuple(self.sample(range(12), self.choice([0, 1, 2, 3, 3, 9])))

    def partitions(self) -> list[TopicPartition]:
        """Some partitions, topics mixed."""
        count = self.choice([0, 1, 3, 20, 200])
        numbers = (self.choice([0, 1, self.randrange(300), INT32]) for _ in range(count))
        return [*dict.fromkeys(TopicPartition(self.choice(TOPICS), number) for number in numbers)]

    def topic_ids(self) -> dict[str, str]:
        """The ids of most topics."""
        known = [topic for topic in TOPICS if self.random() < 0.9]
        return {
            topic: base64.urlsafe_b64encode(self.randbytes(16)).decode()[:22] for topic in known
        }

    def endpoints(self) -> dict[int, Endpoint]:
        """The addresses of most brokers."""
        return {broker_id: self.endpoint() for broker_id in range(12) if self.random() < 0.9}

    def endpoint(self) -> Endpoint:
        """One address, perhaps with listeners of other names."""
        listeners = tuple(
            BrokerListener(f"L{index}", f"l{index}.example", self.randrange(1, 65536), index)
            for index in range(self.choice([0, 0, 1, 4]))
        )
        host = self.choice(["h", "127.0.0.1", "2001:db8::1", "broker.example.org"])
        rack = self.choice([None, None, "", "r1", "ä"])
        return Endpoint(host, self.randrange(1, 65536), rack, listeners)


def random_request(seed: str) -> BrokerRequest:
    """One of the three requests of a controller."""
    chance = Chance(seed)
    header = (chance.int32(), chance.int32(), chance.int64())
    partitions = chance.partitions()
    match chance.randrange(3):
        case 0:
            states = tuple(
                LeaderAndIsrState(
                    partition,
                    chance.int32(),
                    chance.int32(),
                    chance.int32(),
                    chance.ids(),
                    chance.int32(),
                    chance.ids(),
                    chance.ids(),
                    chance.ids(),
                    is_new=chance.random() < 0.5,
                    recovering=chance.random() < 0.5,
                )
                for partition in partitions
            )
            return LeaderAndIsrRequest(
                *header, states, chance.ids(), chance.topic_ids(), chance.endpoints()
            )
        case 1:
            metadata = tuple(
                MetadataState(
                    partition,
                    chance.int32(),
                    chance.int32(),
                    chance.int32(),
                    chance.ids(),
                    chance.int32(),
                    chance.ids(),
                    chance.ids(),
                )
                for partition in partitions
            )
            return UpdateMetadataRequest(
                *header, metadata, chance.ids(), chance.topic_ids(), chance.endpoints()
            )
        case _:
            stops = tuple(
                StopReplicaState(partition, chance.int32(), chance.random() < 0.5)
                for partition in partitions
            )
            return StopReplicaRequest(*header, stops)


def random_alter_partition(seed: str, version: int) -> AlterPartitionRequest:
    """A leader's request; before version 1 it knows of no recovery."""
    chance = Chance(seed)
    partitions = {
        partition: RequestedIsr(
            chance.ids(),
            chance.int32(),
            chance.int32(),
            recovering=version > 0 and chance.random() < 0.5,
        )
        for partition in chance.partitions()
    }
    return AlterPartitionRequest(chance.int32(), chance.int64(), partitions, version)


def random_alter_result(seed: str, request: AlterPartitionRequest) -> AlterPartitionResult:
    """A result for each partition of a request, or an error."""
    chance = Chance(seed)
    if chance.random() < 0.1:
        return AlterPartitionResult(ErrorCode.STALE_BROKER_EPOCH)
    results: dict[TopicPartition, PartitionLeadership | PartitionResult] = {}
    for partition in request.partitions:
        results[partition] = PartitionLeadership(
            leader=chance.int32(),
            isr=chance.ids(),
            leader_epoch=chance.int32(),
            partition_epoch=chance.int32(),
            recovering=request.version > 0 and chance.random() < 0.5,
        )
        if chance.random() < 0.3:
            results[partition] = PartitionResult(ErrorCode.FENCED_LEADER_EPOCH)
    return AlterPartitionResult(partitions=results)


def random_shutdown_result(seed: str) -> ControlledShutdownResult:
    """A result with some partitions."""
    chance = Chance(seed)
    return ControlledShutdownResult(chance.choice(ERRORS), tuple(chance.partitions()))


# -- Kafka's JSON ----------------------------------------------------------------------------------


def json_of(request: BrokerRequest, version: int, *, deletes: bool | None = None) -> Json:
    """The result of Kafka's converter for the message of a request in a version.

    ``deletes``: the part of a StopReplica request that has this flag, before version 3.
    """
    match request:
        case LeaderAndIsrRequest():
            return leader_and_isr_json(request, version)
        case UpdateMetadataRequest():
            return update_metadata_json(request, version)
        case StopReplicaRequest():
            return stop_replica_json(request, version, deletes=deletes)


def since(version: int, first: int, **values: Any) -> Json:
    """The values, if the version has them."""
    return values if version >= first else {}


def until(version: int, last: int, **values: Any) -> Json:
    """The values, if the version has them still."""
    return values if version <= last else {}


def header_json(request: BrokerRequest, version: int, kraft: int, epoch: int) -> Json:
    """The first fields; ``kraft`` and ``epoch`` are the versions that they began with."""
    return {
        "controllerId": request.controller_id,
        **since(version, kraft, isKRaftController=False),
        "controllerEpoch": request.controller_epoch,
        **since(version, epoch, brokerEpoch=request.broker_epoch),
    }


def grouped(states: Sequence[Any]) -> dict[str, list[Any]]:
    """The states by topic."""
    groups: dict[str, list[Any]] = {}
    for state in states:
        groups.setdefault(state.partition.topic, []).append(state)
    return groups


def leader_and_isr_json(request: LeaderAndIsrRequest, version: int) -> Json:
    """LeaderAndIsr."""

    def state_json(state: LeaderAndIsrState) -> Json:
        return {
            **until(version, 1, topicName=state.partition.topic),
            "partitionIndex": state.partition.number,
            "controllerEpoch": state.controller_epoch,
            "leader": state.leader,
            "leaderEpoch": state.leader_epoch,
            "isr": [*state.isr],
            "partitionEpoch": state.partition_epoch,
            "replicas": [*state.replicas],
            **since(version, 3, addingReplicas=[*state.adding], removingReplicas=[*state.removing]),
            **since(version, 1, isNew=state.is_new),
            **since(version, 6, leaderRecoveryState=int(state.recovering)),
        }

    leaders = [leader for leader in request.leaders if leader in request.endpoints]
    topics = [
        {
            "topicName": topic,
            **since(version, 5, topicId=request.topic_ids.get(topic, NO_ID)),
            "partitionStates": [*map(state_json, states)],
        }
        for topic, states in grouped(request.states).items()
    ]
    return {
        **header_json(request, version, 7, 2),
        **since(version, 5, type=0),
        **until(version, 1, ungroupedPartitionStates=[*map(state_json, request.states)]),
        **since(version, 2, topicStates=topics),
        "liveLeaders": [
            {
                "brokerId": leader,
                "hostName": request.endpoints[leader].host,
                "port": request.endpoints[leader].port,
            }
            for leader in leaders
        ],
    }


def update_metadata_json(request: UpdateMetadataRequest, version: int) -> Json:
    """UpdateMetadata."""

    def state_json(state: MetadataState) -> Json:
        return {
            **until(version, 4, topicName=state.partition.topic),
            "partitionIndex": state.partition.number,
            "controllerEpoch": state.controller_epoch,
            "leader": state.leader,
            "leaderEpoch": state.leader_epoch,
            "isr": [*state.isr],
            "zkVersion": state.partition_epoch,
            "replicas": [*state.replicas],
            **since(version, 4, offlineReplicas=[*state.offline]),
        }

    topics = [
        {
            "topicName": topic,
            **since(version, 7, topicId=request.topic_ids.get(topic, NO_ID)),
            "partitionStates": [*map(state_json, states)],
        }
        for topic, states in grouped(request.states).items()
    ]

    def broker_json(broker_id: int, endpoint: Endpoint) -> Json:
        usual = BrokerListener("PLAINTEXT", endpoint.host, endpoint.port, 0)
        listeners = [
            {
                "port": listener.port,
                "host": listener.host,
                **since(version, 3, listener=listener.name),
                "securityProtocol": listener.protocol,
            }
            for listener in endpoint.named_listeners or (usual,)
        ]
        return {
            "id": broker_id,
            **until(version, 0, v0Host=endpoint.host, v0Port=endpoint.port),
            **since(version, 1, endpoints=listeners),
            **since(version, 2, rack=endpoint.rack),
        }

    return {
        **header_json(request, version, 8, 5),
        **until(version, 4, ungroupedPartitionStates=[*map(state_json, request.states)]),
        **since(version, 5, topicStates=topics),
        "liveBrokers": [
            broker_json(broker_id, request.endpoints[broker_id])
            for broker_id in request.brokers
            if broker_id in request.endpoints
        ],
    }


def stop_replica_json(request: StopReplicaRequest, version: int, *, deletes: bool | None) -> Json:
    """StopReplica, or a part of it."""
    states = [state for state in request.states if deletes in (None, state.deletes)]
    header = header_json(request, version, 4, 1)
    if version < 3:
        header["deletePartitions"] = bool(deletes)
    if version == 0:
        return header | {
            "ungroupedPartitions": [
                {"topicName": state.partition.topic, "partitionIndex": state.partition.number}
                for state in states
            ]
        }
    if version < 3:
        return header | {
            "topics": [
                {"name": topic, "partitionIndexes": [state.partition.number for state in group]}
                for topic, group in grouped(states).items()
            ]
        }
    return header | {
        "topicStates": [
            {
                "topicName": topic,
                "partitionStates": [
                    {
                        "partitionIndex": state.partition.number,
                        "leaderEpoch": state.leader_epoch,
                        "deletePartition": state.deletes,
                    }
                    for state in group
                ],
            }
            for topic, group in grouped(states).items()
        ]
    }


def alter_partition_json(request: AlterPartitionRequest, topic_ids: Mapping[str, str]) -> Json:
    """AlterPartition, whose members are in epochs that the leader does not know."""
    version = request.version

    def partition_json(number: int, requested: RequestedIsr) -> Json:
        members = [{"brokerId": member, "brokerEpoch": -1} for member in requested.isr]
        return {
            "partitionIndex": number,
            "leaderEpoch": requested.leader_epoch,
            **until(version, 2, newIsr=[*requested.isr]),
            **since(version, 3, newIsrWithEpochs=members),
            **since(version, 1, leaderRecoveryState=int(requested.recovering)),
            "partitionEpoch": requested.partition_epoch,
        }

    return {
        "brokerId": request.broker_id,
        "brokerEpoch": request.broker_epoch,
        "topics": [
            {
                **until(version, 1, topicName=topic),
                **since(version, 2, topicId=topic_ids.get(topic, NO_ID)),
                "partitions": [partition_json(number, requested) for number, requested in entries],
            }
            for topic, entries in of_topics(request.partitions).items()
        ],
    }


def alter_result_json(
    result: AlterPartitionResult, version: int, topic_ids: Mapping[str, str]
) -> Json:
    """The response to AlterPartition."""

    def partition_json(number: int, entry: PartitionLeadership | PartitionResult) -> Json:
        if isinstance(entry, PartitionResult):
            error, entry = int(entry.error), PartitionLeadership(0, ())
        else:
            error = 0
        return {
            "partitionIndex": number,
            "errorCode": error,
            "leaderId": entry.leader,
            "leaderEpoch": entry.leader_epoch,
            "isr": [*entry.isr],
            **since(version, 1, leaderRecoveryState=int(entry.recovering)),
            "partitionEpoch": entry.partition_epoch,
        }

    return {
        "throttleTimeMs": 0,
        "errorCode": int(result.error),
        "topics": [
            {
                **until(version, 1, topicName=topic),
                **since(version, 2, topicId=topic_ids.get(topic, NO_ID)),
                "partitions": [partition_json(number, entry) for number, entry in entries],
            }
            for topic, entries in of_topics(result.partitions).items()
        ],
    }


def of_topics(partitions: Mapping[TopicPartition, Any]) -> dict[str, list[tuple[int, Any]]]:
    """The entries by topic."""
    groups: dict[str, list[tuple[int, Any]]] = {}
    for partition, entry in partitions.items():
        groups.setdefault(partition.topic, []).append((partition.number, entry))
    return groups
