"""The files of ``kafka-reassign-partitions``, with the errors that it prints; no cluster.

Follows ``ReassignPartitionsCommand``. `controller.rehearsal.partitions.reassignment_file` reads the
same form for rehearsals, where texts are shortened and directories do not matter.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from featurewatch.admin.cluster.values import BrokerReplica
from featurewatch.admin.reassignments.types import Replicas, Targets
from featurewatch.cli.kafka_tools import json_file
from featurewatch.cli.kafka_tools.errors import failure
from featurewatch.cli.kafka_tools.java import (
    ids_in_set_order,
    in_set_order,
    names_in_set_order,
    repeated,
)
from featurewatch.controller.partitions.assignment import TopicPartition

ANY_DIRECTORY: Final = "any"


@dataclass(frozen=True, slots=True)
class RequestedAssignment:
    """The partitions of a file in its order, and the directories that it names for replicas."""

    entries: tuple[tuple[TopicPartition, Replicas], ...]
    directories: Mapping[BrokerReplica, str]

    @property
    def targets(self) -> dict[TopicPartition, Replicas]:
        """The replicas of each partition; of a doubled one the last."""
        return dict(self.entries)

    @property
    def topics(self) -> list[str]:
        """The topics, in the order of the tool."""
        return names_in_set_order(partition.topic for partition, _ in self.entries)


def parse_assignment(text: str) -> RequestedAssignment:
    """The reassignments of ``--reassignment-json-file``; raises `KafkaToolError`."""
    if not text:
        raise failure("The input string shouldn't be empty")
    try:
        document = json_file.parse_json(text)
    except ValueError as error:
        raise failure(f"the file is not JSON: {error}") from None
    whole = json_file.as_object(document)
    _check_version(whole)
    entries = []
    directories: dict[BrokerReplica, str] = {}
    for item in json_file.as_array(whole["partitions"]) if "partitions" in whole else ():
        entry = json_file.as_object(item)
        topic = json_file.as_text(json_file.field(entry, "topic"))
        number = json_file.as_integer(json_file.field(entry, "partition"))
        listed = json_file.as_list(json_file.field(entry, "replicas"))
        replicas = tuple(map(json_file.as_integer, listed))
        partition = TopicPartition(topic, number)
        names = (
            list(map(json_file.as_text, json_file.as_list(entry["log_dirs"])))
            if "log_dirs" in entry
            else [ANY_DIRECTORY] * len(replicas)
        )
        if len(names) != len(replicas):
            raise failure(
                f"Size of replicas list {_java_list(replicas)} is different from size of log dirs "
                f"list {_java_list(names)} for partition {partition}"
            )
        entries.append((partition, replicas))
        for broker_id, name in zip(replicas, names, strict=True):
            if name != ANY_DIRECTORY:
                directories[BrokerReplica(partition, broker_id)] = name
    return RequestedAssignment(tuple(entries), directories)


def check_assignment(requested: RequestedAssignment) -> None:
    """Raises `KafkaToolError` for what ``--execute`` refuses without asking the cluster."""
    entries = requested.entries
    if not entries:
        raise failure("Partition reassignment list cannot be empty")
    if any(not replicas for _, replicas in entries):
        raise failure("Partition replica list cannot be empty")
    if len(requested.targets) < len(entries):
        doubled = repeated((partition for partition, _ in entries), in_set_order)
        raise failure(f"Partition reassignment contains duplicate topic partitions: {doubled}")
    duplicates = [
        f"{partition} contains multiple entries for {repeated(replicas, ids_in_set_order)}"
        for partition, replicas in entries
        if len({*replicas}) < len(replicas)
    ]
    if duplicates:
        raise failure(
            f"Partition replica lists may not contain duplicate entries: {'. '.join(duplicates)}"
        )


def parse_topics(text: str) -> list[str]:
    """The topics of ``--topics-to-move-json-file``; raises `KafkaToolError`."""
    try:
        if not text:
            raise ValueError
        document = json_file.parse_json(text)
    except ValueError:
        raise failure("The input string is not a valid JSON") from None
    whole = json_file.as_object(document)
    _check_version(whole)
    topics = [
        json_file.as_text(json_file.field(json_file.as_object(item), "topic"))
        for item in (json_file.as_array(whole["topics"]) if "topics" in whole else ())
    ]
    if doubled := repeated(topics, names_in_set_order):
        listed = doubled.replace(",", ", ")
        raise failure(f"List of topics to reassign contains duplicate entries: [{listed}]")
    return topics


def parse_broker_list(text: str) -> list[int]:
    """The brokers of ``--broker-list``; raises `KafkaToolError`."""
    broker_ids = []
    for part in text.split(","):
        try:
            broker_ids.append(int(part))
        except ValueError:
            raise failure(f'For input string: "{part}"', "give ids as in 1,2,3") from None
    if doubled := repeated(broker_ids, ids_in_set_order):
        raise failure(f"Broker list contains duplicate entries: [{doubled.replace(',', ', ')}]")
    return broker_ids


def assignment_json(targets: Targets, directories: Mapping[BrokerReplica, str]) -> str:
    """An assignment as the tool writes it, in the order of topics and partitions."""
    partitions = [
        {
            "topic": partition.topic,
            "partition": partition.number,
            "replicas": list(replicas),
            "log_dirs": [
                directories.get(BrokerReplica(partition, broker_id), ANY_DIRECTORY)
                for broker_id in replicas
            ],
        }
        for partition, replicas in sorted(targets.items())
    ]
    document = {"version": 1, "partitions": partitions}
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _check_version(document: dict[str, Any]) -> None:
    version = json_file.as_integer(document["version"]) if "version" in document else 1
    if version != 1:
        raise failure(f"Not supported version field value {version}")


def _java_list(values: Iterable[object]) -> str:
    return f"[{', '.join(map(str, values))}]"
