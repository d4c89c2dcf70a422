"""Sources and workers are killed while a cluster in ZooKeeper mode changes: nothing is lost."""

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from featurewatch.admin.features.client import FeatureUpdate, UpdateRefusedError, update_features
from featurewatch.kafka.address import Address
from featurewatch.kafka.node_errors import NodeError
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.reference_nodes import ReferenceProcess, reference_nodes
from featurewatch.stack.zookeeper.ensemble import Ensemble
from featurewatch.stack.zookeeper.specs import EnsembleSpec
from featurewatch.streams.outputs import Alert, FeatureChange
from featurewatch.streams.types import FeatureLevel, FeatureName, UpgradeType
from tests.conftest import MakeEnsemble
from tests.integration.published import PublishedOutputs
from tests.integration.zookeeper.support import chroot, retrying, writer
from tests.processes import Process, killed_at_random

pytestmark = pytest.mark.stack

FEATURES = ("group", "transaction", "offsets")
TOP = 5
VERSIONS = 30
"""So many states of the features znode there are in the end, without the last one."""

GUEST, LAST = 50, 77
GOOD, LOW, INVERTED, NEW = (1, TOP), (1, 1), (4, 2), (1, TOP + 1)
"""The ranges of guests: all, too little, nonsense, and ranges that nobody advertised before."""


class ReferenceHistory:
    """The reference cluster, and every state that its features znode was seen in."""

    def __init__(
        self, zk: KazooClient, root: str, nodes: list[ReferenceProcess], seed: int
    ) -> None:
        self.versions: dict[int, dict[str, int]] = {}
        self._zk = zk
        self._root = root
        self._nodes = nodes
        self._chance = random.Random(seed)

    def read_features(self) -> int:
        """Reads the features znode; its version."""
        data, stat = retrying(self._zk.get, f"{self._root}/feature")
        levels = orjson.loads(data)["features"]
        self.versions[stat.version] = {
            name: level["max_version_level"] for name, level in levels.items()
        }
        return int(stat.version)

    def controller(self) -> ReferenceProcess | None:
        """The current controller of the cluster, if that node runs."""
        try:
            data, _ = retrying(self._zk.get, f"{self._root}/controller")
        except NoNodeError:
            return None
        number = orjson.loads(data)["brokerid"]
        return next((n for n in self._nodes if n.node_id == number and n.running), None)

    def update(self) -> None:
        """Another level of some feature, by the wire. It may be refused, or its outcome unknown."""
        node = self.controller()
        if node is None or not node.address:
            time.sleep(0.1)
            return
        feature = self._chance.choice(FEATURES)
        level = self.versions[self.read_features()].get(feature, 0)
        wanted = self._chance.choice([other for other in range(TOP + 1) if other != level])
        kind = UpgradeType.UPGRADE if wanted > level else UpgradeType.SAFE_DOWNGRADE
        update = FeatureUpdate(FeatureName(feature), FeatureLevel(wanted), kind)
        address = Address.parse(node.address)
        try:
            asyncio.run(update_features(address, (update,), timeout_s=5.0))
        except (UpdateRefusedError, NodeError, OSError, TimeoutError):
            time.sleep(0.1)
        self.read_features()

    def updates(self, until: int) -> None:
        """Updates until the znode has had so many versions."""
        deadline = time.monotonic() + 180
        while len(self.versions) < until:
            assert time.monotonic() < deadline, (len(self.versions), until)
            self.update()
            time.sleep(self._chance.uniform(0.0, 0.25))

    @contextmanager
    def guest(self, number: int, bounds: tuple[int, int]) -> Iterator[None]:
        """A broker that registers without looking first, and goes at the end of the block."""
        low, high = bounds
        ranges = {name: {"min_version": low, "max_version": high} for name in FEATURES}
        content = {"version": 5, "endpoints": ["PLAINTEXT://a:1"], "timestamp": "1"}
        path = f"{self._root}/brokers/ids/{number}"
        retrying(self._zk.create, path, orjson.dumps(content | {"features": ranges}), None, True)
        try:
            yield
        finally:
            retrying(self._zk.delete, path)


@contextmanager
def reference(connect: str, directory: Path) -> Iterator[list[ReferenceProcess]]:
    """A reference cluster of three whole brokers."""
    features = [f"{name}=1-{TOP}" for name in FEATURES]
    options = ("--features", *features, "--session-timeout", "4")
    nodes = reference_nodes(3, directory, connect, options, temporary=True)
    try:
        for node in nodes:
            node.start()
        yield nodes
    finally:
        for node in nodes:
            node.kill()


