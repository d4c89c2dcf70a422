"""What a script lets happen to a cluster: clients' requests, and znodes that somebody writes."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kazoo.client import TransactionRequest

from featurewatch.kafka.messages import (
    AlterPartitionReassignmentsRequestV0,
    CreatePartitionsRequestV3,
    CreateTopicsRequestV7,
    DeleteTopicsRequestV6,
    ElectLeadersRequestV2,
    ListPartitionReassignmentsRequestV0,
)
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from tests.conformance.whole_controller.cluster import DrivenCluster

Action = Callable[[DrivenCluster], Awaitable[Any]]
"""Does something to a cluster; returns the controller's response, if it has one."""

_TIMEOUT_MS: Final = 10_000
_RESIGNED_S: Final = 60.0
PREFERRED, UNCLEAN = 0, 1


class Step(NamedTuple):
    """A step of a script; the controllers are compared after each.

    In a step with ``is_idle`` a controller may neither write nor send anything; in others it must.
    """

    title: str
    action: Action
    is_idle: bool = False


# -- clients ---------------------------------------------------------------------------------------


def create_topic(topic: str, *replicas: Sequence[int]) -> Action:
    """CreateTopics with the replicas of each partition."""
    assignments = tuple(
        CreateTopicsRequestV7.CreatableReplicaAssignment(
            partition_index=number, broker_ids=tuple(brokers)
        )
        for number, brokers in enumerate(replicas)
    )
    new = CreateTopicsRequestV7.CreatableTopic(
        name=topic,
        num_partitions=-1,
        replication_factor=-1,
        assignments=assignments,
        configs=(),
    )
    request = CreateTopicsRequestV7(topics=(new,), timeout_ms=_TIMEOUT_MS)
    return lambda cluster: cluster.request(request)


def add_partitions(topic: str, count: int, *replicas: Sequence[int]) -> Action:
    """CreatePartitions up to a number, with the replicas of each new partition."""
    assignments = tuple(
        CreatePartitionsRequestV3.CreatePartitionsAssignment(broker_ids=tuple(brokers))
        for brokers in replicas
    )
    grown = CreatePartitionsRequestV3.CreatePartitionsTopic(
        name=topic, count=count, assignments=assignments
    )
    request = CreatePartitionsRequestV3(
        topics=(grown,), timeout_ms=_TIMEOUT_MS, validate_only=False
    )
    return lambda cluster: cluster.request(request)


def reassign(topic: str, targets: Mapping[int, Sequence[int] | None]) -> Action:
    """AlterPartitionReassignments; None cancels."""
    moved = tuple(
        AlterPartitionReassignmentsRequestV0.ReassignablePartition(
            partition_index=number,
            replicas=None if target is None else tuple(target),
        )
        for number, target in targets.items()
    )
    request = AlterPartitionReassignmentsRequestV0(
        timeout_ms=_TIMEOUT_MS,
        topics=(
            AlterPartitionReassignmentsRequestV0.ReassignableTopic(name=topic, partitions=moved),
        ),
    )
    return lambda cluster: cluster.request(request)


def list_reassignments() -> Action:
    """ListPartitionReassignments, of all partitions."""
    request = ListPartitionReassignmentsRequestV0(timeout_ms=_TIMEOUT_MS, topics=None)
    return lambda cluster: cluster.request(request)


def elect(topic: str, *numbers: int, kind: int = PREFERRED) -> Action:
    """ElectLeaders."""
    elected = ElectLeadersRequestV2.TopicPartitions(topic=topic, partitions=numbers)
    request = ElectLeadersRequestV2(
        election_type=kind,
        topic_partitions=(elected,),
        timeout_ms=_TIMEOUT_MS,
    )
    return lambda cluster: cluster.request(request)


def delete_topic(topic: str) -> Action:
    """DeleteTopics."""
    deleted = DeleteTopicsRequestV6.DeleteTopicState(name=topic, topic_id=None)
    request = DeleteTopicsRequestV6(topics=(deleted,), timeout_ms=_TIMEOUT_MS)
    return lambda cluster: cluster.request(request)


# -- brokers ---------------------------------------------------------------------------------------


def change_isr(topic: str, number: int, *isr: int) -> Action:
    """AlterPartition of the leader."""
    return lambda cluster: cluster.change_isr(topic, number, [*isr])


def shut_down(broker_id: int) -> Action:
    """ControlledShutdown."""
    return lambda cluster: cluster.shut_down(broker_id)


def start_brokers(*broker_ids: int) -> Action:
    """Brokers register."""
    return _doing(lambda cluster: cluster.start_brokers(*broker_ids))


def bounce_brokers(*broker_ids: int) -> Action:
    """Brokers register again before the controller sees that they had left."""
    return _doing(lambda cluster: cluster.start_brokers(*broker_ids, bounce=True))


def end_brokers(*broker_ids: int) -> Action:
    """Brokers die."""
    return _doing(lambda cluster: cluster.end_brokers(*broker_ids))


def fail_responses(broker_id: int, error: int) -> Action:
    """From now on a broker has this error for each partition of its responses."""

    def act(cluster: DrivenCluster) -> None:
        cluster.brokers[broker_id].partition_error = error

    return _doing(act)


# -- znodes ----------------------------------------------------------------------------------------


def create_znode(path: str, content: Any) -> Action:
    """Somebody creates a znode, as Kafka's older tools do."""
    data = b"" if content is None else json.dumps(content).encode()
    return _doing(lambda cluster: cluster.zookeeper.create(path, data))


async def depose(cluster: DrivenCluster) -> None:
    """Another controller is elected; returns when the cluster's own one has resigned."""
    epoch = int(cluster.zookeeper.get("/controller_epoch")[0]) + 1
    rival = {"version": 2, "brokerid": 999, "timestamp": "1", "kraftControllerEpoch": -1}
    transaction = cluster.zookeeper.transaction()
    transaction.delete("/controller")
    transaction.create("/controller", json.dumps(rival).encode())
    transaction.set_data("/controller_epoch", str(epoch).encode())
    _commit(transaction)
    async with asyncio.timeout(_RESIGNED_S):
        while (await list_reassignments()(cluster))["error_code"] != ErrorCode.NOT_CONTROLLER:
            await asyncio.sleep(0.02)


def take_over(*changes: Callable[[DrivenCluster], Mapping[str, Any]]) -> Action:
    """The other controller ends, and leaves ``changes``: the new contents of znodes.

    A znode that does not exist is created.
    """

    def act(cluster: DrivenCluster) -> None:
        transaction = cluster.zookeeper.transaction()
        for change in changes:
            for path, content in change(cluster).items():
                data = b"" if content is None else json.dumps(content).encode()
                if cluster.zookeeper.exists(path) is None:
                    transaction.create(path, data)
                else:
                    transaction.set_data(path, data)
        transaction.delete("/controller")
        _commit(transaction)

    return _doing(act)


def fail_over(title: str, *changes: Callable[[DrivenCluster], Mapping[str, Any]]) -> list[Step]:
    """Another controller is elected, and dies after ``changes``."""
    return [
        Step(f"{title}: deposed", depose, is_idle=True),
        Step(f"{title}: elected again", take_over(*changes)),
    ]


def _commit(transaction: TransactionRequest) -> None:
    assert all(not isinstance(result, Exception) for result in transaction.commit())


def _doing(act: Callable[[DrivenCluster], object]) -> Action:
    async def action(cluster: DrivenCluster) -> None:
        act(cluster)

    return action
