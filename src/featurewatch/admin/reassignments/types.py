"""The parameters and results of a client of reassignments; plain values."""

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from featurewatch.controller.partitions.assignment import TopicPartition

Replicas = tuple[int, ...]
"""Ids of brokers, the preferred leader first."""
Targets = Mapping[TopicPartition, Replicas]


class ReassignmentStatus(IntEnum):
    """The state of a requested reassignment, with the numbers of KIP-4 (result codes)."""

    FAILED = -1
    """No reassignment runs, and the replicas are not the requested ones."""
    IN_PROGRESS = 0
    COMPLETED = 1


class ReassignmentProgress(NamedTuple):
    """The progress of a reassignment: partitions done and in all, bytes that added replicas lack.

    ``bytes_left`` is None if some broker did not respond.
    """

    done: int
    total: int
    bytes_left: int | None
