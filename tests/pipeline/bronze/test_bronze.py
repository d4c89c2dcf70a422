"""Bronze: every message of the topics, exactly once, whatever fails."""

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from delta.tables import DeltaTable

from featurewatch.pipeline.bronze.kafka import OffsetRange, offset_ranges
from featurewatch.pipeline.bronze.offsets import planned_ends
from featurewatch.pipeline.bronze.query import check_bronze
from featurewatch.pipeline.derived.query import FoldQuery
from featurewatch.pipeline.errors import LakeError, RunError, TopicError
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import GAPS, MESSAGES
from featurewatch.pipeline.run import run_on, run_once, stages
from featurewatch.streams.bus.offsets import TopicPartitionKey
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.codec.events import encode
from featurewatch.streams.events import Event
from featurewatch.streams.topics import ALERTS, API_VERSIONS, METADATA_LOG
from featurewatch.streams.types import ClusterId
from tests.agents.events import levels
from tests.pipeline.filling import Messages, put, put_bytes, rows

pytestmark = pytest.mark.stack

MakeBus = Callable[[], BusSettings]
POSITION = ("topic", "partition", "offset")


def ingest_once(lake: Lake, bus: BusSettings) -> None:
    """Ingests what the bus has now."""
    run_once(lake, stages(lake, bus)[:1])


def some(count: int, first: int = 0) -> list[Event]:
    """Events of several clusters, so that they are spread over the partitions."""
    return [
        levels(
            number * 10, {"metadata.version": number % 20 + 1}, ClusterId(f"cluster-{number % 7}")
        )
        for number in range(first, first + count)
    ]


def messages_on(bus: BusSettings) -> int:
    """The number of messages on the ingested topics."""
    return sum(offsets.end - offsets.start for offsets in offset_ranges(bus).values())


def test_messages_come_as_they_are(lake: Lake, own_bus: MakeBus) -> None:
    """Key, value, headers and position are stored byte for byte; absent ones are null."""
    bus = own_bus()
    ensure_topics(bus)
    event = levels(5, {"metadata.version": 14})
    put(bus, [event])
    put_bytes(bus, ALERTS, b"a key", None)
    put_bytes(bus, API_VERSIONS, None, b"\xff\x00 not text")
    ingest_once(lake, bus)
    message = encode(METADATA_LOG, event)
    headers = [(name, value) for name, value in message.headers]
    stored = rows(lake, MESSAGES, "topic", "key", "value", "headers")
    assert [(t, k, v, [tuple(h) for h in hs or []]) for t, k, v, hs in stored] == sorted(
        [
            (bus.topic(METADATA_LOG), message.key, message.value, headers),
            (bus.topic(ALERTS), b"a key", None, []),
            (bus.topic(API_VERSIONS), None, b"\xff\x00 not text", []),
        ],
        key=repr,
    )


def test_a_lost_or_old_checkpoint_makes_no_double_and_no_hole(
    lake: Lake, own_bus: MakeBus, tmp_path: Path
) -> None:
    """The table defines the progress: a checkpoint may be lost or outdated."""
    bus = own_bus()
    ensure_topics(bus)
    checkpoint, old = Path(lake.checkpoint("bronze")), tmp_path / "old"
    put(bus, some(10))
    ingest_once(lake, bus)
    shutil.copytree(checkpoint, old)
    put(bus, some(10, first=10))
    ingest_once(lake, bus)
    shutil.rmtree(checkpoint)
    put(bus, some(10, first=20))
    ingest_once(lake, bus)
    assert len(rows(lake, MESSAGES)) == 30
    shutil.rmtree(checkpoint)
    shutil.copytree(old, checkpoint)
    put(bus, some(10, first=30))
    ingest_once(lake, bus)
    positions = rows(lake, MESSAGES, *POSITION)
    assert len(positions) == len(set(positions)) == messages_on(bus) == 40
    assert rows(lake, GAPS) == []


