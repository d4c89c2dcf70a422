"""Publishing and finding the place again, on a broker inside the process."""

import asyncio
import re
import socket
from dataclasses import replace

import pytest

from featurewatch.streams.bus.errors import (
    BusPropertiesError,
    BusUnavailableError,
    EventTooLargeError,
    PublishError,
)
from featurewatch.streams.bus.partitions import partition_of
from featurewatch.streams.bus.positions import last_log_position, position_in_message
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import MAX_EVENT_BYTES, BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.codec.events import encode
from featurewatch.streams.events import (
    CommitKind,
    LogCommit,
    LogGap,
    SnapshotChunk,
    SourceState,
    SourceStatus,
)
from featurewatch.streams.topics import METADATA_LOG
from featurewatch.streams.types import ClusterId, LastRecord
from tests.faulty_link import Fault, FaultyLink
from tests.streams.bus.mock_bus import MockBus
from tests.waiting import until_async

CLUSTER = ClusterId("a-cluster")
OTHER = ClusterId("b-cluster")
TOPIC = METADATA_LOG.name()


def commit(offset: int, cluster: ClusterId = CLUSTER, padding: int = 0) -> LogCommit:
    """A batch of one record at an offset."""
    records = [{"offset": offset, "type": "X", "version": 0, "data": {"x": "x" * padding}}]
    return LogCommit(cluster, CommitKind.BATCH, offset, offset, 3, 0, records, {}, 1)


def chunk(end: int, last: bool) -> SnapshotChunk:
    """A chunk of a snapshot of epoch 4."""
    return SnapshotChunk(CLUSTER, end, 4, 0, last, -1, [], {}, 1)


def status(
    offset: int, state: SourceState = SourceState.FOLLOWING, source: str = "kraft"
) -> SourceStatus:
    """A status whose offset has epoch 5."""
    return SourceStatus(CLUSTER, source, state, offset, 5, offset, 1, 5, "", 1)


@pytest.fixture(scope="module")
def mock():
    """One mock broker for all tests of this file."""
    return MockBus()


def own_topics(mock: MockBus, name: str) -> BusSettings:
    """The mock bus with a separate prefix, so that its topics are empty."""
    settings = mock.settings
    return BusSettings(settings.bootstrap_servers, prefix=name, partitions=settings.partitions)


