"""`up` on a bus of three brokers as Kafka sets it up, which it watches too.

It takes three minutes a release.
"""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from featurewatch.cli.commands.demo.summary import levels_on_disk
from featurewatch.controller.kraft import release_of
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import combined
from featurewatch.streams.bus.errors import BusUnavailableError
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.outputs import decode_alert, decode_change
from featurewatch.streams.outputs import Alert, AlertState
from featurewatch.streams.topics import ALERTS, FEATURE_CHANGES, METADATA_LOG, Topic
from tests.faults.traffic import set_level
from tests.process_logs import started
from tests.processes import Process, free_port, is_ready, wait_ready
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.nightly, pytest.mark.releases("4.3.0")]

_AWAY_S = 20.0
_FEATURE = "group.version"


@pytest.fixture(scope="module")
def bus(
    release: str, stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Three nodes, whose internal topics have three replicas."""
    directory = tmp_path_factory.mktemp("three") / "cluster"
    spec = combined([release] * 3)
    with started(Cluster(spec, directory, cache=stack_cache, temporary=True)) as cluster:
        yield cluster


def _up(bus: Cluster, prefix: str, directory: Path) -> Process:
    on_bus = ["--bus", bus.bootstrap_servers, "--prefix", prefix]
    watched = ["--controllers", bus.controllers, "--servers", bus.bootstrap_servers]
    ports = ("FEATUREWATCH_WEB__SOURCE_PORT", "FEATUREWATCH_WEB__PAGE_PORT")
    environment = {name: str(free_port()) for name in ports}
    return Process(prefix, ["up", *watched, *on_bus], directory, environment)


def test_the_first_start_is_as_good_as_any(bus: Cluster, tmp_path: Path) -> None:
    """Topics that were just made are not known to all brokers at once."""
    for number in range(12):
        up = _up(bus, f"first-{number}", tmp_path)
        up.start()
        try:
            wait_ready([up])
            assert up.ended is None, up.log.read_text()
        finally:
            up.kill()


def test_a_broker_that_is_killed_fires_once(release: str, bus: Cluster, tmp_path: Path) -> None:
    """The topics have three replicas: nothing is lost, repeated, or out of order.

    Whatever fires does so once, and resolves.
    """
    if _FEATURE not in release_of(release).supported:
        pytest.skip(f"Kafka {release} has no level that can be raised and lowered again")
    up = _up(bus, "killed", tmp_path)
    settings = BusSettings(bus.bootstrap_servers, prefix="killed")
    up.start()
    try:
        wait_ready([up])
        before = len(_read(settings, ALERTS))
        bus.node(2).kill()
        end_s = time.monotonic() + _AWAY_S
        level = 0
        while time.monotonic() < end_s:
            set_level([str(bus.node(1).broker)], _FEATURE, level)
            level = 1 - level
            time.sleep(1)  # changes continue while it is down
        bus.node(2).start()
        set_level([str(bus.node(1).broker)], _FEATURE, level)
        truth = levels_on_disk(bus)
        assert eventually(lambda: sorted(_levels(settings)) == sorted(truth), 60)
        assert _of_feature(_levels(settings)) == _of_feature(truth)
        assert len(_of_feature(truth)) > _AWAY_S / 4
        assert eventually(lambda: is_ready(up.port) and _firing(settings) == [], 60)
        assert up.ended is None, up.log.read_text()
    finally:
        up.kill()
    alerts = [decode_alert(value) for _, value in _read(settings, ALERTS)][before:]
    by_id: dict[str, list[Alert]] = {}
    for alert in alerts:
        assert alert.since_ms <= alert.at_ms
        by_id.setdefault(alert.id, []).append(alert)
    for history in by_id.values():
        states = [alert.state for alert in history]
        assert states == [AlertState.FIRING, AlertState.RESOLVED], history
    times = [time_ms for time_ms, _ in _read(settings, METADATA_LOG)]
    assert times == sorted(times)


def _read(settings: BusSettings, topic: Topic) -> list[tuple[int, bytes]]:
    with contextlib.closing(TopicReader(settings, topic)) as reader:
        return [
            (message.timestamp()[1], message.value() or b"") for message in reader.read_existing()
        ]


def _levels(settings: BusSettings) -> list[tuple[str, int]]:
    """The changes on the topic, each once, in their order."""
    try:
        changes = [decode_change(value) for _, value in _read(settings, FEATURE_CHANGES)]
    except BusUnavailableError:
        return []
    by_id = {change.id: change for change in changes}
    return [(change.feature, change.after) for change in by_id.values()]


def _of_feature(changes: list[tuple[str, int]]) -> list[int]:
    return [level for feature, level in changes if feature == _FEATURE]


def _firing(settings: BusSettings) -> list[str] | None:
    """The rules that fire on the topic (None: its partitions have no leaders now)."""
    try:
        alerts = [decode_alert(value) for _, value in _read(settings, ALERTS)]
    except BusUnavailableError:
        return None
    newest = {alert.id: alert for alert in alerts}
    return [alert.rule for alert in newest.values() if alert.state is AlertState.FIRING]
