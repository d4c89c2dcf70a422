"""A worker that follows operations is killed in the middle of them: each is published once."""

import contextlib
import time
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.outputs import decode_alert, decode_operation
from featurewatch.streams.outputs import Alert, Operation, OperationKind, OperationPhase
from featurewatch.streams.topics import ALERTS, OPERATIONS
from tests.integration.kraft.support import pause, reassign, resume
from tests.processes import Process, wait_ready

pytestmark = [pytest.mark.stack, pytest.mark.nightly]

DEADLINE_S = 90.0
Step = tuple[str, str, str]


class PublishedSteps:
    """The messages on the topic of operations about the topics of a test."""

    def __init__(self, settings: BusSettings, topics: list[str]) -> None:
        self._settings = settings
        self._topics = topics
        self.published: list[Operation] = []

    def read(self) -> list[Step]:
        """The operation, kind and phase of each step, once by ``ce_id``, in order."""
        with contextlib.closing(TopicReader(self._settings, OPERATIONS)) as reader:
            messages = [*reader.read_existing()]
        by_id: dict[str, Operation] = {}
        for message in messages:
            step = decode_operation(message.value())
            header = dict(message.headers() or [])["ce_id"]
            assert header == step.id.encode()
            if step.topic in self._topics:
                known = by_id.setdefault(step.id, step)
                assert _content(known) == _content(step)
        self.published = [*by_id.values()]
        return [(step.operation, str(step.kind), str(step.phase)) for step in by_id.values()]

    def until(self, kind: OperationKind, phase: OperationPhase, count: int = 1) -> None:
        """Waits until so many steps of this kind are there."""
        deadline = time.monotonic() + DEADLINE_S
        while Counter(step[1:] for step in self.read())[kind, phase] < count:
            assert time.monotonic() < deadline, (kind, phase, self.published)
            time.sleep(0.3)


def _content(step: Operation) -> tuple[object, ...]:
    return (step.operation, step.kind, step.phase, step.summary, step.offset, step.append_ms)


def test_a_killed_worker_publishes_each_step_once(
    quorum_430: Cluster, bus: Cluster, tmp_path: Path
) -> None:
    """A creation and a deletion while it is dead, a reassignment that waits while it dies: each
    begins, moves and ends once by ``ce_id``, in order, and no alert is about them."""
    cluster = quorum_430
    leader = cluster.leader().id
    waiting, *others = sorted(cluster.members, key=lambda node: node.id == leader)
    first, second = (node.id for node in others)
    prefix = f"kill-{cluster.cluster_id}"
    settings = BusSettings(bus.bootstrap_servers, prefix=prefix, replication_factor=1)
    on_bus = ["--bus", bus.bootstrap_servers, "--prefix", prefix, "--operations"]
    watch = ["watch", "--controllers", cluster.controllers, "--cluster-id", cluster.cluster_id]
    worker = Process("worker", ["worker", *on_bus], tmp_path)
    processes = [Process("watch", [*watch, *on_bus], tmp_path), worker]
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    moved, short_lived = "killed-moved", "killed-short-lived"
    steps = PublishedSteps(settings, [moved, short_lived])

    def create(topic: str) -> None:
        new = NewTopic(topic, 2, replica_assignment=[[first], [first]])
        admin.create_topics([new])[topic].result(DEADLINE_S)

    try:
        for process in processes:
            process.start()
        wait_ready(processes)
        create(moved)
        worker.kill()
        create(short_lived)
        worker.start()
        pause(waiting)
        try:
            reassign(others[0], moved, 0, [second, waiting.id])
            steps.until(OperationKind.REASSIGNMENT, OperationPhase.PROGRESSED)
            worker.kill()
        finally:
            resume(waiting)
        admin.delete_topics([short_lived])[short_lived].result(DEADLINE_S)
        worker.start()
        steps.until(OperationKind.REASSIGNMENT, OperationPhase.COMPLETED)
        admin.delete_topics([moved])[moved].result(DEADLINE_S)
        steps.until(OperationKind.TOPIC_DELETION, OperationPhase.COMPLETED, 2)
        alerts = _alerts(settings)
    finally:
        for process in processes:
            process.kill()
    counts = Counter(step[1:] for step in steps.read())
    assert counts == {
        ("topic-creation", "completed"): 2,
        ("reassignment", "began"): 1,
        ("reassignment", "progressed"): 1,
        ("reassignment", "completed"): 1,
        ("topic-deletion", "completed"): 2,
    }, steps.published
    phases = [step[2] for step in steps.read() if step[1] == "reassignment"]
    assert phases == ["began", "progressed", "completed"]
    assert worker.starts == 3
    assert "illegal-partition-change" not in alerts
    assert not [alert for alert in alerts.values() if moved in alert.summary]


def _alerts(settings: BusSettings) -> dict[str, Alert]:
    """The alerts that were raised, by rule."""
    with contextlib.closing(TopicReader(settings, ALERTS)) as reader:
        alerts = [decode_alert(message.value()) for message in reader.read_existing()]
    return {alert.rule: alert for alert in alerts}
