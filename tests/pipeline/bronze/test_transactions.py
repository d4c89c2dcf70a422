"""Topics that somebody writes in transactions: the lake reads what was committed, and no more."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from featurewatch.pipeline.audit.audit import audit
from featurewatch.pipeline.audit.report import MISSING, UNKNOWN
from featurewatch.pipeline.bronze.kafka import offset_ranges
from featurewatch.pipeline.gold.tables import EPOCHS as EPOCHS_TABLE
from featurewatch.pipeline.gold.tables import FEATURE_CHANGES as CHANGES_TABLE
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import GAPS, MESSAGES
from featurewatch.pipeline.run import run_once, stages
from featurewatch.pipeline.silver.tables import LEVELS
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.events import Message, encode
from featurewatch.streams.codec.outputs import encode_output, topic_of
from featurewatch.streams.events import Event
from featurewatch.streams.outputs import FeatureChange
from featurewatch.streams.topics import EPOCHS, FEATURE_CHANGES, METADATA_LOG, Topic
from tests.agents.events import levels
from tests.pipeline.audit.lakes import Read, work
from tests.pipeline.filling import put, rows

pytestmark = pytest.mark.stack

TOPICS = (METADATA_LOG, FEATURE_CHANGES, EPOCHS)


class Transactions:
    """A producer of transactions on the topics of a bus."""

    def __init__(self, bus: BusSettings) -> None:
        self._bus = bus
        self._producer = Producer(
            bus.client(transactional_id=bus.prefix), logger=logging.getLogger("producer")
        )
        self._producer.init_transactions(30)

    @contextmanager
    def open(self) -> Iterator[Callable[[Topic, Message], None]]:
        """A transaction that is committed at the end of the block."""
        self._producer.begin_transaction()
        yield self._produce
        self._producer.commit_transaction(30)

    def abort(self, topic: Topic, messages: Iterable[Message]) -> None:
        """Publishes messages in a transaction that is aborted when they are on the topic."""
        self._producer.begin_transaction()
        for message in messages:
            self._produce(topic, message)
        self.flush()
        self._producer.abort_transaction(30)

    def flush(self) -> None:
        """Returns when what was produced is on its topics."""
        assert self._producer.flush(30) == 0

    def _produce(self, topic: Topic, message: Message) -> None:
        headers: list[tuple[str, str | bytes | None]] = [*message.headers]
        self._producer.produce(
            self._bus.topic(topic), message.value, message.key, partition=0, headers=headers
        )


@pytest.fixture
def bus(own_bus: Callable[[], BusSettings]) -> BusSettings:
    """A bus with one partition for each of `TOPICS`."""
    bus_ = own_bus()
    admin = AdminClient(bus_.client())
    for future in admin.create_topics([NewTopic(bus_.topic(t), 1, 1) for t in TOPICS]).values():
        future.result()
    return bus_


def settle(bus: BusSettings) -> None:
    """Returns when the markers of all transactions are on the topics: the bus writes them after it
    has acknowledged the end."""
    deadline = time.monotonic() + 90
    while any(offsets.end < offsets.high_watermark for offsets in offset_ranges(bus).values()):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def level(number: int) -> Event:
    """The event of a commit that sets metadata.version to a level."""
    return levels(number * 10, {"metadata.version": number})


def committed_reads(bus: BusSettings, transactions: Transactions) -> list[Read]:
    """Publishes levels 1 to 5 with aborted ones between them; returns the committed messages.

    The last marker is on the topic when this returns: what somebody else publishes comes after it.

    The offsets: 0 and 1 committed, 2 the marker; 3 and 4 aborted, 5 the marker; 6 to 8 committed, 9
    the marker.
    """
    with transactions.open() as produce:
        for number in (1, 2):
            produce(METADATA_LOG, encode(METADATA_LOG, level(number)))
    transactions.abort(METADATA_LOG, [encode(METADATA_LOG, level(n)) for n in (20, 21)])
    with transactions.open() as produce:
        for number in (3, 4, 5):
            produce(METADATA_LOG, encode(METADATA_LOG, level(number)))
    settle(bus)
    return [
        Read(offset, (0, METADATA_LOG, level(number)), 0)
        for offset, number in ((0, 1), (1, 2), (6, 3), (7, 4), (8, 5))
    ]


def test_what_was_aborted_never_happened_and_markers_are_no_gaps(
    lake: Lake, bus: BusSettings, caplog: pytest.LogCaptureFixture
) -> None:
    """Bronze, silver and gold have what was committed, and nothing is missing.

    The worker's outputs, in transactions too, have holes; a change that was never published is
    missing all the same, and not unknown.
    """
    transactions = Transactions(bus)
    reads = committed_reads(bus, transactions)
    put(bus, [level(6)])
    reads.append(Read(10, (0, METADATA_LOG, level(6)), 0))
    outputs = [output for output, _ in work(reads)]
    withheld = next(output for output in outputs if isinstance(output, FeatureChange))
    for output in outputs:
        if topic_of(output) in TOPICS and output is not withheld:
            transactions.abort(topic_of(output), [encode_output(output)])
            with transactions.open() as produce:
                produce(topic_of(output), encode_output(output))
    settle(bus)
    run_once(lake, stages(lake, bus))
    run_once(lake, stages(lake, bus))  # looks at the last round again
    name = bus.topic(METADATA_LOG)
    stored = [offset for topic, offset in rows(lake, MESSAGES, "topic", "offset") if topic == name]
    assert sorted(stored) == [0, 1, 6, 7, 8, 10]
    assert [level for (level,) in rows(lake, LEVELS, "level")] == [1, 2, 3, 4, 5, 6]
    assert [after for (after,) in rows(lake, CHANGES_TABLE, "after")] == [1, 2, 3, 4, 5, 6]
    assert len(rows(lake, EPOCHS_TABLE, "revision")) == 6
    assert rows(lake, GAPS) == []
    assert [r for r in caplog.records if r.name == "featurewatch.pipeline" and r.levelno > 20] == []

    report = audit(lake, late_s=0)
    changes = next(counts for counts in report.counts if counts.table == CHANGES_TABLE.name)
    assert changes.verdicts[MISSING] == 1
    assert report.count(UNKNOWN) == 0
    assert report.unknown_reasons == ()


def test_an_open_transaction_is_waited_for(
    lake: Lake, bus: BusSettings, caplog: pytest.LogCaptureFixture
) -> None:
    """Uncommitted messages are ingested once committed, with those after them. A line tells what
    is waited for."""
    transactions = Transactions(bus)
    put(bus, [level(1)])
    with transactions.open() as produce:
        produce(METADATA_LOG, encode(METADATA_LOG, level(2)))
        transactions.flush()
        put(bus, [level(3)])
        run_once(lake, stages(lake, bus)[:1])
        name = bus.topic(METADATA_LOG)
        line = f"{name} partition 0: a transaction is open since offset 1"
        assert any(message.startswith(line) for message in caplog.messages)
        caplog.clear()
        assert rows(lake, MESSAGES, "offset") == [(0,)]
    settle(bus)
    run_once(lake, stages(lake, bus)[:1])
    assert not any("a transaction is open" in message for message in caplog.messages)
    assert rows(lake, MESSAGES, "offset") == [(0,), (1,), (2,)]
    assert rows(lake, GAPS) == []


@pytest.mark.nightly
def test_deleted_messages_between_transactions_are_a_separate_gap(
    lake: Lake, bus: BusSettings
) -> None:
    """Only the offsets that retention deleted before they were read are missing. Markers that it
    deletes later are not, although the next start looks at the last round again."""
    name, admin = bus.topic(METADATA_LOG), AdminClient(bus.client())
    transactions = Transactions(bus)
    committed_reads(bus, transactions)
    put(bus, [level(6)])

    def delete(below: int) -> None:
        place = TopicPartition(name, 0, below)
        admin.delete_records([place])[TopicPartition(name, 0)].result()

    delete(5)
    run_once(lake, stages(lake, bus)[:1])
    assert {offset for (offset,) in rows(lake, MESSAGES, "offset")} == {6, 7, 8, 10}
    assert rows(lake, GAPS, "from_offset", "to_offset") == [(0, 4)]
    delete(11)
    run_once(lake, stages(lake, bus)[:1])
    assert rows(lake, GAPS, "from_offset", "to_offset") == [(0, 4)]
