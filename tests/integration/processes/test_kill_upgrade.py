"""Sources and workers are killed while a real cluster is upgraded: nothing is lost or doubled."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from featurewatch.cli.commands.demo.summary import levels_on_disk
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import ClusterSpec, combined
from featurewatch.stack.wire.light_nodes import LightNodes
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.codec.outputs import decode_alert, decode_change, decode_snapshot
from featurewatch.streams.outputs import Alert, AlertState, FeatureChange, Snapshot
from featurewatch.streams.topics import ALERTS, EPOCHS, FEATURE_CHANGES
from featurewatch.streams.types import FeatureName
from tests.integration.processes.level_flips import flip_levels, update_level, wait_until_read
from tests.processes import Process, killed_at_random

NEW = "4.3.0"


SEEDS = {"memory": 584, "rocksdb": 778}
"""By the store of the worker: when its processes are killed."""


class _Featurewatch:
    """A source and a worker under a separate prefix."""

    def __init__(self, cluster: Cluster, bus: Cluster, store: str, directory: Path) -> None:
        prefix = f"kill-{store}-{cluster.cluster_id}"
        self.settings = BusSettings(bus.bootstrap_servers, prefix=prefix, replication_factor=1)
        self.store = store
        on_bus = ["--bus", bus.bootstrap_servers, "--prefix", prefix]
        watched = ["--controllers", cluster.controllers, "--cluster-id", cluster.cluster_id]
        self.processes = [
            Process(f"watch-{store}", ["watch", *watched, *on_bus], directory),
            Process(f"worker-{store}", ["worker", "--store", store, *on_bus], directory),
        ]

    def check(self, levels: list[tuple[str, int]]) -> None:
        """Compares what was published with the levels in the metadata log."""
        changes = _changes(self.settings)
        by_id = {change.id: change for change in changes}
        for change in changes:
            assert _content(change) == _content(by_id[change.id]), (self.store, change)
        in_order = sorted(by_id.values(), key=lambda change: change.revision)
        assert [(change.feature, change.after) for change in in_order] == levels, self.store
        revisions = [change.revision for change in in_order]
        assert revisions == list(range(1, len(in_order) + 1)), self.store
        assert {state.revision for state in _snapshots(self.settings)} == {*revisions}
        alerts = _alerts(self.settings).values()
        firing = [alert for alert in alerts if alert.state is AlertState.FIRING]
        assert firing == [], (self.store, firing)


@pytest.mark.stack
@pytest.mark.nightly
def test_kills_during_an_upgrade_lose_and_double_nothing(
    make_cluster: Callable[[ClusterSpec], Cluster], bus: Cluster, tmp_path: Path
) -> None:
    """Every change is on the topic once by key, none is missing, and no alert is left over.

    Each store of the worker has a source and a worker, which are killed at different times.
    """
    cluster = make_cluster(combined(["3.9.1"] * 3, "3.7-IV4"))
    both = [_Featurewatch(cluster, bus, store, tmp_path) for store in SEEDS]
    try:
        for each in both:
            ensure_topics(each.settings)
        with contextlib.ExitStack() as stack:
            for each in both:
                killed = killed_at_random(each.processes, SEEDS[each.store], (1.0, 6.0), at_least=3)
                stack.enter_context(killed)
            _upgrade(cluster)
            with LightNodes(cluster.controllers, cluster.cluster_id, 1) as light:
                flip_levels(cluster, light, SEEDS["memory"], times=60)
        for each in both:
            wait_until_read(each.settings, each.processes, timeout_s=180)
    finally:
        for each in both:
            for process in each.processes:
                process.kill()
    levels = levels_on_disk(cluster)
    for each in both:
        each.check(levels)


def _upgrade(cluster: Cluster) -> None:
    for node in cluster.nodes:
        node.stop()
        node.start(NEW)
    update_level(cluster, FeatureName("metadata.version"), 30)


def _content(change: FeatureChange) -> tuple[object, ...]:
    """The content of a change, without the time at which it was read from the log."""
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