def test_a_topic_may_come_later(lake: Lake, own_bus: MakeBus) -> None:
    """Without any topic a run ends at once; a continuous run ingests a topic that appears later."""
    bus = own_bus()
    ingest_once(lake, bus)
    assert rows(lake, MESSAGES) == []
    stop = threading.Event()
    failures: list[Exception] = []

    def follow() -> None:
        try:
            run_on(lake, stages(lake, bus)[:1], 0.2, stop)
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        ensure_topics(bus, topics=(METADATA_LOG,))
        put(bus, some(5))
        deadline = time.monotonic() + 60
        while len(rows(lake, MESSAGES)) < 5 and not failures:
            assert time.monotonic() < deadline, "the new topic was not taken in"
    finally:
        stop.set()
        thread.join()
    assert failures == []


def test_what_retention_deleted_is_a_gap_and_no_stop(
    lake: Lake, own_bus: MakeBus, caplog: pytest.LogCaptureFixture
) -> None:
    """Offsets deleted before they were read give a line and a row; the others are ingested. If the
    process was killed before that row was written, the next run adds it, even after a replay."""
    bus = own_bus()
    admin = AdminClient(bus.client())
    name = bus.topic(METADATA_LOG)
    admin.create_topics([NewTopic(name, 1, 1)])[name].result()
    delete = admin.delete_records
    put(bus, some(10))
    delete([TopicPartition(name, 0, 4)])[TopicPartition(name, 0)].result()
    ingest_once(lake, bus)
    put(bus, some(10, first=10))
    delete([TopicPartition(name, 0, 13)])[TopicPartition(name, 0)].result()
    ingest_once(lake, bus)
    DeltaTable.forPath(lake.session, lake.path(GAPS)).delete("from_offset = 10")
    shutil.rmtree(lake.checkpoint("bronze-gaps"))  # it is written after the row
    replayed = Messages("replay.cluster-0", first_round=3)
    replayed.add_events(some(1))
    replayed.into(lake)
    ingest_once(lake, bus)
    gaps = rows(lake, GAPS, "partition", "from_offset", "to_offset")
    assert gaps == [(0, 0, 3), (0, 10, 12)]
    offsets = [offset for topic, offset in rows(lake, MESSAGES, "topic", "offset") if topic == name]
    assert sorted(offsets) == [*range(4, 10), *range(13, 20)]
    warnings = [
        record.getMessage() for record in caplog.records if "deleted" in record.getMessage()
    ]
    assert len(warnings) == 3
    assert f"{name} partition 0: offsets 10 to 12 were deleted" in warnings[1]
    assert warnings[2] == warnings[1]


def test_a_recreated_topic_is_one_clear_line(lake: Lake, own_bus: MakeBus) -> None:
    """A topic that ends before the lake does is a different topic: nothing is mixed."""
    bus = own_bus()
    admin = AdminClient(bus.client())
    name = bus.topic(METADATA_LOG)
    admin.create_topics([NewTopic(name, 1, 1)])[name].result()
    put(bus, some(3))
    ingest_once(lake, bus)
    admin.delete_topics([name])[name].result()
    deadline = time.monotonic() + 90
    while name in admin.list_topics(timeout=60).topics:
        assert time.monotonic() < deadline
    ensure_topics(bus, topics=(METADATA_LOG,))
    with pytest.raises(TopicError, match="the topic was recreated; fill a new lake"):
        ingest_once(lake, bus)


