"""The bus dies in the middle and comes back: the metadata log was the buffer meanwhile."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from featurewatch.admin.features.client import FeatureUpdate, update_features
from featurewatch.cli.commands.demo.summary import levels_on_disk
from featurewatch.kafka.address import parse_addresses
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import ClusterSpec, combined, single_bus
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.outputs import decode_change
from featurewatch.streams.outputs import FeatureChange
from featurewatch.streams.topics import FEATURE_CHANGES
from featurewatch.streams.types import FeatureLevel, FeatureName, UpgradeType
from tests.processes import Process, wait_ready

FEATURE = FeatureName("group.version")


@pytest.mark.stack
@pytest.mark.nightly
def test_changes_while_the_bus_is_dead_come_when_it_recovers(
    make_cluster: Callable[[ClusterSpec], Cluster], tmp_path: Path
) -> None:
    """Killed and started three times under changes: each is said once, in order, none missing."""
    bus, cluster = make_cluster(single_bus()), make_cluster(combined(["4.3.0"]))
    settings = BusSettings(bus.bootstrap_servers, prefix="killed-bus", replication_factor=1)
    on_bus = ["--bus", bus.bootstrap_servers, "--prefix", settings.prefix]
    processes = [
        Process("watch", ["watch", "--controllers", cluster.controllers, *on_bus], tmp_path),
        Process("worker", ["worker", *on_bus], tmp_path),
    ]
    try:
        for process in processes:
            process.start()
        wait_ready(processes)
        for _ in range(3):
            _set(cluster, 0)
            bus.node(1).kill()
            _set(cluster, 1)
            _set(cluster, 0)
            bus.node(1).start()
            _set(cluster, 1)
            for process in processes:
                # One that gave up is started again, as a service manager would.
                process.start()
        changes = _await_changes(settings, levels_on_disk(cluster))
    finally:
        for process in processes:
            process.kill()
    written = levels_on_disk(cluster)
    assert sorted((change.feature, change.after) for change in changes) == sorted(written)
    in_order = [change.after for change in changes if change.feature == FEATURE]
    assert in_order == [level for name, level in written if name == FEATURE]
    assert len(in_order) >= 12


def _set(cluster: Cluster, level: int) -> None:
    address = parse_addresses(cluster.bootstrap_servers)[0]
    kind = UpgradeType.UPGRADE if level else UpgradeType.UNSAFE_DOWNGRADE
    asyncio.run(update_features(address, (FeatureUpdate(FEATURE, FeatureLevel(level), kind),)))


def _await_changes(settings: BusSettings, wanted: list[tuple[str, int]]) -> list[FeatureChange]:
    """The changes on the topic, each once, as soon as there are as many as wanted."""
    by_id: dict[str, FeatureChange] = {}
    deadline = time.monotonic() + 90
    with contextlib.closing(TopicReader(settings, FEATURE_CHANGES)) as reader:
        while len(by_id) < len(wanted) and time.monotonic() < deadline:
            for message in reader.poll(0.5):
                change = decode_change(message.value())
                by_id[change.id] = change
    return sorted(by_id.values(), key=lambda change: (change.revision, change.feature))
