"""Brokers of three releases under our controllers, from the oldest level to the newest."""

import sys
from collections.abc import Iterator
from functools import partial
from itertools import count

import pytest

from featurewatch.controller.kraft import release_of
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.node import KafkaNode
from featurewatch.stack.kafka.specs import NEWEST_TESTED
from featurewatch.streams.types import METADATA_VERSION
from tests.reference.kraft.reference_cluster import (
    PARTITIONS,
    TOPIC,
    ReferenceCluster,
    reference_cluster,
    snapshot_levels,
)
from tests.stack.traffic import Traffic
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.nightly]

RELEASES = ("3.9.1", "4.3.1", NEWEST_TESTED)
FIRST = 7
"""3.3-IV3, the oldest level of brokers of 4.0 and later."""
SMALL = {
    "metadata.log.max.record.bytes.between.snapshots": "600",
    "metadata.max.retention.bytes": "8000",
}
"""A topic or two are enough for a snapshot, and the log before it is deleted."""


@pytest.fixture(scope="module")
def cluster(
    stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ReferenceCluster]:
    """A broker of each release, at the oldest level."""
    directory = tmp_path_factory.mktemp("releases")
    with reference_cluster(
        directory, stack_cache, RELEASES, level="3.3-IV3", properties=SMALL
    ) as found:
        yield found


def test_a_roll_through_all_levels(
    cluster: ReferenceCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every level is raised with traffic throughout; brokers that exclude the next one are rolled.

    A level that a broker excludes is refused before; after the roll it is raised (M-31). At each
    level every controller writes a snapshot.
    """
    newest = int(release_of(NEWEST_TESTED).newest(METADATA_VERSION))
    cluster.create_topic(TOPIC)
    assert eventually(cluster.partitions_in_sync)
    with Traffic(cluster.servers, TOPIC, PARTITIONS) as traffic:
        for level in range(FIRST + 1, newest + 1):
            for node in _excluding(cluster, level):
                refused = cluster.upgrade(level)
                assert f"Broker {node.id} only supports" in refused, refused
                node.stop()
                node.start(NEWEST_TESTED)
                assert eventually(cluster.partitions_in_sync)
            assert cluster.upgrade(level) == ""
            assert eventually(partial(_is_at, cluster, level))
            assert eventually(partial(_flows, traffic, traffic.acknowledged_count))
            numbers = count()
            assert eventually(partial(_have_snapshots, cluster, level, numbers)), level
        traffic.end_writing()
        assert eventually(lambda: traffic.unread_count == 0)
        with capsys.disabled():
            sys.stdout.write(f"\n  longest wait of a message {traffic.longest_wait_s():.2f} s")
    assert traffic.errors == []
    assert traffic.order_errors() == []
    assert "Traceback" not in cluster.logs()


def _is_at(cluster: ReferenceCluster, level: int) -> bool:
    return cluster.levels()[METADATA_VERSION] == level


def _have_snapshots(cluster: ReferenceCluster, level: int, numbers: Iterator[int]) -> bool:
    """Creates another topic; whether each controller has a snapshot of the level."""
    cluster.create_topic(f"at-level-{level}-{next(numbers)}")
    return all(level in snapshot_levels(node) for node in cluster.controllers)


def _flows(traffic: Traffic, before: int) -> bool:
    return traffic.acknowledged_count > before + 20


def _excluding(cluster: ReferenceCluster, level: int) -> list[KafkaNode]:
    return [
        node
        for node in cluster.brokers
        if level > release_of(node.release).newest(METADATA_VERSION)
    ]
