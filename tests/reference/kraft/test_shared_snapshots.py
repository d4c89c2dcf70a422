"""Controllers of both kinds start from snapshots that the other kind wrote."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.node import KafkaNode
from tests.conformance.dump_log import differences, kafkas, ours
from tests.reference.kraft.reference_cluster import ReferenceCluster, reference_cluster
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.nightly]

RELEASE = "4.3.1"
SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": "2000"}
MOST_ELECTIONS = 20


class Quorum:
    """Two controllers of ours and one of Kafka's, with a broker."""

    def __init__(self, found: ReferenceCluster) -> None:
        self.cluster = found
        self.first, self.second, self.java = found.controllers
        self.topics = 0

    def create(self) -> None:
        """Creates another topic."""
        self.cluster.create_topic(f"topic-{self.topics}", 1)
        self.topics += 1

    def lead(self, condition: Callable[[KafkaNode], bool]) -> KafkaNode:
        """Kills leaders until one is as wanted; each election is followed by a new topic."""
        for _ in range(MOST_ELECTIONS):
            leader = self.cluster.cluster.leader()
            if condition(leader):
                return leader
            leader.kill()
            self.create()
            leader.start()
        raise AssertionError("none such was elected")

    def begin_empty(self, node: KafkaNode, leader: KafkaNode) -> Path:
        """Starts a controller with an empty log; the snapshot of the leader that it loaded."""
        while not snapshots(leader):
            self.create()
        node.kill()
        shutil.rmtree(node.metadata_log)
        node.start()
        assert eventually(lambda: bool(snapshots(node)))
        loaded = min(snapshots(node))
        assert (leader.metadata_log / loaded.name).read_bytes() == loaded.read_bytes()
        first = (
            f"{loaded.name.split('-')[0]}.log"  # the log is replaced after the snapshot is there
        )
        assert eventually(lambda: [one.name for one in node.metadata_log.glob("*.log")] == [first])
        return loaded


def snapshots(node: KafkaNode) -> list[Path]:
    """The snapshots of a controller beside that of the format."""
    found = node.metadata_log.glob("*.checkpoint")
    return [one for one in found if int(one.name.split("-")[0]) > 0]


def copied(file: Path, directory: Path) -> Path:
    """A copy of a file, in a directory that outlives the cluster."""
    directory.mkdir()
    return Path(shutil.copy(file, directory / file.name))


def test_each_kind_starts_from_a_snapshot_of_the_other(
    stack_cache: Cache, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And leads afterwards: all topics are known, and the broker creates more.

    Kafka's tool and our reader read both snapshots alike.
    """
    with reference_cluster(
        tmp_path / "cluster", stack_cache, [RELEASE], references=2, javas=1, properties=SNAPSHOTS
    ) as found:
        quorum = Quorum(found)
        leader = quorum.lead(lambda one: one.spec.is_reference)
        ours_loaded = quorum.begin_empty(quorum.java, leader)
        copies = [copied(ours_loaded, tmp_path / "from-ours")]
        leader = quorum.lead(lambda one: not one.spec.is_reference)
        quorum.create()
        kafkas_loaded = quorum.begin_empty(quorum.first, leader)
        copies.append(copied(kafkas_loaded, tmp_path / "from-kafkas"))
        quorum.lead(lambda one: one.id == quorum.first.id)
        quorum.create()
        expected = {f"topic-{number}" for number in range(quorum.topics)}
        assert eventually(lambda: expected <= set(found.admin.list_topics(timeout=30).topics))
        assert "Traceback" not in found.logs()
    for copy in copies:
        assert differences(kafkas(copy, RELEASE, stack_cache), ours(copy)) == []
    with capsys.disabled():
        sys.stdout.write(
            f"\n  Kafka's started from {ours_loaded.name}, ours from {kafkas_loaded.name};"
            f" {quorum.topics} topics"
        )
