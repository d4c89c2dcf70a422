"""A worker that has lost a partition cannot write any more, whatever it believes."""

import contextlib
import os
import signal
import time
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from featurewatch.agents.changelog import ChangelogWriter
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.bus.errors import FencedError
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.bus.transactions import TransactionalPublisher
from featurewatch.streams.codec.events import Message
from featurewatch.streams.codec.outputs import decode_change, decode_snapshot
from featurewatch.streams.topics import FEATURE_CHANGES, STATE
from featurewatch.tables.rows import changelog_topic
from tests.agents.events import CLUSTER
from tests.agents.publishing import LevelTraffic
from tests.processes import Process, wait_ready
from tests.waiting import eventually

pytestmark = pytest.mark.stack

REPEAT = int(os.environ.get("FENCING_REPEAT", "1"))


def _bus(cluster: Cluster) -> BusSettings:
    prefix = f"fencing-{uuid.uuid4().hex[:8]}"
    settings = BusSettings(
        cluster.bootstrap_servers, prefix=prefix, partitions=1, replication_factor=1
    )
    ensure_topics(settings, changelogs=[changelog_topic(f"{prefix}-worker")])
    return settings


def _rows(bus: BusSettings, topic: str) -> dict[bytes, bytes]:
    """The rows that recovery reads: the last committed value of each key."""
    reader = Consumer(
        bus.client()
        | {"group.id": "rows", "enable.auto.commit": False, "enable.partition.eof": True}
    )
    reader.assign([TopicPartition(topic, 0, 0)])
    rows: dict[bytes, bytes] = {}
    try:
        while (message := reader.poll(60)) is not None and message.error() is None:
            key, value = message.key(), message.value()
            if key is not None and value is not None:
                rows[key] = value
        assert message is not None
    finally:
        reader.close()
    return rows


async def test_rows_of_a_worker_that_lost_its_partition_are_refused(bus: Cluster) -> None:
    """A successor's claim drops what was not committed and fences the writer before it."""
    settings = _bus(bus)
    app_id = f"{settings.prefix}-worker"
    topic = changelog_topic(app_id)
    async with Publisher(settings) as publisher:
        old, new = (ChangelogWriter(settings, app_id, topic) for _ in range(2))
        await old.claim([0], publisher)
        await old.write(0, [("a", b"1"), ("b", b"1")])
        await old.commit()
        await old.write(0, [("a", b"uncommitted")])
        await new.claim([0], publisher)
        await new.write(0, [("a", b"2")])
        await new.commit()
        with pytest.raises(FencedError, match="another process has taken over"):
            await old.write(0, [("a", b"stale")])
            await old.commit()
        await old.close()
        await new.close()
        assert _rows(settings, topic) == {b"a": b"2", b"b": b"1"}
        # The check can fail: without a transactional id the stale row is the last one.
        await (await publisher.send(topic, Message(b"a", b"stale", []), 0))
        assert _rows(settings, topic)[b"a"] == b"stale"


async def test_a_message_after_the_fatal_error_is_refused_as_fenced(bus: Cluster) -> None:
    """librdkafka gives a later ``produce`` no cause; here it sees the error before any report."""
    settings = _bus(bus)
    topic = changelog_topic(f"{settings.prefix}-worker")
    old, new = (TransactionalPublisher(settings, settings.prefix) for _ in range(2))
    await old.start()
    await old.send(topic, Message(b"a", b"1", []), 0)
    await old.flush()
    await new.start()
    deadline_s = time.monotonic() + 60
    with pytest.raises(FencedError, match="another process has taken over"):
        while time.monotonic() < deadline_s:
            # Nothing here gives way to the event loop, which would take the report of the failure.
            await old.send(topic, Message(b"a", b"stale", []), 0)
            time.sleep(0.01)
    await old.stop()
    await new.stop()


@pytest.mark.nightly
@pytest.mark.parametrize("attempt", range(REPEAT))
def test_a_worker_that_was_paused_changes_nothing_when_it_resumes(
    bus: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attempt: int
) -> None:
    """A worker is stopped in full work for longer than its session, and another takes over.

    When it resumes it ends or joins again, and a third worker that reads the rows afterwards comes
    to the same levels as one that was never disturbed.
    """
    monkeypatch.setenv("FEATUREWATCH_BUS__PARTITIONS", "1")
    settings = _bus(bus)
    workers = [_worker(name, settings, tmp_path) for name in ("paused", "successor", "heir")]
    paused, successor, heir = workers
    try:
        paused.start()
        wait_ready([paused])
        with LevelTraffic(settings, 0.005, acknowledged=True) as traffic:
            assert eventually(lambda: traffic.sent > 200, 30)
            os.kill(paused.pid, signal.SIGSTOP)
            successor.start()
            stopped_at = traffic.sent
            assert eventually(lambda: _last_change(settings) > stopped_at, 60)
            os.kill(paused.pid, signal.SIGCONT)
            resumed_at = traffic.sent
            assert eventually(lambda: traffic.sent > resumed_at + 300, 30)
        assert eventually(lambda: _last_change(settings) == traffic.sent, 60)
        for worker in (paused, successor):
            worker.kill()
        heir.start()
        wait_ready([heir])
        assert eventually(lambda: _state_offset(settings) == traffic.sent, 60)
    finally:
        for worker in workers:
            with contextlib.suppress(ProcessLookupError, RuntimeError):
                os.kill(worker.pid, signal.SIGCONT)
            worker.kill()


def _worker(name: str, bus: BusSettings, directory: Path) -> Process:
    on_bus = ["--bus", bus.bootstrap_servers, "--prefix", bus.prefix]
    return Process(name, ["worker", "--id", name, *on_bus], directory)


def _last_change(bus: BusSettings) -> int:
    """The number of changes, which are revisions 1, 2, …; each once, with one content."""
    changes: dict[int, int] = {}
    with contextlib.closing(TopicReader(bus, FEATURE_CHANGES)) as reader:
        for message in reader.read_existing():
            change = decode_change(message.value())
            assert changes.setdefault(change.revision, int(change.after)) == change.after
    assert sorted(changes) == list(range(1, len(changes) + 1))
    return len(changes)


def _state_offset(bus: BusSettings) -> int:
    """The offset of the newest published state."""
    offset = -1
    with contextlib.closing(TopicReader(bus, STATE)) as reader:
        for message in reader.read_existing():
            snapshot = decode_snapshot(message.value())
            if snapshot.cluster == CLUSTER:
                offset = snapshot.provenance["offset"]
    return offset
