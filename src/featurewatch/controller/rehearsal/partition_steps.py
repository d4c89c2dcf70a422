"""The steps of a rehearsal that are requests about topics and partitions, and their syntax."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from featurewatch.controller.rehearsal.partitions.operations import (
    CreateTopic,
    ElectLeaders,
    Operation,
)
from featurewatch.controller.rehearsal.partitions.reassignment_file import (
    ReassignmentFileError,
    parse_reassignment,
)

ELECTIONS: Final = ("elect-preferred", "elect-unclean")
"""The verbs that need no operand."""

OPERATIONS: Final = ("reassign", *ELECTIONS, "create-topic")
"""The verbs of all requests."""

MAX_PARTITIONS: Final = 200_000
"""The partitions of a topic that is created, and of a cluster in ZooKeeper mode; Kafka is made for
as many."""


class StepSyntaxError(ValueError):
    """A step cannot be parsed; the message is one line with the expected syntax."""


@dataclass(frozen=True, slots=True)
class ReassignmentFile:
    """A reassignment that is still to be read from a file."""

    path: str


@dataclass(frozen=True, slots=True)
class PartitionStep:
    """A request about topics and partitions."""

    text: str
    operation: Operation | ReassignmentFile


def parse_operation(text: str, verb: str, rest: str) -> Operation | ReassignmentFile:
    """The request of a step ``verb:rest``; raises `StepSyntaxError`."""
    parts = [part.strip() for part in rest.split(",")] if rest else []
    if verb == "reassign":
        return ReassignmentFile(rest)
    if verb in ELECTIONS:
        if "" in parts:
            raise StepSyntaxError(f"step {text}: a topic has no name: write {verb}:TOPIC,...")
        return ElectLeaders(verb == "elect-unclean", tuple(dict.fromkeys(parts)))
    if len(parts) != 3 or not all(re.fullmatch(r"[0-9]{1,9}", part) for part in parts[1:]):
        raise StepSyntaxError(
            f"step {text} is not name, partitions and replicas: write create-topic:{parts[0]},12,3"
        )
    name, partition_count, replication_factor = parts[0], int(parts[1]), int(parts[2])
    if partition_count > MAX_PARTITIONS:
        raise StepSyntaxError(f"step {text}: at most {MAX_PARTITIONS} partitions are rehearsed")
    return CreateTopic(name, partition_count, replication_factor)


def load_reassignment(step: PartitionStep, read: Callable[[str], bytes]) -> PartitionStep:
    """The step with the content of its file, which ``read`` returns.

    Raises:
        StepSyntaxError: The file is not one of ``kafka-reassign-partitions``.
    """
    if not isinstance(step.operation, ReassignmentFile):
        return step
    try:
        return PartitionStep(step.text, parse_reassignment(read(step.operation.path)))
    except ReassignmentFileError as error:
        raise StepSyntaxError(f"{step.operation.path}: {error}") from None
