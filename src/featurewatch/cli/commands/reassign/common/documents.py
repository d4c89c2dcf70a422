"""JSON output of the commands of reassignments."""

from collections.abc import Iterable, Mapping
from typing import Any

from featurewatch.admin.cluster.values import ClusterTopics
from featurewatch.admin.reassignments.types import ReassignmentStatus, Targets
from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition


def partition_fields(partition: TopicPartition) -> dict[str, Any]:
    """The fields that name a partition."""
    return {"topic": partition.topic, "partition": partition.number}


def running_document(running: Mapping[TopicPartition, ReplicaAssignment]) -> dict[str, Any]:
    """The running reassignments."""
    return {
        "reassignments": [
            {
                **partition_fields(partition),
                "replicas": assignment.replicas,
                "adding": assignment.adding,
                "removing": assignment.removing,
            }
            for partition, assignment in sorted(running.items())
        ]
    }


def status_document(
    targets: Targets,
    running: Iterable[TopicPartition],
    present: ClusterTopics,
) -> dict[str, Any]:
    """The state of each partition: completed, in progress or failed."""
    moving = {*running}
    entries = []
    for partition, replicas in sorted(targets.items()):
        found = present.partitions.get(partition)
        current = found.replicas if found else ()
        if partition in moving:
            status = ReassignmentStatus.IN_PROGRESS
        else:
            done = current == replicas
            status = ReassignmentStatus.COMPLETED if done else ReassignmentStatus.FAILED
        entries.append(
            {
                **partition_fields(partition),
                "status": status.name.lower().replace("_", " "),
                "result_code": int(status),
                "replicas": current,
                "target": replicas,
            }
        )
    return {"partitions": entries, "reassignments_running": len(moving)}
