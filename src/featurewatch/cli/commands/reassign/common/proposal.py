"""The work of ``generate``: spreads the replicas of topics over brokers."""

import json
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence

from featurewatch.admin.reassignments.client import ReassignmentAdmin
from featurewatch.admin.reassignments.types import Replicas, Targets
from featurewatch.cli.commands.reassign.common import lookups
from featurewatch.cli.commands.reassign.common.assignment_file import assignment_json
from featurewatch.cli.config.cluster_options import Compat
from featurewatch.cli.kafka_tools.errors import failure
from featurewatch.cli.kafka_tools.target import AdminTarget
from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.controller.partitions.placement import (
    PlacementError,
    PlacementStart,
    place_replicas,
)
from featurewatch.controller.partitions.striped_placement import UsableBroker, place_striped


async def propose_assignment(
    admin: ReassignmentAdmin,
    topics: Sequence[str],
    broker_ids: Sequence[int],
    target: AdminTarget,
    *,
    uses_racks: bool,
) -> None:
    """Prints the current assignment of the topics and one that spreads them over the brokers.

    Raises:
        KafkaToolError: There is no such topic, or the brokers are too few.
    """
    present = await admin.topics(topics)
    lookups.check_topics(topics, present)
    current = {partition: found.replicas for partition, found in present.partitions.items()}
    directories = await lookups.current_directories(admin, current, present, target.compat)
    racks = {
        broker_id: node.rack if uses_racks else None
        for broker_id, node in present.brokers.items()
        if broker_id in broker_ids
    }
    if len({rack is None for rack in racks.values()}) > 1:
        raise failure(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to "
            "make replica assignment without rack information."
        )
    try:
        proposed = _spread(current, racks, target.compat)
    except PlacementError as error:
        raise failure(str(error)) from None
    before, after = assignment_json(current, directories), assignment_json(proposed, {})
    target.lines(["Current partition replica assignment", before, ""])
    target.lines(["Proposed partition reassignment configuration", after])
    target.document(lambda: {"current": json.loads(before), "proposed": json.loads(after)})


def _spread(
    current: Targets, racks: Mapping[int, str | None], compat: Compat
) -> dict[TopicPartition, Replicas]:
    """A new place for each partition, with as many replicas as its topic has.

    As in Kafka the first broker is drawn at random for each topic.
    """
    by_topic: defaultdict[str, list[TopicPartition]] = defaultdict(list)
    for partition in sorted(current):
        by_topic[partition.topic].append(partition)
    proposed = {}
    for topic, partitions in by_topic.items():
        factor = len(current[partitions[0]])
        place = _place_old if compat is Compat.V3_9 else _place_striped
        for number, replicas in enumerate(place(racks, len(partitions), factor)):
            proposed[TopicPartition(topic, number)] = replicas
    return proposed


def _place_old(racks: Mapping[int, str | None], count: int, factor: int) -> list[Replicas]:
    brokers = max(len(racks), 1)
    start = PlacementStart(random.randrange(brokers), random.randrange(brokers))
    placed = place_replicas(racks, count, factor, start)
    return [placed[number] for number in range(count)]


def _place_striped(racks: Mapping[int, str | None], count: int, factor: int) -> list[Replicas]:
    brokers = [UsableBroker(broker_id, rack, is_fenced=False) for broker_id, rack in racks.items()]
    # The rounds that are left out are those that the first broker is drawn by.
    skipped = random.randrange(max(len(brokers), 1))
    return place_striped(brokers, count + skipped, factor)[skipped:]