def test_two_cannot_fill_one_lake(
    lake: Lake, own_bus: MakeBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second process gets an error and does nothing."""
    monkeypatch.setattr("featurewatch.pipeline.lake.locks._WAIT_S", 0.1)
    lake.lock()
    other = Lake(lake.session, lake.root)
    with pytest.raises(LakeError, match="another process fills the lake"):
        run_once(other, stages(other, own_bus()))


def test_another_bronze_than_the_checkpoints_know_is_refused(lake: Lake) -> None:
    """If the table is missing or new, queries would start at their checkpoints and lack everything
    before."""
    check_bronze(lake)  # there is no checkpoint yet
    messages = Messages()
    messages.add_events(some(1))
    messages.into(lake)
    run_once(lake, [FoldQuery(lake).writer])
    check_bronze(lake)
    shutil.rmtree(lake.path(MESSAGES))
    with pytest.raises(LakeError, match=r"has no table bronze/messages, .* put the table back"):
        check_bronze(lake)
    other = Lake(lake.session, lake.root)
    messages.add_events(some(1))
    messages.into(other)
    with pytest.raises(RunError, match=r"count on another table bronze/messages .* put that"):
        run_once(lake, [FoldQuery(other).writer])


def test_an_unreachable_bus_is_one_clear_line(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark would retry for minutes."""
    monkeypatch.setattr("featurewatch.pipeline.bronze.kafka._TIMEOUT_S", 1.0)
    with pytest.raises(TopicError, match=r"the bus at 127.0.0.1:1 does not answer"):
        ingest_once(lake, BusSettings("127.0.0.1:1"))


def test_a_topic_that_was_just_made_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition without a leader yet does not mean that the bus is unreachable."""
    attempts: list[int] = []

    def ranges(*_: object) -> dict[TopicPartitionKey, OffsetRange]:
        attempts.append(1)
        if len(attempts) < 3:
            raise KafkaException(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION))
        return {("topic", 0): OffsetRange(0, 1, 1)}

    monkeypatch.setattr("featurewatch.pipeline.bronze.kafka._ranges", ranges)
    assert offset_ranges(BusSettings("127.0.0.1:1")) == {("topic", 0): OffsetRange(0, 1, 1)}
    assert len(attempts) == 3


def test_a_failing_batch_ends_the_run_with_its_reason(
    lake: Lake, own_bus: MakeBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error of a batch is one line; the next run repeats the batch."""
    bus = own_bus()
    ensure_topics(bus, topics=(METADATA_LOG,))
    put(bus, some(3))

    def fail(*_: object) -> None:
        raise LakeError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Lake, "append", fail)
        with pytest.raises(RunError, match="the query bronze failed: the disk is full") as raised:
            ingest_once(lake, bus)
    assert "\n" not in str(raised.value)
    ingest_once(lake, bus)
    assert len(rows(lake, MESSAGES)) == 3


@pytest.mark.nightly
def test_a_short_batch_is_written_without_spark(
    lake: Lake, own_bus: MakeBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its count or, if that says too little, by its size; each message once all the same."""
    bus = own_bus()
    ensure_topics(bus)

    def engines() -> list[str]:
        commits = DeltaTable.forPath(lake.session, lake.path(MESSAGES)).history().collect()
        return [commit["engineInfo"][:5] for commit in commits if commit["version"] > 0]

    put(bus, some(10))
    ingest_once(lake, bus)
    assert engines() == ["delta"]
    put(bus, some(100, first=10))
    ingest_once(lake, bus)
    assert engines() == ["delta", "delta"]
    monkeypatch.setattr("featurewatch.pipeline.bronze.query._MEASURED", 5)
    put(bus, some(10, first=110))
    ingest_once(lake, bus)
    assert engines() == ["Apach", "delta", "delta"]
    positions = rows(lake, MESSAGES, *POSITION)
    assert len(positions) == len(set(positions)) == messages_on(bus) == 120


def test_where_a_batch_ends_is_read_from_its_checkpoint(tmp_path: Path) -> None:
    """A file that is not there, or is not what Spark writes, gives none."""
    (tmp_path / "offsets").mkdir()
    file = tmp_path / "offsets" / "3"
    file.write_text('v1\n{}\n{"a":{"0":5,"1":7},"b":{"0":1}}')
    assert planned_ends(tmp_path, 3) == {("a", 0): 5, ("a", 1): 7, ("b", 0): 1}
    assert planned_ends(tmp_path, 4) is None
    for text in ("", "v1\n{}\n-", 'v1\n{}\n{"a":[5]}', 'v1\n{}\n{"a":{"x":5}}', "v1\n{}\n7"):
        file.write_text(text)
        assert planned_ends(tmp_path, 3) is None
