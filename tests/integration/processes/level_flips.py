"""Finalized levels of a real cluster that go up and down, beside a controller that never runs."""

import asyncio
import contextlib
import random
import time

from featurewatch.admin.features.client import FeatureUpdate, UpdateRefusedError, update_features
from featurewatch.kafka.address import parse_addresses
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.wire.light_nodes import LightNodes
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.outputs import decode_snapshot
from featurewatch.streams.outputs import Snapshot
from featurewatch.streams.topics import STATE
from featurewatch.streams.types import FeatureLevel, FeatureName, UpgradeType
from tests.processes import Process

GHOST = 9
FLIPS = (
    (FeatureName("group.version"), 1),
    (FeatureName("transaction.version"), 2),
    (FeatureName("share.version"), 1),
)
# A range that nothing advertised before: the state that shows it has read to the end.
LAST_RANGES = {name: (0, high) for name, high in FLIPS} | {FeatureName("metadata.version"): (8, 30)}


def flip_levels(cluster: Cluster, light: LightNodes, seed: int, times: int) -> None:
    """Features are switched on and off; a controller that never runs registers with good and bad
    ranges."""
    chance = random.Random(seed)
    levels = dict.fromkeys((name for name, _ in FLIPS), 0)
    for number in range(times):
        feature, top = chance.choice(FLIPS)
        levels[feature] = 0 if levels[feature] else top
        update_level(cluster, feature, levels[feature])
        low_high = (1, 19) if number % 2 == 0 else (7, 30)
        ranges = {name: (0, high) for name, high in FLIPS} | {"metadata.version": low_high}
        light.register_controller(GHOST, {str(name): bounds for name, bounds in ranges.items()})
        time.sleep(chance.uniform(0.1, 0.8))
    light.register_controller(GHOST, {str(name): both for name, both in LAST_RANGES.items()})


def update_level(cluster: Cluster, feature: FeatureName, level: int) -> None:
    """Finalizes a level (0: removes the feature), or leaves it where the controller refuses."""
    address = parse_addresses(cluster.bootstrap_servers)[0]
    kind = UpgradeType.UPGRADE if level else UpgradeType.UNSAFE_DOWNGRADE
    update = FeatureUpdate(feature, FeatureLevel(level), kind)
    # The ghost blocks upgrades while its range is a bad one, as it does in life.
    with contextlib.suppress(UpdateRefusedError):
        asyncio.run(update_features(address, (update,)))


def wait_until_read(settings: BusSettings, processes: list[Process], timeout_s: float = 60) -> None:
    """Waits until the newest state has the ghost's last ranges, which `flip_levels` writes last."""
    state: Snapshot | None = None
    with contextlib.closing(TopicReader(settings, STATE)) as reader:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            for message in reader.poll(0.5):
                state = decode_snapshot(message.value())
            if state and any(
                GHOST in node_class.nodes and node_class.ranges == LAST_RANGES
                for node_class in state.classes
            ):
                return
    logs = "\n".join(process.log.read_text()[-2000:] for process in processes)
    raise AssertionError(f"the state did not come to {LAST_RANGES}: {state}\n{logs}")
