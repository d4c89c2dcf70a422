"""Records that concern many partitions: what they change, and that they cost what they do."""

import sys
from collections.abc import Iterable
from types import FrameType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from featurewatch.tables.partitions.image import NO_PARTITIONS, PartitionKey, PartitionsImage
from featurewatch.tables.partitions.replay import PartitionReplay

STEP = 1001
"""Numbers of partitions this far apart are accepted."""

Record = tuple[str, dict[str, Any]]


def topic(name: str, partitions: Iterable[int], **fields: Any) -> Iterable[Record]:
    """A topic with these partitions."""
    yield "TOPIC_RECORD", {"topicId": f"id-{name}", "name": name}
    for index in partitions:
        numbers = {"topicId": f"id-{name}", "partitionId": index, "partitionEpoch": 0}
        lists = {"replicas": [1, 2], "isr": [1], "leader": 1, "leaderEpoch": 0}
        yield "PARTITION_RECORD", {**numbers, **lists, **fields}


def clear(name: str) -> Record:
    """The eligible leaders of a topic, or of all, are cleared."""
    return "CLEAR_ELR_RECORD", {"topicName": name}


def applied(image: PartitionsImage, offset: int, records: Iterable[Record]) -> PartitionsImage:
    """The image after records from an offset on; what follows from the partitions is checked."""
    replay = PartitionReplay(image)
    for number, (kind, data) in enumerate(records, offset):
        replay.apply(kind, number, data, 0)
    after = replay.finish()
    assert after == PartitionsImage.of(after.topics, after.partitions, after.min_isrs)
    return after


def eligible(image: PartitionsImage) -> dict[PartitionKey, tuple[int, ...]]:
    """The partitions with eligible leaders."""
    return {key: it.elr for key, it in image.partitions.items() if it.elr or it.last_known_elr}


def calls_of(image: PartitionsImage, offset: int, records: list[Record]) -> int:
    """The calls of functions, built-in ones too, that records take."""
    count = 0

    def on_event(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        del frame, argument
        count += event in ("call", "c_call")

    replay = PartitionReplay(image)
    sys.setprofile(on_event)
    try:
        for number, (kind, data) in enumerate(records, offset):
            replay.apply(kind, number, data, 0)
        replay.finish()
    finally:
        sys.setprofile(None)
    return count


def test_the_eligible_leaders_of_a_topic_or_of_all_are_cleared() -> None:
    """Those of other topics stay, and those of a record that is newer."""
    elr, last = {"eligibleLeaderReplicas": [2]}, {"lastKnownElr": [2], "isr": [], "leader": -1}
    records = [*topic("a", range(3), **elr), *topic("b", range(2), **last), *topic("c", [0])]
    image = applied(NO_PARTITIONS, 0, records)
    assert len(eligible(image)) == 5
    assert applied(image, 20, [clear("c"), clear("unknown")]) == image
    assert {*eligible(applied(image, 20, [clear("a")]))} == {("id-b", 0), ("id-b", 1)}
    assert not eligible(applied(image, 20, [clear("")]))
    change = {"topicId": "id-a", "partitionId": 1, "eligibleLeaderReplicas": [1]}
    again = [clear(""), ("PARTITION_CHANGE_RECORD", change), clear("b")]
    assert eligible(applied(image, 20, again)) == {("id-a", 1): (1,)}
    assert not eligible(applied(image, 20, [*again, clear("a")]))
    assert not eligible(
        applied(image, 20, [("REMOVE_TOPIC_RECORD", {"topicId": "id-a"}), again[0]])
    )


def test_a_record_that_clears_nothing_costs_nothing() -> None:
    """Of whichever topic, however many partitions there are and whatever their numbers: a message
    of some kilobytes once took ten seconds, and a full one hours."""
    image = applied(NO_PARTITIONS, 0, topic("a", range(0, 300 * STEP, STEP)))
    assert calls_of(image, 1000, [clear("")] * 10 + [clear("a")] * 10) < 20 * 20


@given(st.permutations(range(12)), st.sampled_from([1, 7, 50]))
def test_partitions_come_in_any_order(numbers: list[int], step: int) -> None:
    """As in a snapshot: meanwhile some are missing, and in a damaged log they stay so."""
    image = NO_PARTITIONS
    for offset, record in enumerate(topic("a", sorted(number * step for number in numbers[:6]))):
        image = applied(image, offset, [record])
    assert bool(image.sparse) == ({*numbers[:6]} != {*range(6)} or step > 1)
    if step == 1:
        for offset, record in enumerate([*topic("a", numbers[6:])][1:], 100):
            image = applied(image, offset, [record])
        assert not image.sparse
    assert applied(image, 200, [("REMOVE_TOPIC_RECORD", {"topicId": "id-a"})]) == NO_PARTITIONS


def test_what_concerns_a_topic_costs_what_is_known_of_it() -> None:
    """Deleting it, or setting its minimum of the ISR, asks for no partition that is missing."""
    image = applied(NO_PARTITIONS, 0, topic("a", range(0, 300 * STEP, STEP)))
    assert calls_of(image, 1000, [("REMOVE_TOPIC_RECORD", {"topicId": "id-a"})]) < 300 * 30
    minimum = {"resourceType": 2, "resourceName": "a", "name": "min.insync.replicas", "value": "2"}
    assert calls_of(image, 1000, [("CONFIG_RECORD", minimum)]) < 300 * 60


def test_what_is_cleared_is_looked_at_once() -> None:
    """Also where the records are read again after a crash, when the partitions are newer."""
    partitions = topic("a", range(300), eligibleLeaderReplicas=[2])
    image = applied(NO_PARTITIONS, 100, partitions)
    once = calls_of(image, 1000, [clear("")])
    assert calls_of(image, 1000, [clear("")] * 50) < once + 50 * 20
    assert calls_of(image, 0, [clear("")] * 50) < once + 50 * 20
