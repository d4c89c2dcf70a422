"""The readers, on a real bus."""

import asyncio
import contextlib
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice

import pytest

from featurewatch import client
from featurewatch.client import sync
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.codec.events import Message
from featurewatch.streams.codec.outputs import encode_output, encode_state
from featurewatch.streams.topics import (
    ALERTS,
    EPOCHS,
    FEATURE_CHANGES,
    OPERATIONS,
    STATE,
)
from tests.client.bus import ClientBus
from tests.client.published import (
    CLUSTER,
    FEATURE,
    alert,
    change,
    operation,
    snapshot,
)
from tests.waiting import until_async

THREADS = "featurewatch-client"

pytestmark = pytest.mark.stack


@pytest.fixture
def topics(bus: Cluster) -> ClientBus:
    """Topics with two changes."""
    topics = ClientBus(bus.bootstrap_servers)
    topics.put(FEATURE_CHANGES, *(encode_output(change(number)) for number in (1, 2)))
    return topics


async def test_changes_come_from_the_beginning_and_then_as_they_are_published(topics: ClientBus):
    """The loop of a service; it ends when the service leaves it."""
    revisions = []
    async with contextlib.aclosing(client.changes(topics.settings)) as changes:
        async for each in changes:
            revisions.append(each.revision)
            if each.revision == 2:
                topics.put(FEATURE_CHANGES, encode_output(change(3)))
            if each.revision == 3:
                break
    assert revisions == [1, 2, 3]


async def test_a_reader_that_is_cancelled_closes_its_connection(topics: ClientBus):
    """While it waits for a message; its thread ends with it."""

    async def read() -> None:
        async for _ in client.changes(topics.settings, since=client.Since.NOW):
            raise AssertionError("nothing is new")

    task = asyncio.create_task(read())
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until_async(
        lambda: not [each for each in threading.enumerate() if each.name.startswith(THREADS)]
    )


def test_every_topic_has_a_reader(topics: ClientBus):
    """The synchronous twins have the same names."""
    topics.put(EPOCHS, encode_output(snapshot(1)))
    topics.put(STATE, encode_state(snapshot(1)))
    topics.put(ALERTS, encode_output(alert(1)))
    topics.put(OPERATIONS, encode_output(operation(1)))
    first = [
        next(reader(topics.settings, cluster=CLUSTER))
        for reader in (sync.changes, sync.epochs, sync.states, sync.alerts, sync.operations)
    ]
    assert first == [change(1), snapshot(1), snapshot(1), alert(1), operation(1)]


def test_a_reader_continues_after_what_was_processed(topics: ClientBus):
    """The value at which it crashed comes again, and those before it do not."""
    store = client.MemoryOffsets()

    def read() -> list[int]:
        with contextlib.closing(sync.changes(topics.settings, offsets=store)) as changes:
            return [each.revision for each in islice(changes, 2)]

    assert read() == [1, 2]
    topics.put(FEATURE_CHANGES, encode_output(change(3)))
    assert read() == [2, 3]
    assert store.positions[topics.settings.topic(FEATURE_CHANGES)].revisions == {CLUSTER: 2}
    # A hole is noticed across the restart.
    topics.put(FEATURE_CHANGES, encode_output(change(9)))
    with (
        contextlib.closing(sync.changes(topics.settings, offsets=store)) as changes,
        pytest.raises(client.RevisionsLostError, match="revision 9 follows revision 3"),
    ):
        for _ in changes:
            pass


def test_problems_go_to_the_caller_in_their_place(topics: ClientBus):
    """With a function for them, reading continues."""
    seen: list[object] = []
    topics.put(FEATURE_CHANGES, Message(b"k", b"garbage", []), encode_output(change(3)))
    with contextlib.closing(sync.changes(topics.settings, on_problem=seen.append)) as changes:
        for each in changes:
            seen.append(each.revision)
            if each.revision == 3:
                break
    assert [seen[0], seen[1], type(seen[2]), seen[3]] == [1, 2, client.UnreadableError, 3]


