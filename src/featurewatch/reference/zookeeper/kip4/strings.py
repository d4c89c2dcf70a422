"""Parses the strings in KIP-4's requests: replica assignments, and partitions as JSON; pure.

A string is valid as a whole or not at all, so a bad one starts nothing.
"""

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.reference.zookeeper.kip4.codes import AdminRequestFailedError
from featurewatch.streams.codec.checks import a_name, brief, integer, list_of
from featurewatch.streams.zookeeper.decoding.fields import (
    a_list,
    an_object,
    json_object,
    optional,
    required,
    schema,
)

_INT32: Final = integer(0, 2**31 - 1)
_BROKER_ID: Final = re.compile(r"[0-9]{1,9}")
"""All of them fit into an int32."""
_ANY_DIRECTORY: Final = "any"

_Value = TypeVar("_Value")

Assignment = dict[TopicPartition, tuple[int, ...]]


def parse_replica_assignment(text: str) -> tuple[tuple[int, ...], ...]:
    """The replicas of each partition from 0 on, as in ``1:2,2:3``, the form of kafka-topics.

    Raises:
        AdminRequestFailedError: if the text has another form.
    """
    return tuple(_replica_list(part) for part in text.split(","))


def parse_manual_assignment(text: str) -> Assignment:
    """The replicas of each partition that a ManualAssignment names, in its order.

    Raises:
        AdminRequestFailedError: if it is not the JSON of the draft, names no partition or one of
            them twice, or names a log directory, which another request moves.
    """
    return _parsed(text, _replicas)


def parse_partitions(text: str) -> list[TopicPartition]:
    """The partitions that a PartitionsSerialized names, in its order.

    Raises:
        AdminRequestFailedError: if it is not the JSON of the draft, or names no partition or one of
            them twice.
    """
    return [*_parsed(text, lambda _: None)]


def _parsed(
    text: str, read_entry: Callable[[dict[str, Any]], _Value]
) -> dict[TopicPartition, _Value]:
    parsed: dict[TopicPartition, _Value] = {}
    try:
        content = json_object(text.encode())
        # Kafka's tools take a file without a version for version 1.
        schema({"version": 1} | content, 1, 1)
        entries = a_list(required(content, "partitions", lambda value: value), "partitions")
        if not entries:
            raise ValueError("it names no partition")
        for item in entries:
            entry = an_object(item, "an entry of partitions")
            partition = TopicPartition(
                required(entry, "topic", a_name), required(entry, "partition", _INT32)
            )
            if partition in parsed:
                raise ValueError(f"it names {brief(partition.topic)}-{partition.number} twice")
            parsed[partition] = read_entry(entry)
    except ValueError as error:
        raise AdminRequestFailedError(f"The string cannot be read: {error}.") from None
    return parsed


def _replicas(entry: dict[str, Any]) -> tuple[int, ...]:
    directories = optional(entry, "log_dirs", list_of(a_name), ())
    if {*directories} - {_ANY_DIRECTORY}:
        raise ValueError("log_dirs can only be any: leave it out")
    return tuple(required(entry, "replicas", list_of(_INT32)))


def _replica_list(part: str) -> tuple[int, ...]:
    ids = [number.strip() for number in part.split(":")]
    if not all(_BROKER_ID.fullmatch(number) for number in ids):
        raise AdminRequestFailedError(
            f"{brief(part)} is not a list of replicas: write broker ids as in 1:2,2:3."
        )
    return tuple(map(int, ids))
