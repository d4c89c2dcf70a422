"""Reads the file of ``kafka-reassign-partitions``, and checks it as that tool does.

The texts are those of ``ReassignPartitionsCommand``.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from featurewatch.common.text import quoted
from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.controller.rehearsal.partitions.operations import ReassignPartitions
from featurewatch.controller.rehearsal.partitions.state import RehearsedPartitions

MAX_FILE_BYTES: Final = 64 << 20
"""Some 500,000 partitions; Kafka is made for fewer."""

_NAMED: Final = 5
_INT32: Final = range(-(1 << 31), 1 << 31)


class ReassignmentFileError(ValueError):
    """The file cannot be used: one line, in Kafka's words where it has some."""


def parse_reassignment(content: bytes) -> ReassignPartitions:
    """The reassignments of a file.

    Raises:
        ReassignmentFileError: it is no JSON, not of that form, or contradicts itself.
    """
    if len(content) > MAX_FILE_BYTES:
        raise ReassignmentFileError(
            f"it is larger than {MAX_FILE_BYTES >> 20} MiB: split the reassignment"
        )
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        reason = quoted(str(error))
        raise ReassignmentFileError(f"The input string is not a valid JSON ({reason})") from None
    version = _typed(document, dict, "the file", "an object").get("version", 1)
    if version != 1 or isinstance(version, bool):
        raise ReassignmentFileError(f"Not supported version field value {quoted(str(version))}")
    entries = _typed(document.get("partitions", []), list, "partitions", "a list")
    parsed = [_entry(entry) for entry in entries]
    _check_entries(parsed)
    return ReassignPartitions(dict(parsed))


def _entry(entry: Any) -> tuple[TopicPartition, tuple[int, ...]]:
    fields = _typed(entry, dict, "an entry of partitions", "an object")
    for name in ("topic", "partition", "replicas"):
        if name not in fields:
            raise ReassignmentFileError(f"an entry of partitions has no {name}")
    topic = _typed(fields["topic"], str, "topic", "a string")
    partition = TopicPartition(topic, _integer(fields["partition"], "partition"))
    listed = _typed(fields["replicas"], list, "replicas", "a list")
    replicas = tuple(_integer(broker_id, "replicas") for broker_id in listed)
    directories = _typed(fields.get("log_dirs", listed), list, "log_dirs", "a list")
    if len(directories) != len(replicas):
        raise ReassignmentFileError(
            f"Size of replicas list {_java_list(replicas)} is different from size of log dirs list "
            f"{_java_list(directories)} for partition {_shown(partition)}"
        )
    return partition, replicas


def _typed(value: Any, kind: type, name: str, expected: str) -> Any:
    if type(value) is not kind:
        raise ReassignmentFileError(f"{name} is not {expected}: {quoted(str(value))}")
    return value


def _integer(value: Any, name: str) -> int:
    number = int(_typed(value, int, name, "a number"))
    if number not in _INT32:
        raise ReassignmentFileError(f"{name} is not a 32-bit number: {number}")
    return number


def _java_list(values: Iterable[Any]) -> str:
    return quoted(f"[{', '.join(map(str, values))}]")


def _check_entries(entries: list[tuple[TopicPartition, tuple[int, ...]]]) -> None:
    if not entries:
        raise ReassignmentFileError("Partition reassignment list cannot be empty")
    if any(not replicas for _, replicas in entries):
        raise ReassignmentFileError("Partition replica list cannot be empty")
    counts = Counter(partition for partition, _ in entries)
    if repeated := [_shown(partition) for partition, count in counts.items() if count > 1]:
        raise ReassignmentFileError(
            "Partition reassignment contains duplicate topic partitions: "
            + _first_of(repeated, ",")
        )
    duplicates = [
        f"{_shown(partition)} contains multiple entries for {_repeated(replicas)}"
        for partition, replicas in entries
        if len({*replicas}) < len(replicas)
    ]
    if duplicates:
        raise ReassignmentFileError(
            "Partition replica lists may not contain duplicate entries: "
            + _first_of(duplicates, ". ")
        )


def _repeated(replicas: Iterable[int]) -> str:
    counts = Counter(replicas)
    return _first_of([str(broker_id) for broker_id, count in counts.items() if count > 1], ",")


def target_error(
    before: RehearsedPartitions, targets: Mapping[TopicPartition, tuple[int, ...]]
) -> str | None:
    """Why the tool does not send these reassignments to this cluster, None if it does.

    It asks for live brokers: one that is fenced, or without a znode, is unknown to it.
    """
    live = {broker_id for broker_id, broker in before.brokers.items() if not broker.is_fenced}
    wanted = {broker_id for replicas in targets.values() for broker_id in replicas}
    if unknown := sorted(wanted - live):
        return f"Unknown broker id {unknown[0]}"
    topics = before.topics()
    for partition in targets:
        if partition.topic not in topics:
            return f"Topic {quoted(partition.topic)} not found."
    missing = [_shown(partition) for partition in targets if partition not in before.partitions]
    return f"Unable to find partition: {_first_of(missing, ', ')}" if missing else None


def _shown(partition: TopicPartition) -> str:
    return quoted(str(partition))


def _first_of(names: list[str], separator: str) -> str:
    shown = separator.join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED:,} more"
