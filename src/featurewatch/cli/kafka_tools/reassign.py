"""The lines of ``kafka-reassign-partitions`` (``ReassignPartitionsCommand``); pure.

The texts of 3.9 and 4.3 are the same; the releases differ in what they look up for them.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from featurewatch.admin.cluster.values import BrokerReplica, ClusterTopics, ReplicaDirectory
from featurewatch.admin.reassignments.types import Targets
from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition

ANOTHER_RUNS: Final = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to "
    "override this and create a new partition assignment in addition to the existing one. The "
    "--additional flag can also be used to change the throttle by resubmitting the current "
    "reassignment."
)
MUST_VERIFY: Final = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the "
    "throttle is removed."
)
NO_MOVES: Final = "None of the specified partition moves are active."
NONE_ACTIVE: Final = "None of the specified partition reassignments are active."


def joined(values: Iterable[object]) -> str:
    """Values as Java joins them."""
    return ",".join(map(str, values))


def plural(count: int) -> str:
    """The ending of a noun."""
    return "" if count == 1 else "s"


def list_lines(running: Mapping[TopicPartition, ReplicaAssignment]) -> Iterator[str]:
    """The output of ``--list``."""
    if not running:
        yield "No partition reassignments found."
        return
    yield "Current partition reassignments:"
    for partition, assignment in sorted(running.items()):
        line = f"{partition}: replicas: {joined(assignment.replicas)}."
        if assignment.adding:
            line += f" adding: {joined(assignment.adding)}."
        if assignment.removing:
            line += f" removing: {joined(assignment.removing)}."
        yield line


def status_lines(
    targets: Targets,
    running: Mapping[TopicPartition, ReplicaAssignment],
    present: ClusterTopics,
) -> Iterator[str]:
    """The state of each partition, as ``--verify`` prints it."""
    yield "Status of partition reassignment:"
    for partition, replicas in sorted(targets.items()):
        found = present.partitions.get(partition)
        current = found.replicas if found else ()
        if partition in running:
            yield f"Reassignment of partition {partition} is still in progress."
        elif current == replicas:
            yield f"Reassignment of partition {partition} is completed."
        else:
            yield (
                f"There is no active reassignment of partition {partition}, but replica set is "
                f"{joined(current)} rather than {joined(replicas)}."
            )


def move_lines(
    targets: Mapping[BrokerReplica, str], found: Mapping[BrokerReplica, ReplicaDirectory]
) -> Iterator[str]:
    """The state of each replica that moves to another directory, as ``--verify`` prints it."""
    by_broker = sorted(targets, key=lambda replica: (replica.broker_id, replica.partition))
    for replica in by_broker:
        yield _move_line(replica, targets[replica], found.get(replica))


def _move_line(replica: BrokerReplica, target: str, found: ReplicaDirectory | None) -> str:
    partition, broker_id = replica.partition, replica.broker_id
    if found is None or found.current is None:
        return (
            f"Partition {partition} is not found in any live log dir on broker {broker_id}. There "
            "is likely an offline log directory on the broker."
        )
    if found.future == target:
        return f"Reassignment of replica {replica} is still in progress."
    if found.future is not None:
        return (
            f"Partition {partition} on broker {broker_id} is being moved to log dir "
            f"{found.future} instead of {target}."
        )
    if found.current == target:
        return f"Reassignment of replica {replica} completed successfully."
    return (
        f"Partition {partition} on broker {broker_id} is not being moved from log dir "
        f"{found.current} to {target}."
    )


def is_moving(
    targets: Iterable[BrokerReplica], found: Mapping[BrokerReplica, ReplicaDirectory]
) -> bool:
    """Whether some replica still moves to another directory of its broker."""
    return any(replica in found and found[replica].future is not None for replica in targets)


def rollback_lines(current_json: str) -> Iterator[str]:
    """The first output of ``--execute``: the assignment for a rollback."""
    yield "Current partition replica assignment"
    yield ""
    yield current_json
    yield ""
    yield "Save this to use as the --reassignment-json-file option during rollback"


def started_line(partitions: Iterable[TopicPartition]) -> str:
    """The line that reassignments were accepted."""
    named = sorted(partitions)
    return f"Successfully started partition reassignment{plural(len(named))} for {joined(named)}"


def cancelled_line(partitions: Iterable[TopicPartition]) -> str:
    """The line that reassignments were canceled."""
    named = sorted(partitions)
    return f"Successfully cancelled partition reassignment{plural(len(named))} for: {joined(named)}"
