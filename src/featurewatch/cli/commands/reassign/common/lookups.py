"""Lookups of ``execute`` and ``generate`` in the cluster, with the errors of the tool."""

from collections.abc import Iterable, Mapping
from typing import Final

from featurewatch.admin.api_errors import ResponseError
from featurewatch.admin.cluster.values import BrokerReplica, ClusterTopics
from featurewatch.admin.errors import UnreachableError
from featurewatch.admin.reassignments.client import ReassignmentAdmin
from featurewatch.admin.reassignments.types import Replicas
from featurewatch.cli.config.cluster_options import Compat
from featurewatch.cli.kafka_tools.errors import api_failure, failure
from featurewatch.cli.kafka_tools.java import ids_in_set_order, in_set_order, names_in_set_order
from featurewatch.cli.output.terminal import print_error
from featurewatch.controller.partitions.assignment import TopicPartition

_UNKNOWN: Final = 3


def check_brokers(broker_ids: Iterable[int], present: ClusterTopics) -> None:
    """Raises `KafkaToolError` for a broker that is not running."""
    unknown = [one for one in ids_in_set_order(broker_ids) if one not in present.brokers]
    if unknown:
        running = ", ".join(map(str, present.brokers)) or "none"
        raise failure(f"Unknown broker id {unknown[0]}", f"the brokers that run are: {running}")


def check_topics(names: Iterable[str], present: ClusterTopics) -> None:
    """Raises `KafkaToolError` for a topic that does not exist, or that may not be read."""
    for name in names_in_set_order(names):
        error = present.errors.get(name)
        if error is None:
            continue
        if error.code == _UNKNOWN:
            raise api_failure(ResponseError(_UNKNOWN, f"Topic {name} not found."))
        raise api_failure(error)


def check_partitions(partitions: Iterable[TopicPartition], present: ClusterTopics) -> None:
    """Raises `KafkaToolError` for partitions that do not exist."""
    missing = [one for one in partitions if one not in present.partitions]
    if missing:
        listed = ", ".join(map(str, in_set_order(missing)))
        raise api_failure(ResponseError(_UNKNOWN, f"Unable to find partition: {listed}"))


async def current_directories(
    admin: ReassignmentAdmin,
    current: Mapping[TopicPartition, Replicas],
    present: ClusterTopics,
    compat: Compat,
) -> dict[BrokerReplica, str]:
    """The directories of the current replicas, which the tool prints from 4.2 on.

    A broker that does not respond stops Kafka's tool; here its directories are ``any``.
    """
    if compat is Compat.V3_9:
        return {}
    found: dict[BrokerReplica, str] = {}
    for broker_id in present.brokers:
        replicas = [
            BrokerReplica(partition, broker_id)
            for partition, replicas in current.items()
            if broker_id in replicas
        ]
        try:
            located = await admin.directories(replicas, present.brokers)
        except UnreachableError as error:
            print_error(f"the directories of broker {broker_id} are not shown: {error}")
            continue
        found |= {replica: one.current for replica, one in located.items() if one.current}
    return found
