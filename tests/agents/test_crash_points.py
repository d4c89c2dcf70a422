"""A worker is killed between the steps of one event: nothing is lost, and duplicates share keys.

The event raises metadata.version above what a node supports, so that it produces a change, alerts,
a snapshot and several rows.
"""

import contextlib
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from pathlib import Path

import pytest

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.codec.outputs import decode_alert, decode_change, decode_snapshot
from featurewatch.streams.outputs import Alert, AlertState, FeatureChange, Snapshot
from featurewatch.streams.topics import ALERTS, EPOCHS, FEATURE_CHANGES, METADATA_LOG
from tests.agents.crashing import LEVEL, POINTS
from tests.agents.events import following, levels, registration
from tests.paths import ROOT

pytestmark = pytest.mark.stack

DEADLINE_S = 60


def _start(point: str, bus: BusSettings, directory: Path) -> subprocess.Popen[bytes]:
    arguments = [point, bus.bootstrap_servers, bus.prefix, str(directory)]
    command = [sys.executable, "-m", "tests.agents.crashing", *arguments]
    with (directory / "worker.log").open("ab") as log:
        return subprocess.Popen(command, cwd=ROOT, stderr=log)


async def test_every_output_once_by_key_after_a_kill_at_each_point(
    bus: Cluster, tmp_path: Path
) -> None:
    """The worker is killed at each point in turn, at the same event; the last worker continues."""
    prefix = f"crash-{uuid.uuid4().hex[:8]}"
    settings = BusSettings(bus.bootstrap_servers, prefix=prefix, partitions=2, replication_factor=1)
    ensure_topics(settings)
    async with Publisher(settings) as publisher:
        for event in (
            registration(1, 1, (1, 19)),
            levels(2, {"metadata.version": 19}),
            following(2),
            levels(3, {"metadata.version": LEVEL}),
            registration(4, 1, (7, LEVEL)),
        ):
            await publisher.publish(METADATA_LOG, event)
    for point in POINTS:
        process = _start(point, settings, tmp_path)
        code = process.wait(DEADLINE_S)
        assert code == -signal.SIGKILL, (point, (tmp_path / "worker.log").read_text()[-3000:])
    process = _start("nowhere", settings, tmp_path)
    try:
        _until_resolved(settings)
    finally:
        process.kill()
        process.wait()
    _check(settings)


def _until_resolved(bus: BusSettings) -> None:
    deadline = time.monotonic() + DEADLINE_S
    with contextlib.closing(TopicReader(bus, ALERTS)) as reader:
        newest: dict[str, AlertState] = {}
        while not newest or AlertState.FIRING in newest.values():
            assert time.monotonic() < deadline, newest
            for message in reader.poll(0.2):
                alert = decode_alert(message.value())
                newest[alert.id] = alert.state


def _check(bus: BusSettings) -> None:
    changes, alerts, snapshots = _outputs(bus)
    by_key = {change.id: (change.after, change.revision) for change in changes}
    assert sorted(by_key.values()) == [(19, 1), (LEVEL, 2)]
    for change in changes:
        assert by_key[change.id] == (change.after, change.revision)
    publications = Counter(change.id for change in changes if change.after == LEVEL)
    assert publications.total() >= 2, "nothing was published twice: no point was reached"
    digests = {(snapshot.revision, snapshot.digest) for snapshot in snapshots}
    assert sorted(revision for revision, _ in digests) == [1, 2]
    states: dict[str, list[AlertState]] = {}
    for alert in alerts:
        states.setdefault(alert.rule, []).append(alert.state)
    assert {"incompatible-node", "level-above-support"} <= states.keys()
    for rule, alert_states in states.items():
        assert alert_states[0] is AlertState.FIRING, rule
        assert alert_states[-1] is AlertState.RESOLVED, rule


def _outputs(
    bus: BusSettings,
) -> tuple[list[FeatureChange], list[Alert], list[Snapshot]]:
    with contextlib.closing(TopicReader(bus, FEATURE_CHANGES)) as reader:
        changes = [decode_change(message.value()) for message in reader.read_existing()]
    with contextlib.closing(TopicReader(bus, ALERTS)) as reader:
        alerts = [decode_alert(message.value()) for message in reader.read_existing()]
    with contextlib.closing(TopicReader(bus, EPOCHS)) as reader:
        snapshots = [decode_snapshot(message.value()) for message in reader.read_existing()]
    return changes, alerts, snapshots