@pytest.mark.form("document")
@pytest.mark.parametrize("seed", [584])
def test_kills_while_a_cluster_changes_lose_and_double_nothing(
    make_ensemble: MakeEnsemble, bus: Cluster, tmp_path: Path, seed: int
) -> None:
    """Updates, guests, a controller that is killed and a server that is killed: each change is
    on the topic once by key with the znode's version as its epoch (F-11), which only grows (F-12),
    each is a state that ZooKeeper had, each state that is not told is counted as missed, and at the
    end levels and epoch are ZooKeeper's and no alert is left."""
    ensemble = make_ensemble(EnsembleSpec(3))
    root = chroot()
    connect = ensemble.connect_string + root
    published = PublishedOutputs(bus, f"kill-zookeeper-{time.time_ns()}")
    processes = [
        Process("watch", ["watch", "--zookeeper", connect, *published.flags], tmp_path),
        Process("worker", ["worker", *published.flags], tmp_path),
    ]
    with reference(connect, tmp_path) as nodes, writer(ensemble.connect_string) as zk:
        truth = ReferenceHistory(zk, root, nodes, seed)
        cluster = orjson.loads(zk.get(f"{root}/cluster/id")[0])["id"]
        try:
            for process in processes:
                process.start()
            published.state(cluster, lambda now, firing: now.ready, processes)
            truth.read_features()
            with killed_at_random(processes, seed, pause_s=(1.2, 3.6)):
                _disturb(truth, ensemble, lambda rule: _await(published, cluster, rule, processes))
            with truth.guest(LAST, NEW):
                published.state(
                    cluster,
                    lambda now, firing: any(LAST in node_class.nodes for node_class in now.classes),
                    processes,
                )
                # Of this one nothing is missed, which ends what is said of those before it.
                truth.updates(VERSIONS + 1)
                last = truth.read_features()
                state = published.state(
                    cluster,
                    lambda now, firing: (
                        now.epoch == last
                        and not firing
                        and sum(len(node_class.nodes) for node_class in now.classes)
                        == len(nodes) + 1
                    ),
                    processes,
                )
        finally:
            for process in processes:
                process.kill()
    assert dict(state.finalized) == truth.versions[last]
    changes = {change.id: change for change in published.changes}
    for change in published.changes:
        assert _content(change) == _content(changes[change.id]), (seed, change)
    epochs = _replayed(list(changes.values()), truth.versions, seed)
    assert {epoch.revision for epoch in published.epochs} == {
        change.revision for change in changes.values()
    }
    alerts = published.alerts
    _check_alerts(alerts, seed)
    covered = epochs | _missed(alerts)
    untold = [version for version in range(1, last + 1) if version not in covered]
    assert untold == [], (seed, untold, sorted(epochs), sorted(_missed(alerts)))


def _disturb(truth: ReferenceHistory, ensemble: Ensemble, told: Callable[[str], None]) -> None:
    """All that happens to the cluster while the processes are killed."""
    truth.updates(VERSIONS // 6)
    with truth.guest(GUEST, LOW):
        truth.updates(VERSIONS // 6 + 2)
        told("incompatible-node")
    server = ensemble.server(1)
    server.kill()
    with truth.guest(GUEST + 1, GOOD):
        truth.updates(VERSIONS // 3)
    server.start(wait=False)
    with truth.guest(GUEST, INVERTED):
        truth.updates(VERSIONS // 2)
        told("invalid-range")
    deadline = time.monotonic() + 90
    while (controller := truth.controller()) is None:
        assert time.monotonic() < deadline, "nobody is elected"
    controller.kill()
    truth.updates(VERSIONS * 2 // 3)
    controller.start(wait=False)
    with truth.guest(GUEST, GOOD):
        truth.updates(VERSIONS)
    server.wait_ready()
    controller.wait_ready()


def _await(published: PublishedOutputs, cluster: str, rule: str, processes: list[Process]) -> None:
    published.state(cluster, lambda now, firing: rule in firing, processes)


def _content(change: FeatureChange) -> tuple[object, ...]:
    """The content of a change, without the time at which it was read."""
    return (change.feature, change.before, change.after, change.epoch, change.revision)


def _replayed(
    changes: list[FeatureChange], versions: dict[int, dict[str, int]], seed: int
) -> set[int]:
    """The epochs of the changes, which, put together in order, are states that were there."""
    revisions = sorted({change.revision for change in changes})
    assert revisions == list(range(1, len(revisions) + 1)), seed
    levels: dict[str, int] = {}
    told: list[int] = []
    for revision in revisions:
        of_it = [change for change in changes if change.revision == revision]
        (epoch,) = {change.epoch for change in of_it}
        for change in of_it:
            assert levels.get(change.feature, 0) == change.before, (seed, change)
            levels[change.feature] = change.after
        finalized = {name: level for name, level in levels.items() if level}
        assert finalized == versions.get(epoch, finalized), (seed, epoch)
        told.append(epoch)
    assert told == sorted(set(told)), (seed, told)
    return set(told)


def _missed(alerts: list[Alert]) -> set[int]:
    """The versions of the features znode that were counted as seen by nobody."""
    return {
        version
        for alert in alerts
        if alert.rule == "znode-missed" and alert.subject == {"znode": "/feature"}
        for version in range(
            alert.evidence["version"] - alert.evidence["missed"], alert.evidence["version"]
        )
    }


def _check_alerts(alerts: list[Alert], seed: int) -> None:
    """Messages about one alert by one cause are always the same."""
    by_cause: dict[tuple[str, str], tuple[object, ...]] = {}
    for alert in alerts:
        content = (alert.state, alert.severity, alert.summary, dict(alert.evidence))
        assert by_cause.setdefault((alert.id, alert.cause), content) == content, (seed, alert)
