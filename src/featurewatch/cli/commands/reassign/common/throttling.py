"""Removes throttles, those of a file and those that an earlier command left.

A command that was killed leaves its throttles on the cluster. They are found there: while nothing
is reassigned, a topic whose list of throttled replicas names partitions and brokers is a leftover.
Rates are deleted before lists, so that what is left by a second kill is found again.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from featurewatch.admin.cluster.values import BrokerNode
from featurewatch.admin.errors import AdminError
from featurewatch.admin.reassignments import throttles
from featurewatch.admin.reassignments.client import ReassignmentAdmin
from featurewatch.admin.reassignments.throttles import ConfigChanges
from featurewatch.admin.reassignments.types import Targets
from featurewatch.cli.commands.reassign.common.assignment_file import RequestedAssignment
from featurewatch.cli.kafka_tools.errors import KafkaToolError, api_failure
from featurewatch.cli.kafka_tools.java import ids_in_set_order
from featurewatch.cli.kafka_tools.reassign import joined, plural
from featurewatch.cli.kafka_tools.target import AdminTarget
from featurewatch.cli.output.terminal import print_error
from featurewatch.controller.partitions.assignment import TopicPartition

_REMOVAL_S: Final = 30.0
_PAUSE_S: Final = 0.5


async def change_configs(
    admin: ReassignmentAdmin, changes: ConfigChanges, brokers: Mapping[int, BrokerNode]
) -> None:
    """Sets or deletes settings; raises `KafkaToolError` for the first that is refused."""
    if not changes:
        return
    for error in (await admin.set_configs(changes, brokers)).values():
        if error is not None:
            raise api_failure(error)


async def clear_throttles(
    admin: ReassignmentAdmin,
    requested: RequestedAssignment,
    target: AdminTarget,
    *,
    before: str = "",
) -> None:
    """Deletes the throttles of all brokers and of the file's topics, with the lines of the tool.

    ``before`` is put before the first line.
    """
    brokers = (await admin.topics(())).brokers
    named = (one for _, replicas in requested.entries for one in replicas)
    broker_ids = ids_in_set_order((*brokers, *named))
    target.line(
        f"{before}Clearing broker-level throttles on broker{plural(len(broker_ids))} "
        f"{joined(broker_ids)}"
    )
    reached = [broker_id for broker_id in broker_ids if broker_id in brokers]
    if absent := [broker_id for broker_id in broker_ids if broker_id not in brokers]:
        # Only the broker itself takes such a change; Kafka's tool waits for it and fails.
        print_error(
            f"not running: {joined(absent)}; a throttle that is set there stays: verify again"
        )
    await change_configs(admin, throttles.without_broker_throttles(reached), brokers)
    topics = requested.topics
    target.line(f"Clearing topic-level throttles on topic{plural(len(topics))} {joined(topics)}")
    await change_configs(admin, throttles.without_topic_throttles(topics), brokers)


async def clear_leftovers(admin: ReassignmentAdmin, *, but: Iterable[str] = ()) -> None:
    """Deletes what commands that were killed left, and prints it on stderr.

    Nothing is changed while anything is reassigned, whose throttles would look the same. ``but``
    are topics that are left as they are. A failure is a line: what the command is for does not
    depend on it.
    """
    try:
        present = await admin.topics(None)
        names = {partition.topic for partition in present.partitions} - {*but}
        topics = throttles.leftover_topics(await admin.throttles(sorted(names), {}))
        if not topics:
            return
        rates = throttles.leftover_brokers(await admin.throttles((), present.brokers))
        if await admin.reassignments():  # begun since the command looked
            return
        await change_configs(admin, throttles.without_broker_throttles(rates), present.brokers)
        await change_configs(admin, throttles.without_topic_throttles(topics), present.brokers)
    except (AdminError, KafkaToolError) as error:
        print_error(f"throttles that an earlier command left are not looked for: {error}")
        return
    print_error(
        "throttles that an earlier command left are removed: "
        f"topics {joined(topics)}; brokers {joined(rates) or 'none'}"
    )


async def remove_throttles(
    admin: ReassignmentAdmin, targets: Targets, monotonic: Callable[[], float]
) -> set[TopicPartition]:
    """Deletes the throttles of the running brokers and of the topics of a reassignment.

    Tries for half a minute, and raises `AdminError` or `KafkaToolError` after it. While other
    partitions move nothing is deleted, since brokers have one rate for all of them: those are
    returned.
    """
    topics = {partition.topic for partition in targets}
    deadline = monotonic() + _REMOVAL_S
    while True:
        try:
            brokers = (await admin.topics(())).brokers
            if others := {*await admin.reassignments()} - {*targets}:
                return others
            await change_configs(admin, throttles.without_broker_throttles(brokers), brokers)
            await change_configs(admin, throttles.without_topic_throttles(topics), brokers)
        except AdminError:
            if monotonic() > deadline:
                raise
            await asyncio.sleep(_PAUSE_S)
        else:
            return set()
