"""The bus on real Kafka: topics, delivery while the broker is down, and long topics."""

import asyncio
import os
import signal
import time
import uuid

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from featurewatch.stack.kafka.specs import single_bus
from featurewatch.streams.bus.errors import BusError, PublishError, TopicMismatchError
from featurewatch.streams.bus.partitions import partition_of
from featurewatch.streams.bus.positions import last_log_position
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import MAX_MESSAGE_BYTES, BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.codec.events import decode_log_event, encode
from featurewatch.streams.events import CommitKind, LogCommit
from featurewatch.streams.topics import ALERTS, ALL, INPUTS, METADATA_LOG, STATE
from featurewatch.streams.types import ClusterId, LastRecord

pytestmark = pytest.mark.stack

CLUSTER = ClusterId("followed")


def commit(offset: int, cluster: ClusterId = CLUSTER) -> LogCommit:
    """An empty batch at an offset."""
    return LogCommit(cluster, CommitKind.BATCH, offset, offset, 3, 0, [], {}, 1)


@pytest.fixture
def settings(bus) -> BusSettings:
    """The shared bus, with a prefix of the test's own."""
    return BusSettings(bus.bootstrap_servers, prefix=f"t-{uuid.uuid4().hex[:8]}", partitions=3)


@pytest.fixture
def admin(bus) -> AdminClient:
    """Kafka's admin client on the shared bus."""
    return AdminClient({"bootstrap.servers": bus.bootstrap_servers})


def read_all(settings: BusSettings, topic: str) -> list[bytes]:
    """Every value on a topic, each partition in order."""
    consumer = Consumer(settings.client(group_id="reader", enable_partition_eof=True))
    consumer.assign([TopicPartition(topic, p, 0) for p in range(settings.partitions)])
    values: list[bytes] = []
    ends = 0
    while ends < settings.partitions:
        message = consumer.poll(30)
        assert message is not None, "the bus gave nothing for 30 s"
        if message.error() is None:
            values.append(message.value() or b"")
        else:
            ends += 1
    consumer.close()
    return values


def offsets_of(values: list[bytes]) -> list[int]:
    """The last offset of each commit."""
    commits = [decode_log_event(value) for value in values]
    assert all(isinstance(commit, LogCommit) for commit in commits)
    return [commit.last_offset for commit in commits if isinstance(commit, LogCommit)]


def test_topics_are_made_once_with_equal_partitions(settings, admin):
    """Also changelogs; compacted where they must be; a second call changes nothing."""
    ensure_topics(settings, changelogs=[f"{settings.prefix}-nodes-changelog"])
    ensure_topics(settings, changelogs=[f"{settings.prefix}-nodes-changelog"])
    existing = admin.list_topics(timeout=60).topics
    names = {settings.topic(topic) for topic in ALL} | {f"{settings.prefix}-nodes-changelog"}
    assert names <= existing.keys()
    assert {len(existing[name].partitions) for name in names} == {3}
    assert all(p.leader >= 0 for name in names for p in existing[name].partitions.values())
    resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
    configs = {
        resource.name: future.result()
        for resource, future in admin.describe_configs(resources).items()
    }
    compacted = {name for name, of in configs.items() if of["cleanup.policy"].value == "compact"}
    assert compacted == {
        settings.topic(ALERTS),
        settings.topic(STATE),
        f"{settings.prefix}-nodes-changelog",
    }
    # What is read at each start is bounded, and the largest batch has room.
    sizes = {int(configs[name]["segment.bytes"].value) for name in compacted}
    assert MAX_MESSAGE_BYTES < min(sizes) <= max(sizes) <= 64 << 20


def test_an_older_topic_gets_the_times_of_the_bus(settings, admin):
    """The input topics of an older featurewatch have the times of their producers."""
    name = settings.topic(METADATA_LOG)
    older = NewTopic(name, 3, 1, config={"message.timestamp.type": "CreateTime"})
    for future in admin.create_topics([older]).values():
        future.result(30)
    ensure_topics(settings)
    for topic in INPUTS:
        resource = ConfigResource(ConfigResource.Type.TOPIC, settings.topic(topic))
        deadline = time.monotonic() + 60
        while True:
            (described,) = admin.describe_configs([resource]).values()
            if described.result()["message.timestamp.type"].value == "LogAppendTime":
                break
            assert time.monotonic() < deadline, topic.short_name