def test_a_bus_of_another_prefix_is_named(topics: ClientBus):
    """With the prefixes that the bus has; a bus without featurewatch is named too."""
    wrong = replace(topics.settings, prefix=f"{topics.settings.prefix}-not")
    with pytest.raises(client.WrongPrefixError, match="has no topics of the prefix") as raised:
        next(sync.changes(wrong))
    assert topics.settings.prefix in raised.value.others
    with pytest.raises(client.WrongPrefixError):
        client.FeatureGate(wrong)


def test_a_reader_from_a_time(topics: ClientBus):
    """What was published at or after it; a time without a zone could be any."""
    now_ms = time.time_ns() // 1_000_000
    topics.put(FEATURE_CHANGES, encode_output(change(3)), partition=0, time_ms=now_ms + 60_000)
    since = datetime.fromtimestamp(now_ms / 1000 + 30, UTC)
    assert next(sync.changes(topics.settings, since=since)).revision == 3
    with pytest.raises(ValueError, match="has no time zone"):
        next(sync.changes(topics.settings, since=datetime(2026, 1, 1)))  # noqa: DTZ001


async def test_waiting_for_a_level(topics: ClientBus):
    """It ends with the change, before the next state; a timeout says what is known."""
    topics.put(STATE, encode_state(snapshot(2)))
    with pytest.raises(client.WaitTimeoutError, match="did not reach 23 within 0 s: it is 22"):
        await client.wait_until(topics.settings, CLUSTER, FEATURE, 23, timeout_s=0)
    waiting = asyncio.create_task(
        client.wait_until(topics.settings, CLUSTER, FEATURE, 23, timeout_s=60)
    )
    await asyncio.sleep(0.3)
    topics.put(FEATURE_CHANGES, encode_output(change(3)))
    assert (await waiting).levels == {FEATURE: 23}


def test_a_gate_is_asked_for_levels(topics: ClientBus):
    """Of known clusters alone; a retired one is named, and a wait for it ends."""
    topics.put(STATE, encode_state(snapshot(2)), encode_state(snapshot(1, cluster="b")))
    problems: list[client.ClientError] = []
    with client.FeatureGate(topics.settings, on_problem=problems.append) as gate:
        assert gate.clusters == (CLUSTER, "b")
        assert (gate.level(CLUSTER, FEATURE), gate.level(CLUSTER, "kraft.version")) == (22, None)
        assert gate.at_least(CLUSTER, FEATURE, 22)
        assert not gate.at_least(CLUSTER, FEATURE, 23)
        with pytest.raises(client.UnknownClusterError, match=f"the bus has {CLUSTER}, b"):
            gate.level("c", FEATURE)
        topics.put(STATE, Message(CLUSTER.encode(), None, []))
        with pytest.raises(client.ClusterRetiredError):
            gate.wait(CLUSTER, FEATURE, 99, timeout_s=60)
        with pytest.raises(client.ClusterRetiredError):
            gate.level(CLUSTER, FEATURE)
        assert gate.error is None
    assert [type(problem) for problem in problems] == [client.ClusterRetiredError]
    assert gate.level("b", FEATURE) == 21  # a closed gate keeps what it knows


def test_what_a_reader_did_not_want_counts_as_processed(topics: ClientBus):
    """Messages of other clusters that expire later are no hole in those of this one."""
    store = client.MemoryOffsets()
    topics.put(FEATURE_CHANGES, *(encode_output(change(n, cluster="b")) for n in (1, 2, 3)))
    reading = sync.changes(topics.settings, offsets=store, cluster=CLUSTER)
    with contextlib.closing(reading) as changes:
        assert [each.revision for each in islice(changes, 2)] == [1, 2]
        topics.put(FEATURE_CHANGES, encode_output(change(3)))
        assert next(changes).revision == 3
    assert store.positions[topics.settings.topic(FEATURE_CHANGES)].offsets[1] == 5
