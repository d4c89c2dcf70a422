"""The work of ``verify``, which also ends ``execute --wait``."""

from collections.abc import Mapping
from typing import Any, Final

from featurewatch.admin.cluster.values import BrokerNode, BrokerReplica, ReplicaDirectory
from featurewatch.admin.reassignments.client import ReassignmentAdmin
from featurewatch.cli.commands.reassign.common.assignment_file import RequestedAssignment
from featurewatch.cli.commands.reassign.common.documents import status_document
from featurewatch.cli.commands.reassign.common.throttling import clear_leftovers, clear_throttles
from featurewatch.cli.kafka_tools.errors import api_failure
from featurewatch.cli.kafka_tools.reassign import is_moving, move_lines, status_lines
from featurewatch.cli.kafka_tools.target import AdminTarget

_UNKNOWN: Final = 3


async def verify_assignment(
    admin: ReassignmentAdmin,
    requested: RequestedAssignment,
    target: AdminTarget,
    *,
    preserve_throttles: bool,
) -> None:
    """Prints the state of each partition and replica, and removes throttles at the end.

    Raises:
        KafkaToolError: The tool fails so.
    """
    targets = requested.targets
    running = await admin.reassignments()
    present = await admin.topics(partition.topic for partition in targets)
    for error in present.errors.values():
        if error.code != _UNKNOWN:
            raise api_failure(error)
    target.lines(status_lines(targets, running, present))
    found = await located(admin, requested.directories, present.brokers)
    lines = list(move_lines(requested.directories, found))
    target.lines(lines or [""])
    document: dict[str, Any] = status_document(targets, running, present)
    done = not running and not is_moving(requested.directories, found)
    try:
        if done and not preserve_throttles:
            await clear_throttles(admin, requested, target)
            await clear_leftovers(admin, but=requested.topics)
    finally:
        target.document(lambda: document)


async def located(
    admin: ReassignmentAdmin,
    replicas: Mapping[BrokerReplica, str],
    brokers: Mapping[int, BrokerNode],
) -> dict[BrokerReplica, ReplicaDirectory]:
    """Where the replicas of a file are, those of running brokers."""
    return await admin.directories(
        [replica for replica in replicas if replica.broker_id in brokers], brokers
    )
