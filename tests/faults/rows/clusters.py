"""Other clusters that disturb this one, and rows of another version of featurewatch."""

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition

from featurewatch.monitor.input_messages import decode_input
from featurewatch.streams.codec.events import MalformedEventError, encode
from featurewatch.streams.events import Event
from featurewatch.streams.topics import METADATA_LOG
from featurewatch.streams.types import ClusterId
from tests.faults.fault import Fault
from tests.faults.rows.poison import UNREADABLE
from tests.faults.rows.processes import STALLED, killed
from tests.faults.rows.topics import CHANGELOG, full_name
from tests.faults.stack import Stack, with_brokers
from tests.processes import Process, is_ready
from tests.simulation import records
from tests.streams.apiversions.scripted_node import ScriptedNode, listening

_LEFT_OUT: Final = "alerts-left-out"
_MAX_ALERTS: Final = 600
"""The alerts of a cluster are bounded, and a few more are about the cluster as a whole."""

_CLEARS: Final = 30_000
_PARTITIONS: Final = 1000
_GAP: Final = 1001
_ON_ITS_OWN_S: Final = 90.0


def _publish(stack: Stack, cluster: ClusterId, *events: Any) -> None:
    """Events of this cluster, as its source would publish them."""
    producer = Producer(
        {
            "bootstrap.servers": stack.bus.bootstrap_servers,
            "message.max.bytes": 16 << 20,
            "partitioner": "murmur2",  # else it is a dead letter of another partition
        }
    )
    for event in events:
        own: Event = replace(event, cluster=cluster, seen_ms=time.time_ns() // 1_000_000)
        message = encode(METADATA_LOG, own)
        read = decode_input(METADATA_LOG, message.key, message.value)
        if isinstance(read, MalformedEventError):  # else the row would show nothing
            raise read
        topic, headers = stack.topic(METADATA_LOG.short_name), dict(message.headers)
        producer.produce(topic, message.value, message.key, headers={**headers})
    producer.flush(60)


def _next_offset() -> int:
    """Higher than all before it: the times of these records are ten times their offsets."""
    return time.time_ns() // 10**9 * 10_000


def _hostile(base: int) -> ClusterId:
    """Another one each time: an alert that fires already is published once a minute at most."""
    return ClusterId(f"hostile-{base}")


@contextmanager
def alerts_without_bound(stack: Stack) -> Iterator[None]:
    """300 nodes, and 150 finalized features of which none supports any."""
    base = _next_offset()
    hostile = _hostile(base)
    nodes = [records.register(number, records.NEW, fenced=False) for number in range(300)]
    levels = [records.level(f"odd.{base}.{number}", 1) for number in range(150)]
    commits = (_commit(base, nodes), _commit(base + 1000, levels))
    _publish(stack, hostile, *commits, records.following(base + 2000))
    yield
    alerts = stack.reader.alerts_of(hostile)
    if not any(alert["rule"] == _LEFT_OUT for alert in alerts):
        rules = dict(Counter(alert["rule"] for alert in alerts))
        found = f"{_LEFT_OUT} did not fire for the hostile cluster, but {rules or 'none'}"
        stack.notes.append(found)
    if len({alert["id"] for alert in alerts}) > _MAX_ALERTS:
        stack.notes.append(f"{len(alerts)} alerts of the hostile cluster")


@contextmanager
def clear_elr_flood(stack: Stack) -> Iterator[None]:
    """Partitions with gaps in their numbers, and many records that clear all eligible leaders."""
    base = _next_offset()
    topic = records.record("TOPIC_RECORD", {"topicId": "t", "name": "topic"})
    fields = {"topicId": "t", "replicas": [1, 2, 3], "isr": [1], "leader": 1}
    epochs = {"leaderEpoch": 0, "partitionEpoch": 0}
    partitions = [
        records.record("PARTITION_RECORD", {**fields, **epochs, "partitionId": number * _GAP})
        for number in range(_PARTITIONS)
    ]
    clears = [records.record("CLEAR_ELR_RECORD", {"topicName": ""})] * _CLEARS
    commits = (_commit(base, [topic, *partitions]), _commit(base + 2000, clears))
    _publish(stack, _hostile(base), *commits)
    yield


def _commit(first: int, items: list[Any]) -> Any:
    numbered = [{**item, "offset": first + index} for index, item in enumerate(items)]
    return records.commit(first + len(numbered) - 1, *numbered, first=first)


@contextmanager
def scripted(cluster: str) -> Iterator[ScriptedNode]:
    """A node that returns this id, in a thread."""
    node, loop, ready = ScriptedNode(cluster=cluster), asyncio.new_event_loop(), threading.Event()
    stop = asyncio.Event()

    async def serve() -> None:
        async with listening([node]):
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    ready.wait(60)
    try:
        yield node
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        loop.close()


@contextmanager
def beside(stack: Stack, *arguments: str) -> Iterator[Process]:
    """Another process that watches; it has ended afterwards."""
    other = stack.add("other-source", "source", ["watch", *arguments])
    other.start()
    try:
        yield other
    finally:
        stack.hold(other)
        stack.processes.remove(other)


@contextmanager
def two_entries(stack: Stack, *, is_configured: bool) -> Iterator[None]:
    """The source watches another entry too, whose nodes return the id of this cluster."""
    config = stack.directory / "two-entries.yaml"
    own = {"cluster_id": stack.cluster_id} if is_configured else {}
    with scripted(stack.cluster_id) as node:
        name = str(node.address)
        entries = [{"controllers": stack.servers.controllers, **own}, {"servers": name}]
        config.write_text(json.dumps({"clusters": entries}))
        with killed(stack, "source"), beside(stack, "--config", str(config)) as source:
            _wait(
                stack,
                "the other entry was not reported",
                lambda: any(alert["rule"] in STALLED for alert in stack.reader.alerts_of(name)),
            )
            if not is_configured:
                node.cluster = "other"
                node.close_connections()
                _wait(stack, "it did not recover on its own", lambda: is_ready(source.port))
            yield


@contextmanager
def rival(stack: Stack) -> Iterator[None]:
    """Another process watches nodes that return the id of this cluster."""
    with scripted(stack.cluster_id) as node, beside(stack, "--servers", str(node.address)):
        # Two changes of the addresses, of which each status can show one.
        _wait(
            stack,
            "the other process was not reported",
            lambda: "source-rivals" in stack.reader.firing,
        )
        yield


@contextmanager
def rows_of_another_version(stack: Stack) -> Iterator[None]:
    """The worker is killed, and finds rows that no version of it has written."""
    topic = full_name(stack, CHANGELOG)
    with killed(stack, "worker"):
        producer = Producer({"bootstrap.servers": stack.bus.bootstrap_servers})
        for partition, key in _keys(stack, topic):
            producer.produce(topic, b'{"version":99}', key, partition)
        producer.flush(60)
    _wait(
        stack,
        "nothing was logged about the rows of another version",
        lambda: "another version" in stack.worker.log.read_text(),
    )
    yield


def _keys(stack: Stack, topic: str) -> Iterable[tuple[int, bytes]]:
    """The keys of this cluster's rows, each with its partition."""
    config = {
        "bootstrap.servers": stack.bus.bootstrap_servers,
        "group.id": "faults",
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
    }
    consumer = Consumer(config)
    partitions = stack.admin.list_topics(topic, timeout=60).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
    found: dict[tuple[int, bytes], bool] = {}
    ends, deadline = 0, time.monotonic() + 60
    while ends < len(partitions) and time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is None:
            continue
        if message.error():
            ends += 1
        elif stack.cluster_id.encode() in (message.key() or b""):
            found[message.partition() or 0, message.key() or b""] = message.value() is not None
    consumer.close()
    return [place for place, exists in found.items() if exists]


def _wait(stack: Stack, note: str, reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _ON_ITS_OWN_S
    while not reached():
        if time.monotonic() > deadline:
            stack.notes.append(note)
            return
        time.sleep(0.2)


_OPERATIONS: Final = {"FEATUREWATCH_WORKER__OPERATIONS": "true"}

ROWS: Final = (
    Fault(
        "hostile-alerts",
        "another cluster has 300 nodes, and 150 finalized features that none of them supports",
        alerts_without_bound,
        hold_s=15,
        environment=_OPERATIONS,
    ),
    Fault(
        "hostile-clear-elr",
        "another cluster clears its eligible leaders 30,000 times in one message",
        clear_elr_flood,
        hold_s=5,
        environment=_OPERATIONS,
    ),
    Fault(
        "worker-other-version",
        "the worker is killed, and finds rows that another version wrote",
        rows_of_another_version,
        hold_s=5,
        # As after a lost changelog, until the source has published its whole state again.
        must_fire=("messages-lost",),
        may_fire=STALLED,
    ),
    Fault(
        "same-id-pinned",
        "another entry's nodes return this cluster's id, which is in its own entry",
        lambda s: two_entries(s, is_configured=True),
        hold_s=5,
        may_fire=STALLED,
    ),
    Fault(
        "same-id",
        "another entry's nodes return this cluster's id, until they return another one",
        lambda s: two_entries(s, is_configured=False),
        hold_s=2,
        must_fire=STALLED,
    ),
    Fault(
        "same-id-process",
        "another process watches nodes that return this cluster's id, until it is reported",
        rival,
        hold_s=10,
        must_fire=("source-rivals",),
        may_fire=(*STALLED, *UNREADABLE, "nodes-disagree"),
        settle_s=60,
        watch=with_brokers,
    ),
)
