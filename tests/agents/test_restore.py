"""What a worker does when its tables have been recovered."""

import gc
import weakref
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition

from featurewatch.agents.at_least_once import OffsetTracker, RevokedError
from featurewatch.agents.changelog import ChangelogWriter
from featurewatch.agents.processor import EventProcessor
from featurewatch.agents.worker import _whole_partitions
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.topics import INPUTS, METADATA_LOG

_BUS = BusSettings("none")
_CHANGELOG = "worker-image-changelog"


class _App:
    """What a processor needs of an app before the first message."""

    tracker = OffsetTracker(lambda: pytest.fail("nothing is flushed"))


class _Cycle:
    """An object that refers to itself, as an error and the frames of its traceback do."""

    def __init__(self) -> None:
        self.itself = self


def _processor() -> EventProcessor:
    rest: Any = None
    app: Any = _App()
    changelog = ChangelogWriter(_BUS, "worker", _CHANGELOG)
    return EventProcessor(app, _BUS, rest, changelog, rest, rest, lambda: 0.0)


async def test_a_recovery_frees_what_failed_connections_left_behind() -> None:
    """However rarely the process looks for garbage, and however old it is."""
    processor = _processor()
    left = _Cycle()
    gc.collect()  # it is among the oldest objects now
    found = weakref.ref(left)
    gc.disable()
    try:
        del left
        assert found() is not None
        assert processor.restore([], lambda _: True) == {}
        assert found() is None
        assert processor._memory._is_due, "what the changelog took is not returned to the system"
    finally:
        gc.enable()


async def test_nothing_is_processed_without_the_partitions_changelog() -> None:
    """The message is read again after the next assignment, and the run continues."""
    processor = _processor()
    at = TopicPartition(_BUS.topic(METADATA_LOG), 0)
    message = SimpleNamespace(
        tp=at, topic=at.topic, partition=0, offset=7, key=b"cluster", value=b"{}"
    )
    await processor.process(METADATA_LOG, SimpleNamespace(message=message), None)
    assert _App.tracker.next_offset(at) is None
    assert not _App.tracker.has_failed


async def test_a_partition_that_is_not_claimed_is_not_written() -> None:
    """Also after a claim was given up, as when the group assigns again during a recovery."""
    changelog = ChangelogWriter(_BUS, "worker", _CHANGELOG)
    with pytest.raises(RevokedError, match="worker-image-changelog partition 3 is not claimed"):
        await changelog.write_stamp(3, ("topic-ids/3", b"{}"))


@pytest.mark.parametrize("missing", [None, _CHANGELOG, _BUS.topic(METADATA_LOG)])
def test_a_partition_is_whole_with_its_inputs_and_its_changelog(missing: str | None) -> None:
    """The group's assignment may be from when one of the topics was missing."""
    names = [_CHANGELOG, *(_BUS.topic(topic) for topic in INPUTS)]
    assigned = {
        TopicPartition(name, partition)
        for name in names
        for partition in (0, 1)
        if (name, partition) != (missing, 1)
    }
    consumer = SimpleNamespace(assignment=lambda: assigned)
    whole = {0, 1} if missing is None else {0}
    assert _whole_partitions(consumer, _BUS, _CHANGELOG) == whole
