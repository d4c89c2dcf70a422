"""Controllers of the reference are killed under a real broker: leaders, and at each write."""

import asyncio
import sys
import time
from itertools import product
from pathlib import Path

import pytest

from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.node import KafkaNode
from featurewatch.stack.kafka.reference_controller import ReferenceController
from featurewatch.streams.kraft.records.batch import scan_batches
from tests.reference.kraft import crashing
from tests.reference.kraft.reference_cluster import (
    PARTITIONS,
    TOPIC,
    ReferenceCluster,
    reference_cluster,
)
from tests.reference.kraft.voter_process import described
from tests.stack.traffic import Traffic
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.nightly]

SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": "3000"}
NEEDS_ELECTION = ("quorum-state", "epochs")
KILLED = 128 + 9


class CrashPoints:
    """Starts controllers with a planned crash, by a launcher that only tests have."""

    def __init__(self, found: ReferenceCluster, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cluster = found
        self.topics = 0
        self._planned: dict[int, tuple[str, str]] = {}
        original = ReferenceController._command

        def command(node: ReferenceController) -> list[str]:
            python, *rest = original(node)
            if (point := self._planned.pop(node.id, None)) is None:
                return [python, *rest]
            assert rest[:2] == ["-m", "featurewatch.reference.kraft"]
            return [python, str(Path(crashing.__file__)), *point, *rest[2:]]

        monkeypatch.setattr(ReferenceController, "_command", command)

    def crash(self, node: KafkaNode, kind: str, when: str) -> None:
        """Starts a controller again, makes it write until it has crashed, and starts it again."""
        node.kill()
        self._planned[node.id] = (kind, when)
        node.start(wait=False)
        assert eventually(lambda: not node.running or node.not_ready_reason() is None)
        if kind in NEEDS_ELECTION and node.running:
            leader = self.cluster.cluster.leader()
            leader.kill()
            if leader.id == node.id:  # it wrote before it led
                self._planned[node.id] = (kind, when)
            leader.start(wait=False)
        assert eventually(lambda: not node.running or self._create()), (node, kind, when)
        assert node._process is not None
        assert node._process.exit_code == KILLED
        node.start()

    def _create(self) -> bool:
        """Creates another topic; always False."""
        self.cluster.create_topic(f"topic-{self.topics}", 1)
        self.topics += 1
        return False


def test_controllers_are_killed_at_every_write(
    stack_cache: Cache,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each leader in turn, then each controller right before and after it makes a file durable.

    Every acknowledged message is read, every topic whose creation was answered is there, and at the
    end the logs of all controllers are the same.
    """
    with reference_cluster(tmp_path, stack_cache, ["4.3.1"], properties=SNAPSHOTS) as found:
        points = CrashPoints(found, monkeypatch)
        found.create_topic(TOPIC, 1)
        began = time.monotonic()
        with Traffic(found.servers, TOPIC, PARTITIONS) as traffic:
            assert eventually(lambda: traffic.acknowledged_count > 100)
            killed = set[int]()
            while len(killed) < 3:
                leader = found.cluster.leader()
                leader.kill()
                killed.add(leader.id)
                points._create()
                leader.start()
            kinds = dict.fromkeys(crashing.KINDS.values())
            for number, (kind, when) in enumerate(product(kinds, ("before", "after"))):
                points.crash(found.controllers[number % 3], kind, when)
            traffic.end_writing()
            assert eventually(lambda: traffic.unread_count == 0)
            count, wait_s = traffic.acknowledged_count, traffic.longest_wait_s()
        assert traffic.errors == []
        assert traffic.order_errors() == []
        expected = {f"topic-{number}" for number in range(points.topics)}
        assert eventually(lambda: expected <= set(found.admin.list_topics(timeout=30).topics))
        for broker in found.brokers:
            broker.stop()
        committed = wait_until_equal(found)
        for node in found.controllers:
            node.kill()
        assert "Traceback" not in found.logs()
        logs = [log_of(node, committed) for node in found.controllers]
        assert logs[0] == logs[1] == logs[2]
        snapshots = {one.name for node in found.controllers for one in checkpoints(node)}
        assert snapshots
    with capsys.disabled():
        sys.stdout.write(
            f"\n  {count} messages, {points.topics} topics and {committed} records in"
            f" {time.monotonic() - began:.0f} s; longest wait of a message {wait_s:.1f} s"
        )


def wait_until_equal(found: ReferenceCluster) -> int:
    """Waits until all controllers have what is committed; its end."""
    port = found.cluster.leader().addresses.controller
    assert port is not None
    committed = -1

    def is_equal() -> bool:
        nonlocal committed
        quorum = asyncio.run(described(port))
        if quorum is None:
            return False
        committed = quorum.high_watermark
        return min(voter.log_end_offset for voter in quorum.current_voters) >= committed

    assert eventually(is_equal)
    return committed


def log_of(node: KafkaNode, committed: int) -> list[bytes]:
    """The committed batches in the log of a controller."""
    (segment,) = node.metadata_log.glob("*.log")
    scan = scan_batches(segment.read_bytes())
    assert not scan.error
    return [
        batch.buffer[batch.at : batch.end]
        for batch in scan.batches
        if batch.last_offset < committed
    ]


def checkpoints(node: KafkaNode) -> list[Path]:
    """The snapshots of a controller."""
    return [*node.metadata_log.glob("*.checkpoint")]
