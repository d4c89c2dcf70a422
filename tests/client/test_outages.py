"""Readers and gates while the bus's broker, its topics and the reader itself are taken away."""

import contextlib
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from featurewatch import client
from featurewatch.client import sync
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import ClusterSpec, single_bus
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.codec.outputs import encode_output, encode_state
from featurewatch.streams.topics import FEATURE_CHANGES, STATE
from tests.client.bus import ClientBus
from tests.client.published import CLUSTER, FEATURE, change, snapshot
from tests.waiting import eventually

pytestmark = pytest.mark.stack

_READER = """
import sys
from featurewatch.client import BusSettings, FileOffsets
from featurewatch.client.sync import changes
bus = BusSettings(sys.argv[1], prefix=sys.argv[2])
for change in changes(bus, offsets=FileOffsets(sys.argv[3])):
    print(change.revision, flush=True)
"""


def _put(topics: ClientBus, *revisions: int) -> None:
    topics.put(FEATURE_CHANGES, *(encode_output(change(each)) for each in revisions))


def test_a_bus_that_is_killed_is_waited_for(make_cluster: Callable[[ClusterSpec], Cluster]) -> None:
    """The gate answers meanwhile and says that it may be outdated; no change is lost or doubled."""
    bus = make_cluster(single_bus())
    topics = ClientBus(bus.bootstrap_servers)
    topics.put(STATE, encode_state(snapshot(1)))
    _put(topics, 1)
    with (
        client.FeatureGate(topics.settings) as gate,
        contextlib.closing(sync.changes(topics.settings)) as changes,
    ):
        assert next(changes).revision == 1
        bus.node(1).kill()
        assert eventually(lambda: gate.error is not None)
        assert gate.level(CLUSTER, FEATURE) == 21
        bus.node(1).start()
        _put(topics, 2, 3)
        assert [each.revision for each in islice(changes, 2)] == [2, 3]
        assert gate.wait(CLUSTER, FEATURE, 23, timeout_s=120).revision == 3
        assert eventually(lambda: gate.error is None)


def test_a_reader_that_is_killed_continues(bus: Cluster, tmp_path: Path) -> None:
    """By kill -9, at any place: what it had not saved comes again, and nothing is missing."""
    topics = ClientBus(bus.bootstrap_servers)
    _put(topics, *range(1, 6))
    arguments = (bus.bootstrap_servers, topics.settings.prefix, tmp_path / "offsets.json")

    def read_until(last: int) -> list[int]:
        command = [sys.executable, "-c", _READER, *map(str, arguments)]
        read: list[int] = []
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                read.append(int(line))
                if read[-1] == last:
                    process.kill()
        return read

    first = read_until(3)
    _put(topics, 6, 7)
    second = read_until(7)
    assert first[:3] == [1, 2, 3]
    assert second == [*range(second[0], 8)]
    assert second[0] <= first[-1] + 1


def test_what_happened_to_a_topic_is_named(bus: Cluster) -> None:
    """Messages that expired unread, and a topic that was recreated and is longer than before."""
    topics = ClientBus(bus.bootstrap_servers)
    admin = AdminClient(topics.settings.client())
    name = topics.settings.topic(FEATURE_CHANGES)
    store = client.MemoryOffsets()
    problems: list[client.ClientError] = []

    def read(count: int) -> list[int]:
        reading = sync.changes(topics.settings, offsets=store, on_problem=problems.append)
        with contextlib.closing(reading) as changes:
            return [each.revision for each in islice(changes, count)]

    _put(topics, 1, 2, 3, 4)
    assert read(2) == [1, 2]
    for future in admin.delete_records([TopicPartition(name, 1, 3)]).values():
        future.result()
    assert read(1) == [4]
    lost, revisions = problems
    assert isinstance(lost, client.HoleError)
    assert (str(lost), lost.args) == (
        f"{name} partition 1: the messages from offset 1 to below 3 expired before they were read",
        lost.args,
    )
    assert isinstance(revisions, client.HoleError)
    problems.clear()
    reading = sync.changes(topics.settings, offsets=store, on_problem=problems.append)
    with contextlib.closing(reading) as changes:
        assert next(changes).revision == 4
        for future in admin.delete_topics([name]).values():
            future.result()
        assert eventually(lambda: name not in admin.list_topics(timeout=10).topics)
        ensure_topics(topics.settings, [FEATURE_CHANGES])
        _put(topics, *range(1, 9))
        assert next(changes).revision == 1
    assert type(problems[-1]) is client.TopicRecreatedError
