"""Controllers of the reference are killed under a real broker: leaders, and at each fsync."""

import asyncio
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest

from featurewatch.reference.kraft.machines.batches import of_scanned
from featurewatch.reference.kraft.machines.controller.requests import CreatableTopic, CreateTopics
from featurewatch.reference.kraft.machines.metadata.records import Record, records_of
from featurewatch.reference.kraft.machines.metadata.replay import apply
from featurewatch.reference.kraft.machines.metadata.snapshots import at_level, load_snapshot
from featurewatch.reference.kraft.machines.metadata.state import EMPTY
from featurewatch.reference.kraft.wire.controller_messages import controller_request_message
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.node import KafkaNode
from featurewatch.stack.kafka.reference_controller import ReferenceController
from featurewatch.stack.process.ports import LOOPBACK
from featurewatch.stack.wire.connection import BlockingConnection
from featurewatch.streams.kraft.records.batch import RecordBatch, scan_batches
from featurewatch.streams.types import LOG_START
from tests.reference.kraft import crashing
from tests.reference.kraft.reference_cluster import (
    PARTITIONS,
    TOPIC,
    ReferenceCluster,
    paused,
    reference_cluster,
    snapshots,
)
from tests.reference.kraft.voter_process import described
from tests.stack.traffic import Traffic
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.nightly]

SMALL = {
    "metadata.log.max.record.bytes.between.snapshots": "2000",
    "metadata.max.retention.bytes": "3000",
}
"""So that there are snapshots, and the log before them is deleted."""
KILLED = 128 + 9
MOST_ELECTIONS = 10
ALONE_S = 5.0
"""A leader that nobody fetches from resigns sooner, and writes nothing afterwards."""


