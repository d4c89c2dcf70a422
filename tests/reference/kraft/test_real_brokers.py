"""Real brokers of three releases under controllers of the reference, with traffic throughout."""

import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from featurewatch.controller.kraft import release_of
from featurewatch.controller.levels import metadata_version_names
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

pytestmark = pytest.mark.stack


SMALL = {
    "metadata.log.max.record.bytes.between.snapshots": "4000",
    "metadata.max.retention.bytes": "8000",
}
"""So that there are snapshots, and the log before them is deleted."""
EACH = pytest.mark.parametrize(
    "cluster",
    [
        "4.3.1",
        pytest.param("3.9.1", marks=pytest.mark.nightly),
        pytest.param(NEWEST_TESTED, marks=pytest.mark.nightly),
    ],
    indirect=True,
)


@pytest.fixture(scope="module")
def cluster(
    stack_cache: Cache,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[ReferenceCluster]:
    """Three brokers of a release, two levels below its newest."""
    release: str = request.param
    directory = tmp_path_factory.mktemp("reference")
    *_, level, _, _ = metadata_version_names()[: release_of(release).newest(METADATA_VERSION)]
    with reference_cluster(
        directory, stack_cache, [release] * 3, level=level, properties=SMALL
    ) as found:
        yield found


@EACH
def test_controllers_are_killed_and_levels_raised(
    cluster: ReferenceCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every acknowledged message is read, none out of order.

    Each controller is killed while it leads, and the level is raised through a broker, by Kafka's
    tool and by ours, which every broker then knows.
    """
    cluster.create_topic(TOPIC)
    assert eventually(cluster.partitions_in_sync)
    with Traffic(cluster.servers, TOPIC, PARTITIONS) as traffic:
        assert eventually(lambda: traffic.acknowledged_count > 200)
        for number in range(len(cluster.controllers)):
            leader = cluster.cluster.leader()
            leader.kill()
            took_s = cluster.create_topic(f"topic-{number}")
            waited_s = traffic.longest_wait_s()
            leader.start()
            with capsys.disabled():
                sys.stdout.write(
                    f"\n  controller {leader.id} killed: topic created after {took_s:.2f} s, "
                    f"longest wait of a message {waited_s:.2f} s"
                )
        before = traffic.acknowledged_count
        release = cluster.brokers[0].release
        newest = int(release_of(release).newest(METADATA_VERSION))
        cluster.kafka_features("upgrade", "--feature", f"metadata.version={newest - 1}")
        assert eventually(lambda: cluster.levels()["metadata.version"] == newest - 1)
        cluster.featurewatch(
            *("features", "upgrade", "--feature", f"metadata.version={newest}", "--yes"),
            *("--bootstrap-server", cluster.servers),
        )
        assert eventually(lambda: cluster.levels()["metadata.version"] == newest)
        assert eventually(lambda: traffic.acknowledged_count > before + 100)
        traffic.end_writing()
        assert eventually(lambda: traffic.unread_count == 0)
    assert traffic.errors == []
    assert traffic.order_errors() == []
    assert "Traceback" not in cluster.logs()


@EACH
@pytest.mark.nightly
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
    cluster.create_topic("afterwards")
    assert eventually(lambda: cluster.partitions_in_sync("afterwards"))


@pytest.mark.nightly
def test_both_kinds_of_controllers_in_one_quorum(stack_cache: Cache, tmp_path: Path) -> None:
    """A broker works under ours and under Kafka's, each of which takes over from the other.

    Who wins an election is partly chance, so leaders are deposed until both have led after another.
    Afterwards each kind has the same records at the same offsets.
    """
    with reference_cluster(tmp_path, stack_cache, ["4.3.1"], references=1, javas=2) as found:
        leaders = [found.cluster.leader()]
        found.create_topic("topic-0", 1)
        while not was_won_back(leaders) and len(leaders) < 14:
            leader = leaders[-1]
            leader.kill()
            found.create_topic(f"topic-{len(leaders)}", 1)
            leader.start()
            leaders.append(found.cluster.leader())
        assert was_won_back(leaders), leaders
        topics = found.admin.list_topics(timeout=30).topics
        assert {f"topic-{number}" for number in range(len(leaders))} <= set(topics)
        for node in found.controllers:
            node.stop()
        ours, *kafkas = found.controllers
        segment = f"{0:020}.log"
        written = (ours.metadata_log / segment).read_bytes()
        for other in kafkas:
            theirs = (other.metadata_log / segment).read_bytes().rstrip(b"\0")
            shared = min(len(written), len(theirs))
            assert shared > 1000
            assert written[:shared] == theirs[:shared]


def was_won_back(leaders: list[KafkaNode]) -> bool:
    """Whether ours has led after one of Kafka's, and one of Kafka's after ours."""
    kinds = [one.spec.is_reference for one in leaders]
    return {(True, False), (False, True)} <= {*pairwise(kinds)}
