"""Partitions of a rehearsal: the files of steps, and what is read of the cluster for them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from featurewatch.cli.commands.rehearse.znodes import read_znodes
from featurewatch.cli.config.settings import ClusterSection
from featurewatch.cli.errors import UsageError
from featurewatch.cli.runtime.cluster_image import ClusterNotReadError, LogReading
from featurewatch.controller.rehearsal.partition_steps import PartitionStep, load_reassignment
from featurewatch.controller.rehearsal.partitions.metadata_log import (
    RECORD_TYPES,
    SETTINGS,
    PartitionLog,
)
from featurewatch.controller.rehearsal.partitions.reassignment_file import (
    MAX_FILE_BYTES,
    ReassignmentFileError,
)
from featurewatch.controller.rehearsal.rehearse import (
    StepOutcome,
    StepVerdict,
    rehearse_zookeeper,
)
from featurewatch.controller.rehearsal.steps import Step
from featurewatch.tables.image.cluster import ClusterImage


def with_files(steps: Sequence[Step]) -> list[Step]:
    """The steps with their reassignment files read; raises `StepSyntaxError`."""
    return [
        load_reassignment(step, _content) if isinstance(step, PartitionStep) else step
        for step in steps
    ]


def _content(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ReassignmentFileError(f"it cannot be read: {reason}") from None


def log_reading(log: PartitionLog) -> LogReading:
    """The parts of a metadata log that a rehearsal of partitions reads."""
    return LogReading(RECORD_TYPES, SETTINGS, log.apply)


def rehearse_znodes(
    cluster: ClusterSection, image: ClusterImage, steps: Sequence[Step], min_isr: int | None
) -> list[StepOutcome]:
    """Rehearses on the znodes of a cluster in ZooKeeper mode.

    Raises:
        UsageError: Its ZooKeeper is not given.
        ClusterNotReadError: The znodes cannot be read, or no controller is active.
    """
    if not cluster.zookeeper:
        raise UsageError(
            "the cluster is in ZooKeeper mode, and its partitions are in its znodes: pass "
            "--zookeeper"
        )
    controller = image.zookeeper.controller
    if controller is None:
        raise ClusterNotReadError("no controller is active: try again in a moment")
    partitions, unreadable = read_znodes(cluster, min_isr)
    outcomes = rehearse_zookeeper(controller.node_id, partitions, steps)
    return doubted(outcomes, unreadable, "znodes")


def doubted(outcomes: Sequence[StepOutcome], unreadable: int, noun: str) -> list[StepOutcome]:
    """The outcomes; unknown where partitions may be missing."""
    if not unreadable:
        return [*outcomes]
    note = f"{unreadable:,} {noun} could not be read: partitions may be missing"
    return [
        replace(outcome, verdict=StepVerdict.UNKNOWN, notes=(*outcome.notes, note))
        if outcome.partitions is not None and outcome.verdict is StepVerdict.ACCEPTED
        else outcome
        for outcome in outcomes
    ]
