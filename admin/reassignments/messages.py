"""The requests of reassignments to the wire and back, by kio's messages; no IO.

Metadata is requested in version 9, which brokers from 2.4 on have, as they have reassignments.
"""

import datetime
from collections import defaultdict
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple

from featurewatch.admin.reassignments.api_errors import api_error_text
from featurewatch.admin.reassignments.types import (
    BrokerReplica,
    ClusterTopics,
    LivePartition,
    PartitionError,
    ReplicaDirectory,
    Replicas,
    RunningBroker,
)
from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.streams.net.address import Address

METADATA: Final = 3
ALTER_LOG_DIRS: Final = 34
DESCRIBE_LOG_DIRS: Final = 35
ALTER_REASSIGNMENTS: Final = 45
LIST_REASSIGNMENTS: Final = 46

NOT_CONTROLLER: Final = 41

Message = tuple[Any, Any]
"""A request, and the class of its response."""


class AlterResults(NamedTuple):
    """The response to AlterPartitionReassignments: one error for all, or one each (None: none)."""

    error: PartitionError | None
    partitions: Mapping[TopicPartition, PartitionError | None]


def api_error(code: int, message: str | None = None) -> PartitionError | None:
    """The error of a response, None for code 0."""
    return None if code == 0 else PartitionError(code, api_error_text(code, message))


def milliseconds(seconds: float) -> Any:
    """A duration as kio's messages have it."""
    from kio.static.primitive import i32Timedelta

    bounded = min(int(seconds * 1000), 2**31 - 1)
    return i32Timedelta.parse(datetime.timedelta(milliseconds=bounded))


def numbers_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The numbers of the partitions of each topic."""
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for partition in partitions:
        numbers[partition.topic].append(partition.number)
    return numbers


def metadata_request(topics: Iterable[str] | None) -> Message:
    """Requests the brokers, and the topics of these names (None: all)."""
    schema = import_module("kio.schema.metadata.v9")
    form = import_module("kio.schema.metadata.v9.request")
    names = None if topics is None else tuple(form.MetadataRequestTopic(name=n) for n in topics)
    request = schema.MetadataRequest(
        topics=names,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    return request, schema.MetadataResponse


def read_metadata(response: Any) -> ClusterTopics:
    """The brokers and topics of a Metadata response."""
    partitions, errors = {}, {}
    for topic in response.topics:
        if error := api_error(int(topic.error_code)):
            errors[str(topic.name)] = error
            continue
        for entry in topic.partitions:
            partitions[TopicPartition(topic.name, int(entry.partition_index))] = LivePartition(
                int(entry.leader_id),
                tuple(map(int, entry.replica_nodes)),
                tuple(map(int, entry.isr_nodes)),
            )
    brokers = {
        int(broker.node_id): RunningBroker(
            int(broker.node_id), Address.of_peer(broker.host, broker.port), broker.rack
        )
        for broker in response.brokers
    }
    return ClusterTopics(dict(sorted(brokers.items())), partitions, errors)


def alter_request(
    targets: Mapping[TopicPartition, Replicas | None],
    version: int,
    *,
    timeout_s: float,
    allow_factor_change: bool = True,
) -> Message:
    """Starts reassignments, and cancels those without replicas (None); version 0 or 1."""
    schema = import_module(f"kio.schema.alter_partition_reassignments.v{version}")
    form = import_module(f"kio.schema.alter_partition_reassignments.v{version}.request")
    topics = tuple(
        form.ReassignableTopic(
            name=topic,
            partitions=tuple(
                form.ReassignablePartition(
                    partition_index=number, replicas=targets[TopicPartition(topic, number)]
                )
                for number in numbers
            ),
        )
        for topic, numbers in numbers_by_topic(targets).items()
    )
    option = {"allow_replication_factor_change": allow_factor_change} if version else {}
    request = schema.AlterPartitionReassignmentsRequest(
        timeout=milliseconds(timeout_s), topics=topics, **option
    )
    return request, schema.AlterPartitionReassignmentsResponse


def read_alter(response: Any) -> AlterResults:
    """The errors of the response to `alter_request`."""
    results = {
        TopicPartition(topic.name, int(entry.partition_index)): api_error(
            int(entry.error_code), entry.error_message
        )
        for topic in response.responses
        for entry in topic.partitions
    }
    return AlterResults(api_error(int(response.error_code), response.error_message), results)


def list_request(partitions: Iterable[TopicPartition] | None, timeout_s: float) -> Message:
    """Lists the running reassignments, of these partitions or (None) of all."""
    schema = import_module("kio.schema.list_partition_reassignments.v0")
    form = import_module("kio.schema.list_partition_reassignments.v0.request")
    topics = None
    if partitions is not None:
        topics = tuple(
            form.ListPartitionReassignmentsTopics(name=topic, partition_indexes=tuple(numbers))
            for topic, numbers in numbers_by_topic(partitions).items()
        )
    request = schema.ListPartitionReassignmentsRequest(
        timeout=milliseconds(timeout_s), topics=topics
    )
    return request, schema.ListPartitionReassignmentsResponse


def read_list(response: Any) -> dict[TopicPartition, ReplicaAssignment]:
    """The running reassignments."""
    return {
        TopicPartition(topic.name, int(entry.partition_index)): ReplicaAssignment(
            tuple(map(int, entry.replicas)),
            tuple(map(int, entry.adding_replicas)),
            tuple(map(int, entry.removing_replicas)),
        )
        for topic in response.topics
        for entry in topic.partitions
    }


def log_dirs_request(partitions: Iterable[TopicPartition], version: int) -> Message:
    """Requests a broker's directories and sizes of its replicas of these partitions."""
    schema = import_module(f"kio.schema.describe_log_dirs.v{version}")
    form = import_module(f"kio.schema.describe_log_dirs.v{version}.request")
    topics = tuple(
        form.DescribableLogDirTopic(topic=topic, partitions=tuple(numbers))
        for topic, numbers in numbers_by_topic(partitions).items()
    )
    return schema.DescribeLogDirsRequest(topics=topics), schema.DescribeLogDirsResponse