def test_topics_have_three_replicas_where_there_are_three_brokers(quorum_430):
    """The loss of one broker loses no message, and input topics have the time of the append."""
    prefix = f"t-{uuid.uuid4().hex[:8]}"
    settings = BusSettings(quorum_430.bootstrap_servers, prefix=prefix, partitions=3)
    ensure_topics(settings)
    admin = AdminClient({"bootstrap.servers": settings.bootstrap_servers})
    existing = admin.list_topics(timeout=60).topics
    replicas = {
        len(partition.replicas)
        for topic in ALL
        for partition in existing[settings.topic(topic)].partitions.values()
    }
    assert replicas == {3}
    name = settings.topic(METADATA_LOG)
    (described,) = admin.describe_configs(
        [ConfigResource(ConfigResource.Type.TOPIC, name)]
    ).values()
    configs = described.result(60)
    assert configs["min.insync.replicas"].value == "2"
    assert configs["message.timestamp.type"].value == "LogAppendTime"


def test_new_topics_are_known_to_each_broker_at_once(quorum_430):
    """Whichever broker a client asks first: ten times, as it may go well by chance."""
    for _ in range(10):
        prefix = f"t-{uuid.uuid4().hex[:8]}"
        settings = BusSettings(quorum_430.bootstrap_servers, prefix=prefix, partitions=3)
        ensure_topics(settings)
        for server in settings.bootstrap_servers.split(","):
            existing = AdminClient({"bootstrap.servers": server}).list_topics(timeout=60).topics
            assert {settings.topic(topic) for topic in ALL} - existing.keys() == set(), server


def test_a_topic_with_other_partitions_is_refused(settings, admin):
    """The line names the topic, both counts, and what to do."""
    name = settings.topic(METADATA_LOG)
    for future in admin.create_topics([NewTopic(name, 2, 1)]).values():
        future.result(30)
    with pytest.raises(TopicMismatchError, match=f"{name} has 2 partitions and must have 3"):
        ensure_topics(settings)


def test_a_topic_that_would_lose_what_it_holds_is_refused(settings, admin):
    """An input topic that is compacted forgets all but the newest event of a cluster."""
    name = settings.topic(METADATA_LOG)
    compacted = NewTopic(name, 3, 1, config={"cleanup.policy": "compact"})
    for future in admin.create_topics([compacted]).values():
        future.result(30)
    with pytest.raises(TopicMismatchError, match=r"cleanup policy compact and must have delete"):
        ensure_topics(settings)


async def test_a_missing_topic_has_its_own_error(settings):
    """Looking for a position on a topic that nobody made says to create it."""
    with pytest.raises(BusError, match="create it"):
        await last_log_position(settings, CLUSTER)


async def test_nothing_published_is_no_position(settings):
    """An empty topic, and one with other clusters only."""
    await asyncio.to_thread(ensure_topics, settings)
    assert await last_log_position(settings, CLUSTER) is None
    async with Publisher(settings) as publisher:
        for number in range(10):
            await publisher.publish(METADATA_LOG, commit(1, ClusterId(f"other-{number}")))
    assert await last_log_position(settings, CLUSTER) is None


async def test_topics_that_were_made_this_moment_can_be_asked(bus):
    """A leader that metadata names before it knows of it is waited for, not taken for absence."""
    for _ in range(15):
        new = BusSettings(bus.bootstrap_servers, prefix=f"t-{uuid.uuid4().hex[:8]}", partitions=3)
        await asyncio.to_thread(ensure_topics, new)
        assert await last_log_position(new, CLUSTER) is None


async def test_a_position_that_retention_deleted_is_skipped_and_a_later_one_is_found(
    settings, admin
):
    """Only what is still on the topic counts, wherever the topic begins."""
    await asyncio.to_thread(ensure_topics, settings)
    async with Publisher(settings) as publisher:
        for offset in range(100):
            await publisher.publish(METADATA_LOG, commit(offset))
    partition = partition_of(CLUSTER.encode(), 3)
    for keep_from, expected in ((60, LastRecord(99, 3)), (100, None)):
        place = TopicPartition(settings.topic(METADATA_LOG), partition, keep_from)
        for future in admin.delete_records([place]).values():
            future.result(30)
        assert await last_log_position(settings, CLUSTER) == expected


async def test_a_position_behind_half_a_million_messages_of_others(settings, record_property):
    """One pass over the partition finds it, in seconds."""
    await asyncio.to_thread(ensure_topics, settings)
    topic, partition = settings.topic(METADATA_LOG), partition_of(CLUSTER.encode(), 3)
    async with Publisher(settings) as publisher:
        await publisher.publish(METADATA_LOG, commit(17))
    other = encode(METADATA_LOG, commit(1, ClusterId("another")))
    producer = Producer(settings.client(linger_ms=50, queue_buffering_max_messages=600_000))
    for _ in range(500_000):
        producer.produce(topic, other.value, other.key, partition=partition)
    assert producer.flush(120) == 0
    started = time.monotonic()
    assert await last_log_position(settings, CLUSTER) == LastRecord(17, 3)
    took_s = time.monotonic() - started
    record_property("found_behind_500000_s", took_s)
    assert took_s < 60


