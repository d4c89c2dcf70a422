"""Brokers of three releases under our controllers, from the oldest level to the newest."""

import sys
from collections.abc import Iterator
from functools import partial

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
)
from tests.stack.traffic import Traffic
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.nightly]

RELEASES = ("3.9.1", "4.3.1", NEWEST_TESTED)
FIRST = 7
"""3.3-IV3, the oldest level of brokers of 4.0 and later."""
SMALL = {
    "metadata.log.max.record.bytes.between.snapshots": "4000",
    "metadata.max.retention.bytes": "8000",
}
"""So that there are many snapshots, and the log before them is deleted."""


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

    A level that a broker excludes is refused before; after the roll it is raised (M-31).
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
            if level % 4 == 0:
                cluster.create_topic(f"at-level-{level}")
        traffic.end_writing()
        assert eventually(lambda: traffic.unread_count == 0)
        with capsys.disabled():
            sys.stdout.write(f"\n  longest wait of a message {traffic.longest_wait_s():.2f} s")
    assert traffic.errors == []
    assert traffic.order_errors() == []
    assert "Traceback" not in cluster.logs()


def _is_at(cluster: ReferenceCluster, level: int) -> bool:
    return cluster.levels()[METADATA_VERSION] == level


def _flows(traffic: Traffic, before: int) -> bool:
    return traffic.acknowledged_count > before + 20


def _excluding(cluster: ReferenceCluster, level: int) -> list[KafkaNode]:
    return [
        node
        for node in cluster.brokers
        if level > release_of(node.release).newest(METADATA_VERSION)
    ]


def test_a_broker_that_lags_loads_a_snapshot(cluster: ReferenceCluster) -> None:
    """It was down while the log that it lacks was deleted, so it fetches our snapshot."""
    broker = cluster.brokers[-1]
    broker.stop()
    for number in range(30):
        cluster.create_topic(f"while-down-{number}", 2)
    told = broker.log.stat().st_size
    broker.start()
    with broker.log.open("rb") as log:
        log.seek(told)
        assert b"Fetching snapshot OffsetAndEpoch" in log.read()
    assert eventually(cluster.partitions_in_sync), cluster.partitions()
