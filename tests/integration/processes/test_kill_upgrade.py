"""Sources and workers are killed while a real cluster is upgraded: nothing is lost or doubled."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from featurewatch.cli.commands.demo.summary import levels_on_disk
from featurewatch.cli.output.topic_reader import TopicReader
from featurewatch.deploy.kafka.cluster import Cluster
from featurewatch.deploy.kafka.specs import ClusterSpec, combined
from featurewatch.deploy.wire.light_nodes import LightNodes
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.outputs import decode_alert, decode_change, decode_snapshot
from featurewatch.streams.outputs import Alert, AlertState, FeatureChange, Snapshot
from featurewatch.streams.topics import ALERTS, EPOCHS, FEATURE_CHANGES
from featurewatch.streams.types import FeatureName
from tests.integration.processes.level_flips import flip_levels, update_level, wait_until_read
from tests.processes import Process, killed_at_random

NEW = "4.3.0"


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
                flip_levels(cluster, light, seed, times=60)
        wait_until_read(settings, processes)
    finally:
        for process in processes:
            process.kill()
    starts = {process.name: process.starts for process in processes}
    assert all(count > 3 for count in starts.values()), (seed, starts)
    changes = _changes(settings)
    by_id = {change.id: change for change in changes}
    for change in changes:
        assert _content(change) == _content(by_id[change.id]), (seed, change)
    in_order = sorted(by_id.values(), key=lambda change: change.revision)
    assert [(change.feature, change.after) for change in in_order] == levels_on_disk(cluster), seed
    assert [change.revision for change in in_order] == list(range(1, len(in_order) + 1)), seed
    assert {state.revision for state in _snapshots(settings)} == {
        change.revision for change in in_order
    }
    firing = [alert for alert in _alerts(settings).values() if alert.state is AlertState.FIRING]
    assert firing == [], (seed, firing)


def _upgrade(cluster: Cluster) -> None:
    for node in cluster.nodes:
        node.stop()
        node.start(NEW)
    update_level(cluster, FeatureName("metadata.version"), 30)


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
        alerts = [decode_alert(message.value()) for message in reader.read_existing()]
    return {alert.id: alert for alert in alerts}