def read_log_dirs(response: Any, broker_id: int) -> dict[BrokerReplica, ReplicaDirectory]:
    """The replicas on a broker; directories with an error are left out, as Kafka's client does."""
    found: dict[BrokerReplica, ReplicaDirectory] = {}
    for directory in response.results:
        usable = int(getattr(directory, "usable_bytes", -1))
        if directory.error_code:
            continue
        for topic in directory.topics:
            for entry in topic.partitions:
                partition = TopicPartition(topic.name, int(entry.partition_index))
                replica = BrokerReplica(partition, broker_id)
                before = found.get(replica, ReplicaDirectory(None, None, 0, None))
                if entry.is_future_key:
                    found[replica] = before._replace(future=directory.log_dir)
                else:
                    found[replica] = ReplicaDirectory(
                        directory.log_dir,
                        before.future,
                        int(entry.partition_size),
                        usable if usable >= 0 else None,
                    )
    return found


def move_request(directories: Mapping[TopicPartition, str], version: int) -> Message:
    """Moves replicas of a broker to other directories of its own (AlterReplicaLogDirs)."""
    schema = import_module(f"kio.schema.alter_replica_log_dirs.v{version}")
    form = import_module(f"kio.schema.alter_replica_log_dirs.v{version}.request")
    by_directory: defaultdict[str, list[TopicPartition]] = defaultdict(list)
    for partition, directory in directories.items():
        by_directory[directory].append(partition)
    request = schema.AlterReplicaLogDirsRequest(
        dirs=tuple(
            form.AlterReplicaLogDir(
                path=directory,
                topics=tuple(
                    form.AlterReplicaLogDirTopic(name=topic, partitions=tuple(numbers))
                    for topic, numbers in numbers_by_topic(partitions).items()
                ),
            )
            for directory, partitions in by_directory.items()
        )
    )
    return request, schema.AlterReplicaLogDirsResponse


def read_move(response: Any) -> dict[TopicPartition, PartitionError | None]:
    """The errors of the response to `move_request`."""
    return {
        TopicPartition(topic.topic_name, int(entry.partition_index)): api_error(
            int(entry.error_code)
        )
        for topic in response.results
        for entry in topic.partitions
    }
