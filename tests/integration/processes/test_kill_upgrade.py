"""Sources and workers are killed while a real cluster is upgraded: nothing is lost or doubled."""

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from featurewatch.admin.features import FeatureUpdate, UpdateRefusedError, update_features
from featurewatch.cli.commands.demo.summary import levels_on_disk
from featurewatch.cli.output.topic_reader import TopicReader
from featurewatch.deploy.kafka.cluster import Cluster
from featurewatch.deploy.kafka.specs import ClusterSpec, combined
from featurewatch.deploy.wire.light_nodes import LightNodes
from featurewatch.streams.bus import BusSettings
from featurewatch.streams.codec.outputs import decode_alert, decode_change, decode_snapshot
from featurewatch.streams.net.address import parse_addresses
from featurewatch.streams.outputs import Alert, AlertState, FeatureChange, Snapshot
from featurewatch.streams.topics import ALERTS, EPOCHS, FEATURE_CHANGES, STATE
from featurewatch.streams.types import FeatureLevel, FeatureName, UpgradeType
from tests.processes import Process, killed_at_random

NEW = "4.3.0"
GHOST = 9
FLIPS = (
    (FeatureName("group.version"), 1),
    (FeatureName("transaction.version"), 2),
    (FeatureName("share.version"), 1),
)
# A range that nothing advertised before: the state that shows it has read to the end.
LAST_RANGES = {name: (0, high) for name, high in FLIPS} | {FeatureName("metadata.version"): (8, 30)}


@pytest.mark.stack
@pytest.mark.parametrize(("seed", "store"), [(584, "memory"), (778, "rocksdb")])
def test_kills_during_an_upgrade_lose_and_double_nothing(
    make_cluster: Callable[[ClusterSpec], Cluster],
    bus: Cluster,
    tmp_path: Path,
    seed: int,
    store: str,
) -> None:
    """Every change stands on the topic once by key, none is missing, and no alert is left over."""
    cluster = make_cluster(combined(["3.9.1"] * 3, "3.7-IV4"))
    prefix = f"kill-{cluster.cluster_id}"
    settings = BusSettings(bus.bootstrap_servers, prefix=prefix, replication_factor=1)
    on_bus = ["--bus", bus.bootstrap_servers, "--prefix", prefix]
    watch = ["watch", "--controllers", cluster.controllers, "--cluster-id", cluster.cluster_id]
    processes = [
        Process("watch", [*watch, *on_bus], tmp_path),
        Process("worker", ["worker", "--store", store, *on_bus], tmp_path),
    ]
    try:
        with killed_at_random(processes, seed, pause_s=(1.0, 6.0)):
            _upgrade(cluster)
            with LightNodes(cluster.controllers, cluster.cluster_id, 1) as light:
                _flip(cluster, light, seed, times=60)
        _wait_until_read(settings, processes)
    finally:
        for process in processes:
            process.kill()
    starts = {process.name: process.starts for process in processes}
    assert all(count > 3 for count in starts.values()), (seed, starts)
    changes = _changes(settings)
    by_id = {change.id: change for change in changes}
    for change in changes:
        assert _content(change) == _content(by_id[change.id]), (seed, change)
    said = sorted(by_id.values(), key=lambda change: change.revision)
    assert [(each.feature, each.after) for each in said] == levels_on_disk(cluster), seed
    assert [each.revision for each in said] == list(range(1, len(said) + 1)), seed
    assert {each.revision for each in _snapshots(settings)} == {each.revision for each in said}
    firing = [alert for alert in _alerts(settings).values() if alert.state is AlertState.FIRING]
    assert firing == [], (seed, firing)


def _upgrade(cluster: Cluster) -> None:
    for node in cluster.nodes:
        node.stop()
        node.start(NEW)
    _update(cluster, FeatureName("metadata.version"), 30)


def _flip(cluster: Cluster, light: LightNodes, seed: int, times: int) -> None:
    """Features go on and off, and a controller that is no more comes with good and bad ranges."""
    chance = random.Random(seed)
    levels = dict.fromkeys((name for name, _ in FLIPS), 0)
    for number in range(times):
        feature, top = chance.choice(FLIPS)
        levels[feature] = 0 if levels[feature] else top
        _update(cluster, feature, levels[feature])
        low_high = (1, 19) if number % 2 == 0 else (7, 30)
        ranges = {name: (0, high) for name, high in FLIPS} | {"metadata.version": low_high}
        light.register_controller(GHOST, {str(name): bounds for name, bounds in ranges.items()})
        time.sleep(chance.uniform(0.1, 0.8))
    light.register_controller(GHOST, {str(name): both for name, both in LAST_RANGES.items()})


def _update(cluster: Cluster, feature: FeatureName, level: int) -> None:
    address = parse_addresses(cluster.bootstrap_servers)[0]
    kind = UpgradeType.UPGRADE if level else UpgradeType.UNSAFE_DOWNGRADE
    update = FeatureUpdate(feature, FeatureLevel(level), kind)
    # The ghost blocks upgrades while its range is a bad one, as it does in life.
    with contextlib.suppress(UpdateRefusedError):
        asyncio.run(update_features(address, (update,)))


def _wait_until_read(
    settings: BusSettings, processes: list[Process], timeout_s: float = 60
) -> None:
    """Until the newest state holds the last thing that happened: the ghost's last ranges."""
    seen: Snapshot | None = None
    with contextlib.closing(TopicReader(settings, STATE)) as reader:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            for message in reader.poll(0.5):
                seen = decode_snapshot(message.value())
            if seen and any(
                GHOST in each.nodes and each.ranges == LAST_RANGES for each in seen.classes
            ):
                return
    logs = "\n".join(process.log.read_text()[-2000:] for process in processes)
    raise AssertionError(f"the state did not come to {LAST_RANGES}: {seen}\n{logs}")


def _content(change: FeatureChange) -> tuple[object, ...]:
    """What a change says, without when this telling of it was read from the log."""
    return (change.feature, change.before, change.after, change.epoch, change.revision)


def _changes(settings: BusSettings) -> list[FeatureChange]:
    with contextlib.closing(TopicReader(settings, FEATURE_CHANGES)) as reader:
        return [decode_change(message.value()) for message in reader.read_existing()]


def _snapshots(settings: BusSettings) -> Iterator[Snapshot]:
    with contextlib.closing(TopicReader(settings, EPOCHS)) as reader:
        yield from [decode_snapshot(message.value()) for message in reader.read_existing()]


def _alerts(settings: BusSettings) -> dict[str, Alert]:
    with contextlib.closing(TopicReader(settings, ALERTS)) as reader:
        found = [decode_alert(message.value()) for message in reader.read_existing()]
    return {alert.id: alert for alert in found}
