"""The reader by assignment, on a bus in this process, and the meaning of the client's errors."""

import contextlib

import pytest
from confluent_kafka import OFFSET_END, KafkaError

from featurewatch.streams.bus.client_errors import read_failure
from featurewatch.streams.bus.errors import BusError
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.topics import STATE
from tests.streams.bus.mock_bus import MockBus

NAME = STATE.name()
BUS = BusSettings("bus:9092")


@pytest.fixture
def mock() -> MockBus:
    """A bus with five messages on partition 1, the last one a tombstone, and one on partition 0."""
    mock = MockBus(partitions=2)
    mock.put(NAME, b"other", b"x", 0)
    for number in range(4):
        mock.put(NAME, b"k", b"%d" % number, 1)
    mock.put(NAME, b"k", None, 1)  # type: ignore[arg-type]
    return mock


def test_all_partitions_or_some_are_read_to_the_end(mock: MockBus) -> None:
    """Tombstones included; what comes later is read in order."""
    with contextlib.closing(TopicReader(mock.settings, STATE)) as reader:
        assert reader.partition_counts[NAME] >= 2
        assert len([*reader.read_existing()]) == 6
    with contextlib.closing(TopicReader(mock.settings, STATE, partitions=[1])) as reader:
        values = [message.value() for message in reader.read_existing()]
        assert values == [b"0", b"1", b"2", b"3", None]
        mock.put(NAME, b"k", b"5", 1)
        assert [message.value() for message in reader.poll(1)] == [b"5"]


def test_a_reader_from_the_end_gets_only_what_comes_later(mock: MockBus) -> None:
    """A batch has what is there, and a tombstone is a message too."""
    reader = TopicReader(mock.settings, STATE, start=OFFSET_END, partitions=[1])
    with contextlib.closing(reader):
        assert [*reader.read_existing()] == []
        mock.put(NAME, b"k", None, 1)  # type: ignore[arg-type]
        batches = [reader.poll_batch(0.5) for _ in range(3)]
        assert [message.value() for batch in batches for message in batch] == [None]


def test_ranges_of_one_partition_are_read_one_after_the_other(mock: MockBus) -> None:
    """From the start offset to below the end, whatever was fetched beyond it."""
    with contextlib.closing(TopicReader(mock.settings, STATE, partitions=())) as reader:
        assert [*reader.read_existing()] == []
        assert reader.offsets(NAME, 1) == (0, 5)
        for start, end in ((3, 5), (0, 3), (2, 2), (4, 9)):
            offsets = [each.offset() for each in reader.read_between(NAME, 1, start, end)]
            assert offsets == [*range(start, min(end, 5))]


def test_a_reader_that_is_left_in_the_middle_of_a_batch_loses_nothing(mock: MockBus) -> None:
    """The rest comes with the next call."""
    with contextlib.closing(TopicReader(mock.settings, STATE, partitions=[1])) as reader:
        values: list[bytes | None] = []
        while len(values) < 5:
            for message in reader.poll(5):
                values.append(message.value())
                break
        assert values == [b"0", b"1", b"2", b"3", None]


@pytest.mark.parametrize(
    ("code", "group", "text"),
    [
        (KafkaError._TRANSPORT, "", None),
        (KafkaError._ALL_BROKERS_DOWN, "g", None),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, "", None),
        (
            KafkaError.GROUP_AUTHORIZATION_FAILED,
            "g",
            "may not use the group g on the bus at bus:9092: grant READ on it",
        ),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "", "may not read topic t on the bus at bus:9092"),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, "", "there is no topic t on the bus at bus:9092"),
        (KafkaError._UNKNOWN_PARTITION, "", "there is no topic t on the bus at bus:9092"),
        (KafkaError.INVALID_RECORD, "", r"t cannot be read \(.*\): look at the bus at bus:9092"),
    ],
)
def test_errors_of_a_consumer(code: int, group: str, text: str | None) -> None:
    """Missing rights, missing topics and final errors have a line each; the others end."""
    failure = read_failure(KafkaError(code), BUS, "t", group)
    if text is None:
        assert failure is None
    else:
        with pytest.raises(BusError, match=text):
            raise failure or AssertionError("no failure")