@pytest.mark.parametrize(
    ("event", "position"),
    [
        (commit(7), LastRecord(7, 3)),
        (chunk(50, last=True), LastRecord(49, 4)),
        (chunk(50, last=False), None),
        (LogGap(CLUSTER, 3, 9, "", True, 1), LastRecord(-1, -1)),
        (LogGap(CLUSTER, 3, 9, "", False, 1), None),
        (status(12), LastRecord(12, 5)),
        (replace(status(12), offset_checksum=7), LastRecord(12, 5, 7)),
        (replace(commit(7), checksum=2**32 - 1), LastRecord(7, 3, 2**32 - 1)),
        (status(-1), None),
        (status(12, SourceState.SILENT), None),
        (status(-1, SourceState.RETIRED), LastRecord(-1, -1)),
        (status(-1, SourceState.RETIRED, source="api-versions"), None),  # cannot be read here
        (status(12, source="api-versions"), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_which_messages_say_a_position(event, position):
    """Commits, finished snapshots, resets and the source's own status do; nothing else does."""
    message = encode(METADATA_LOG, event)
    assert position_in_message(message.value, message.key) == position


@pytest.mark.parametrize(
    ("events", "position"),
    [
        ([], None),
        ([commit(1), commit(2)], LastRecord(2, 3)),
        ([commit(1), status(4), chunk(90, last=False)], LastRecord(4, 5)),
        ([commit(1), chunk(90, last=False), chunk(90, last=True)], LastRecord(89, 4)),
        ([commit(1), status(9, SourceState.SILENT)], LastRecord(1, 3)),
        ([commit(8), LogGap(CLUSTER, 3, 9, "", True, 1), status(-1)], None),
        ([commit(8), LogGap(CLUSTER, 3, 9, "", True, 1), commit(0)], LastRecord(0, 3)),
    ],
    ids=range(7),
)
async def test_the_last_position_is_found(mock, request, events, position):
    """Whatever says none is passed over, and a reset means the beginning."""
    bus = own_topics(mock, f"last-{request.node.callspec.id}")
    async with Publisher(bus) as publisher:
        await publisher.publish(METADATA_LOG, commit(1, OTHER))
        for event in events:
            await publisher.publish(METADATA_LOG, event)
    assert await last_log_position(bus, CLUSTER) == position


async def test_a_position_far_back_is_found_behind_others_and_garbage(mock):
    """Several windows of other clusters' messages and of unreadable ones lie on top of it."""
    bus = own_topics(mock, "far")
    async with Publisher(bus) as publisher:
        await publisher.publish(METADATA_LOG, commit(41))
        await publisher.flush()
        neighbour = ClusterId(
            next(
                name
                for name in map(str, range(1000))
                if partition_of(name.encode(), 4) == partition_of(CLUSTER.encode(), 4)
            )
        )
        for offset in range(1500):
            await publisher.publish(METADATA_LOG, commit(offset, neighbour))
    mock.put(bus.topic(METADATA_LOG), CLUSTER.encode(), b"{", partition_of(CLUSTER.encode(), 4))
    assert await last_log_position(bus, CLUSTER) == LastRecord(41, 3)


async def test_an_unreachable_bus_is_one_clear_line():
    """Reading and making topics both say what to check, after the time that they were given."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nowhere = BusSettings(f"127.0.0.1:{closed.getsockname()[1]}")
        with pytest.raises(BusUnavailableError, match=r"nobody listens at .*check the address"):
            await last_log_position(nowhere, CLUSTER, timeout_s=2)
        with pytest.raises(BusUnavailableError, match="does not answer"):
            await asyncio.to_thread(ensure_topics, nowhere, timeout_s=2)


async def test_each_delivery_is_acknowledged_and_the_order_kept(mock):
    """A future for each event; a flush waits for all; nothing is in flight afterwards."""
    bus = own_topics(mock, "order")
    async with Publisher(bus, max_in_flight=10) as publisher:
        deliveries = [await publisher.publish(METADATA_LOG, commit(n)) for n in range(100)]
        assert publisher.in_flight <= 10
        await publisher.flush()
        assert all(delivery.done() for delivery in deliveries)
        assert (publisher.in_flight, publisher.published) == (0, 100)
    assert await last_log_position(bus, CLUSTER) == LastRecord(99, 3)


async def test_bytes_in_flight_are_bounded_too():
    """A bus that does not answer: the publisher takes what its window holds, then waits."""
    publisher = Publisher(BusSettings("127.0.0.1:1"), max_bytes=10_000)
    await publisher.start()
    accepted = 0

    async def publish_all() -> None:
        nonlocal accepted
        while True:
            await publisher.publish(METADATA_LOG, commit(accepted, padding=2000))
            accepted += 1

    publishing = asyncio.ensure_future(publish_all())
    await until_async(lambda: accepted >= 4)
    await asyncio.wait([publishing], timeout=0.3)
    publishing.cancel()
    assert accepted == publisher.in_flight == 4
    with pytest.raises(BusUnavailableError, match="did not take the last 4 messages"):
        await publisher.close(timeout_s=0.1)


async def test_a_bus_that_is_down_is_reported_once_and_nothing_fails():
    """The callback gets one line with the address; publishing continues to wait."""
    errors: asyncio.Queue[str | None] = asyncio.Queue()
    publisher = Publisher(BusSettings("127.0.0.1:1"), on_error=errors.put_nowait)
    await publisher.start()
    delivery = await publisher.publish(METADATA_LOG, commit(1))
    line = await asyncio.wait_for(errors.get(), 60)
    assert line is not None
    assert line.startswith("the bus at 127.0.0.1:1 does not answer")
    assert not delivery.done()
    with pytest.raises(BusUnavailableError):
        await publisher.close(timeout_s=0.1)


async def test_an_idle_publisher_notices_that_the_bus_recovered(mock):
    """Nothing is sent that would show it, and the error ends all the same."""
    bus = own_topics(mock, "idle")
    with FaultyLink(int(bus.bootstrap_servers.rpartition(":")[2])) as link:
        link.fault = Fault.CUT
        linked = replace(bus, bootstrap_servers=f"127.0.0.1:{link.port}")
        async with Publisher(linked) as publisher:
            await until_async(lambda: publisher.error is not None)
            link.fault = Fault.NONE
            await until_async(lambda: publisher.error is None)
            assert publisher.published == 0


async def test_an_event_that_no_bus_would_take_costs_nothing_but_itself(mock):
    """Too large: the error says so, and the messages before and after it get through."""
    async with Publisher(own_topics(mock, "large")) as publisher:
        before = await publisher.publish(METADATA_LOG, commit(1))
        with pytest.raises(EventTooLargeError, match="the bus accepts 16711680"):
            await publisher.publish(METADATA_LOG, commit(2, padding=20 * 1024 * 1024))
        after = await publisher.publish(METADATA_LOG, commit(3))
        await asyncio.wait_for(asyncio.gather(before, after), 60)
        assert publisher.published == 2


async def test_the_largest_event_is_taken(mock):
    """A message just below the limit reaches the bus: librdkafka's limit is not below ours."""
    async with Publisher(own_topics(mock, "largest")) as publisher:
        overhead = len(encode(METADATA_LOG, commit(1)).value or b"") + 500
        await publisher.publish(METADATA_LOG, commit(1, padding=MAX_EVENT_BYTES - overhead))
        await asyncio.wait_for(publisher.flush(), 60)


async def test_wrong_properties_are_one_clear_line():
    """A value that librdkafka does not take is named."""
    publisher = Publisher(BusSettings("h:1", {"broker.address.family": "v9"}))
    with pytest.raises(PublishError, match=r"broker\.address\.family"):
        await publisher.start()


def test_settings_do_not_show_secrets():
    """Properties may hold passwords."""
    assert "hunter2" not in repr(BusSettings("h:1", {"sasl.password": "hunter2"}))


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"bootstrap_servers": " "}, "no bootstrap servers"),
        ({"bootstrap_servers": "h:1", "prefix": ""}, "prefix is empty"),
        ({"bootstrap_servers": "h:1", "partitions": 0}, "at least one partition"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, reason):
    """One line says which and why."""
    with pytest.raises(ValueError, match=reason):
        BusSettings(**settings)


def test_partitions_agree_with_other_clients():
    """murmur2 as Java and aiokafka compute it, for keys of every length modulo four."""
    from aiokafka.partitioner import murmur2

    for length in range(40):
        key = bytes((7 * length + n * 31) % 256 for n in range(length))
        assert partition_of(key, 50) == (murmur2(key) & 0x7FFFFFFF) % 50


async def test_the_publisher_partitions_as_we_look_for_it(mock):
    """librdkafka puts a key where `partition_of` says: a source finds what it published."""
    from confluent_kafka import Consumer, TopicPartition

    bus = own_topics(mock, "partitions")
    clusters = [ClusterId(f"cluster-{n}") for n in range(20)]
    async with Publisher(bus) as publisher:
        for cluster in clusters:
            await publisher.publish(METADATA_LOG, commit(1, cluster))
    consumer = Consumer(bus.client(group_id="t", auto_offset_reset="earliest"))
    consumer.assign([TopicPartition(bus.topic(METADATA_LOG), p, 0) for p in range(4)])
    partitions: dict[bytes | None, int | None] = {}
    while len(partitions) < len(clusters):
        message = consumer.poll(60)
        assert message is not None, f"only {len(partitions)} of {len(clusters)} came"
        partitions[message.key()] = message.partition()
    consumer.close()
    assert partitions == {c.encode(): partition_of(c.encode(), 4) for c in clusters}


def test_a_librdkafka_without_kerberos_is_one_line() -> None:
    """Its wheels are built so; nothing is sent before."""
    module = "com.sun.security.auth.module.Krb5LoginModule"
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.jaas.config": f"{module} required useTicketCache=true serviceName=kafka;",
    }
    bus = BusSettings("127.0.0.1:1", properties)
    try:
        config = bus.client()
    except BusPropertiesError as error:
        assert re.search(r"the installed librdkafka has no GSSAPI.*: build conf", str(error))
    else:
        assert config["sasl.kerberos.service.name"] == "kafka"