async def test_nothing_is_lost_or_doubled_while_the_bus_is_unavailable(make_cluster):
    """The broker is killed with messages in flight and comes back: each is there once, in order."""
    cluster = make_cluster(single_bus())
    settings = BusSettings(cluster.bootstrap_servers, prefix="away", partitions=1)
    await asyncio.to_thread(ensure_topics, settings)
    errors: list[str | None] = []
    async with Publisher(settings, max_in_flight=50, on_error=errors.append) as publisher:

        async def publish_all() -> None:
            for offset in range(2000):
                await publisher.publish(METADATA_LOG, commit(offset))
                await asyncio.sleep(0.001)

        publishing = asyncio.create_task(publish_all())
        async with asyncio.timeout(60):
            while publisher.published < 300:
                await asyncio.sleep(0.01)
        await asyncio.to_thread(cluster.node(1).kill)
        async with asyncio.timeout(60):
            while not errors:
                await asyncio.sleep(0.01)
        assert publisher.in_flight <= 50
        await asyncio.to_thread(cluster.node(1).start)
        async with asyncio.timeout(120):
            await publishing
            await publisher.flush()
    values = await asyncio.to_thread(read_all, settings, settings.topic(METADATA_LOG))
    assert offsets_of(values) == list(range(2000))
    assert errors[0] is not None
    assert errors[0].startswith("the bus at")
    assert errors[-1] is None


async def test_a_broker_that_hangs_is_reported_and_then_forgiven(make_cluster):
    """Stopped in its tracks the broker acknowledges nothing: said after seconds, unsaid after."""
    cluster = make_cluster(single_bus())
    settings = BusSettings(cluster.bootstrap_servers, prefix="hangs", partitions=1)
    await asyncio.to_thread(ensure_topics, settings)
    errors: asyncio.Queue[str | None] = asyncio.Queue()
    async with Publisher(settings, on_error=errors.put_nowait) as publisher:
        await (await publisher.publish(METADATA_LOG, commit(1)))
        os.kill(cluster.node(1).pid, signal.SIGSTOP)
        try:
            # The signal takes a moment to stop every thread: the first message may get through.
            async with asyncio.timeout(30):
                sent = 1
                while errors.empty():
                    sent += 1
                    await publisher.publish(METADATA_LOG, commit(sent))
                    await asyncio.sleep(0.1)
            line = errors.get_nowait()
            assert line is not None
            assert "has acknowledged nothing for 5 s" in line
            assert publisher.error == line
        finally:
            os.kill(cluster.node(1).pid, signal.SIGCONT)
        await asyncio.wait_for(publisher.flush(), 60)
        assert publisher.error is None
    values = await asyncio.to_thread(read_all, settings, settings.topic(METADATA_LOG))
    assert offsets_of(values) == list(range(1, sent + 1))


async def test_nothing_gets_past_a_message_that_the_bus_refuses(settings, admin):
    """The topic takes only small messages: after the large one no other is on the topic."""
    topic = NewTopic(settings.topic(METADATA_LOG), 3, 1, config={"max.message.bytes": "2000"})
    for future in admin.create_topics([topic]).values():
        future.result(30)
    large = LogCommit(CLUSTER, CommitKind.BATCH, 1, 1, 3, 0, [], {"X" * 5000: 1}, 1)
    publisher = Publisher(settings)
    await publisher.start()
    await (await publisher.publish(METADATA_LOG, commit(0)))
    with pytest.raises(PublishError):
        await publisher.publish(METADATA_LOG, large)
        for offset in range(2, 50):
            await publisher.publish(METADATA_LOG, commit(offset))
        await publisher.flush()
    with pytest.raises(PublishError):
        await publisher.close()
    values = await asyncio.to_thread(read_all, settings, settings.topic(METADATA_LOG))
    assert offsets_of(values) == [0]


async def test_one_event_is_acknowledged_within_milliseconds(settings, record_property):
    """From publish to acknowledged, one at a time: the median stays far below a heartbeat."""
    await asyncio.to_thread(ensure_topics, settings)
    times = []
    async with Publisher(settings) as publisher:
        for offset in range(300):
            started = time.perf_counter()
            await (await publisher.publish(METADATA_LOG, commit(offset)))
            times.append((time.perf_counter() - started) * 1000)
    times.sort()
    record_property("publish_to_acknowledged_p50_ms", times[150])
    assert times[150] < 50