class CrashPoints:
    """Starts controllers with a planned crash, by a launcher that only tests have."""

    def __init__(self, found: ReferenceCluster, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cluster = found
        self.topics = 0
        self.hand_overs = 0
        self._planned: dict[int, tuple[str, str, str]] = {}
        original = ReferenceController._command

        def command(node: ReferenceController) -> list[str]:
            python, *rest = original(node)
            if (point := self._planned.pop(node.id, None)) is None:
                return [python, *rest]
            assert rest[:2] == ["-m", "featurewatch.reference.kraft"]
            return [python, str(Path(crashing.__file__)), *point, *rest[2:]]

        monkeypatch.setattr(ReferenceController, "_command", command)

    def crash(self, node: KafkaNode, effect: str, file: str, when: str) -> None:
        """Starts a controller again, makes it write until it has crashed, and starts it again."""
        point = effect, file, when
        self._start_planned(node, point)
        if effect == "Truncate":
            # An election may have been won by one that has the record of the other log.
            for _ in range(MOST_ELECTIONS):
                if node.running:
                    self._start_planned(node, point)
        needs_epoch = effect == "Persist" or (effect == "Flush" and file != "log")
        if node.running and needs_epoch:
            leader = self.cluster.cluster.leader()
            leader.kill()
            if leader.id == node.id:  # it wrote before it led
                self._planned[node.id] = point
            leader.start(wait=False)
        assert eventually(lambda: not node.running or self.create()), (node, point)
        assert node._process is not None
        assert node._process.exit_code == KILLED, (node, point)
        node.start()

    def _start_planned(self, node: KafkaNode, point: tuple[str, str, str]) -> None:
        """Starts a controller that has something to do at a point, until it crashes or follows."""
        effect, _, _ = point
        if effect == "Truncate":
            self._diverge(node)
        node.kill()
        if effect == "InstallSnapshot":
            self._outrun(node)
        self._planned[node.id] = point
        node.start(wait=False)
        assert eventually(lambda: not node.running or follows(self.cluster, node)), (node, point)

    def create(self) -> bool:
        """Creates another topic; always False."""
        self.cluster.create_topic(f"topic-{self.topics}", 1)
        self.topics += 1
        return False

    def _diverge(self, node: KafkaNode) -> None:
        """Kills a controller whose log ends with a record that no other one has."""
        others = [one for one in self.cluster.controllers if one.id != node.id]
        for _ in range(MOST_ELECTIONS):
            self.hand_overs += 1
            self.cluster.hand_over(node, f"handed-over-{self.hand_overs}")
            with paused(others), ThreadPoolExecutor(2) as senders:
                # The first record answers Fetches that were already sent.
                is_written = all(
                    self._is_written_alone(node, senders, f"diverged-{self.hand_overs}-{number}")
                    for number in range(2)
                )
                node.kill()  # also ends the requests
            if is_written:
                return
            node.start(wait=False)
        raise AssertionError(f"{node} resigned before it had written")

    def _is_written_alone(self, node: KafkaNode, senders: Executor, topic: str) -> bool:
        """Whether a leader has written the records of a topic before it had to resign.

        It is asked without a broker: a broker has one request at a time forwarded, and the first
        one has no answer before it is committed.
        """
        size = log_size(node)
        senders.submit(ask_for_topic, node, topic)
        return eventually(lambda: log_size(node) > size, ALONE_S)

    def _outrun(self, node: KafkaNode) -> None:
        """Creates topics until the others have deleted their logs beyond the end of this one."""
        end = log_end(node)
        others = [one for one in self.cluster.controllers if one.id != node.id]

        def is_outrun() -> bool:
            self.create()
            return all(log_start(one) > end for one in others)

        assert eventually(is_outrun)


@pytest.mark.parametrize("effect", ["", *crashing.POINTS], ids=["leaders", *crashing.POINTS])
def test_controllers_are_killed_at_every_write(
    stack_cache: Cache,
    tmp_path: Path,
    effect: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each leader in turn, or each controller right before and after it makes a file durable.

    The writes are those of an effect that the voter has on the disk. Every acknowledged message
    is read, every topic whose creation was answered is there, and at the end the logs and the
    states of all controllers are the same.
    """
    with reference_cluster(tmp_path, stack_cache, ["4.3.1"], properties=SMALL) as found:
        points = CrashPoints(found, monkeypatch)
        found.create_topic(TOPIC, 1)
        began = time.monotonic()
        crashes = 0
        with Traffic(found.servers, TOPIC, PARTITIONS) as traffic:
            assert eventually(lambda: traffic.acknowledged_count > 100)
            killed = set[int]()
            while not effect and len(killed) < 3:
                leader = found.cluster.leader()
                leader.kill()
                crashes += 1
                killed.add(leader.id)
                points.create()
                leader.start()
            for file, when in product(crashing.POINTS.get(effect, ()), ("before", "after")):
                points.crash(found.controllers[crashes % 3], effect, file, when)
                crashes += 1
            traffic.end_writing()
            assert eventually(lambda: traffic.unread_count == 0)
            count, wait_s = traffic.acknowledged_count, traffic.longest_wait_s()
        assert traffic.errors == []
        assert traffic.order_errors() == []
        # A snapshot may just have replaced the whole log of one.
        assert eventually(lambda: points.create() or share_batches(found.controllers))
        expected = {f"topic-{number}" for number in range(points.topics)}
        assert eventually(lambda: expected <= set(found.admin.list_topics(timeout=30).topics))
        for broker in found.brokers:
            broker.stop()
        committed = wait_until_equal(found)
        for node in found.controllers:
            node.kill()
        assert "Traceback" not in found.logs()
        logs = [log_of(node, committed) for node in found.controllers]
        # A snapshot may have replaced the whole log of one again; the states below have all of it.
        first = max(map(log_start, found.controllers))
        shared = [{base: data for base, data in log.items() if base >= first} for log in logs]
        assert shared[0] or not all(logs)
        assert shared[0] == shared[1] == shared[2]
        states = [records_at(node, committed) for node in found.controllers]
        assert states[0] == states[1] == states[2]
    with capsys.disabled():
        sys.stdout.write(
            f"\n  {effect or 'leaders'}: {crashes} crashes, {count} messages,"
            f" {points.topics} topics and {committed} records in {time.monotonic() - began:.0f} s;"
            f" longest wait of a message {wait_s:.1f} s"
        )


def ask_for_topic(node: KafkaNode, topic: str) -> None:
    """Asks a controller for a topic; raises when the controller ends before it has answered."""
    port = node.addresses.controller
    assert port is not None
    request = controller_request_message(CreateTopics((CreatableTopic(topic, 1, 1),)), 7)
    with BlockingConnection(LOOPBACK, port, 60.0) as connection:
        connection.request(request)


def follows(found: ReferenceCluster, node: KafkaNode) -> bool:
    """Whether a leader knows that a controller has what is committed, and nothing else before it.

    A controller can answer before that, while its log still has to be cut off.
    """
    port = found.cluster.leader().addresses.controller
    assert port is not None
    quorum = asyncio.run(described(port))
    return quorum is not None and any(
        one.replica_id == node.id and one.log_end_offset >= quorum.high_watermark
        for one in quorum.current_voters
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


def log_size(node: KafkaNode) -> int:
    """The bytes in the log of a controller."""
    return sum(segment.stat().st_size for segment in node.metadata_log.glob("*.log"))


def log_start(node: KafkaNode) -> int:
    """The first offset in the log of a controller."""
    return min(int(segment.stem) for segment in node.metadata_log.glob("*.log"))


def log_end(node: KafkaNode) -> int:
    """The offset after the last one in the log of a controller."""
    return max([log_start(node), *(batch.last_offset + 1 for batch in batches_of(node))])


def share_batches(nodes: Sequence[KafkaNode]) -> bool:
    """Whether there are records that the logs of all controllers have."""
    return min(map(log_end, nodes)) > max(map(log_start, nodes))


def batches_of(node: KafkaNode) -> list[RecordBatch]:
    """The batches in the log of a controller; a crash may have left the last one incomplete."""
    found: list[RecordBatch] = []
    for segment in sorted(node.metadata_log.glob("*.log")):
        found.extend(scan_batches(segment.read_bytes()).batches)
    return found


def log_of(node: KafkaNode, committed: int) -> dict[int, bytes]:
    """The committed batches in the log of a controller, by their first offset."""
    return {
        batch.base_offset: batch.buffer[batch.at : batch.end]
        for batch in batches_of(node)
        if batch.last_offset < committed
    }


def records_at(node: KafkaNode, committed: int) -> tuple[Record, ...]:
    """The records of the state that a controller has on its disk, from its snapshot on."""
    found = snapshots(node)
    start = min(found, default=LOG_START)
    state = load_snapshot(start, found[start]) if found else EMPTY
    for batch in batches_of(node):
        is_after = start.offset <= batch.base_offset and batch.last_offset < committed
        if is_after and not batch.control:
            for offset, record in records_of(of_scanned(batch)):
                state = apply(state, offset, record)
    return tuple(at_level(state).records)
