"""A real migration from ZooKeeper to KRaft, as one who watches both sides of it sees it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import zookeeper_mode
from featurewatch.stack.zookeeper.ensemble import Ensemble
from featurewatch.streams.outputs import Snapshot
from tests.cli.commands import featurewatch
from tests.conftest import MakeCluster
from tests.integration.published import PublishedOutputs
from tests.integration.zookeeper.support import chroot
from tests.processes import Process
from tests.stack.migration import ClusterMigration

pytestmark = pytest.mark.stack

IN_PROGRESS, INCOMPLETE = "migration-in-progress", "migration-incomplete"


class Watcher:
    """A source process, a worker, and the cluster that they watch."""

    def __init__(self, cluster: str, published: PublishedOutputs, directory: Path) -> None:
        self.cluster = cluster
        self.published = published
        self._directory = directory
        self._worker = Process("worker", ["worker", *published.flags], directory)
        self._watch: Process | None = None
        self._worker.start()

    def watch(self, *sources: str) -> None:
        """Follows these from now on, and nothing else: the source process is restarted."""
        if self._watch is not None:
            self._watch.kill()
        self._watch = Process("watch", ["watch", *sources, *self.published.flags], self._directory)
        self._watch.start()

    def until(self, firing: set[str], wished: Callable[[Snapshot], bool]) -> Snapshot:
        """The state, once it is as wished while exactly these rules fire."""
        assert self._watch is not None
        return self.published.state(
            self.cluster,
            lambda state, rules: rules == firing and state.ready and wished(state),
            [self._watch, self._worker],
        )

    def close(self) -> None:
        """Ends both."""
        self._worker.kill()
        if self._watch is not None:
            self._watch.kill()


@contextmanager
def watcher(cluster: str, bus: Cluster, directory: Path) -> Iterator[Watcher]:
    """One that has ended afterwards."""
    made = Watcher(cluster, PublishedOutputs(bus, f"migration-{time.time_ns()}"), directory)
    try:
        yield made
    finally:
        made.close()


def test_each_phase_is_reported_and_nothing_false(
    ensemble: Ensemble, bus: Cluster, make_cluster: MakeCluster, tmp_path: Path
) -> None:
    """The authority, the progress and the missing brokers are in the state in each phase; that
    metadata.version must wait fires for as long as it is so, and that brokers are missing until
    they have enrolled. The one change of a level is the one that the log begins with, the brokers'
    restarts raise no other alert, and the znodes that stay behind are no migration."""
    zookeeper = ensemble.connect_string + chroot()
    protocol = {"inter.broker.protocol.version": "3.8"}
    cluster = make_cluster(zookeeper_mode(1, zookeeper, properties=protocol))
    migration = ClusterMigration(cluster)
    with watcher(cluster.cluster_id, bus, tmp_path) as watcher_process:
        watcher_process.watch("--zookeeper", zookeeper)
        state = watcher_process.until(
            set(), lambda now: now.controller.node_id == 1 and now.epoch == 0
        )
        assert (state.authority, state.migration.in_progress) == ("zookeeper", False)
        assert (state.controller.kraft_epoch, state.migration.kraft_controller_id) == (-1, -1)
        assert [(node_class.role, node_class.nodes) for node_class in state.classes] == [
            ("broker", (1,))
        ]

        migration.add_controllers()
        both = ("--zookeeper", zookeeper, "--controllers", cluster.controllers)
        watcher_process.watch(*both)
        state = watcher_process.until(
            {IN_PROGRESS, INCOMPLETE}, lambda now: now.authority == "kraft"
        )
        assert (state.migration.state, state.migration.missing) == ("pre-migration", (1,))
        assert (state.controller.node_id, state.leader_id) == (1, 3001)
        shown = featurewatch(tmp_path, "state", *watcher_process.published.flags)
        assert (
            "migration to KRaft: pre-migration; 1 broker in ZooKeeper, "
            "not registered with the KRaft controllers: 1"
        ) in shown.stdout
        assert (
            featurewatch(tmp_path, "alerts", "--check", *watcher_process.published.flags).returncode
            == 3
        )

        migration.enroll_brokers()
        state = watcher_process.until(
            {IN_PROGRESS},
            lambda now: now.migration.state == "migration" and now.controller.kraft_epoch > 0,
        )
        assert (state.controller.node_id, state.migration.kraft_controller_id) == (3001, 3001)
        assert (state.migration.brokers_in_zookeeper, state.migration.missing) == (1, ())

        migration.move_brokers()
        wide = {"kraft.version": (0, 1), "metadata.version": (1, 21)}
        state = watcher_process.until(
            {IN_PROGRESS},
            lambda now: (
                [node_class.ranges for node_class in now.classes if node_class.role == "broker"]
                == [wide]
            ),
        )
        assert (state.migration.state, state.migration.brokers_in_zookeeper) == ("migration", 0)

        before = state.leader_epoch
        migration.finish()
        state = watcher_process.until(
            set(),
            lambda now: now.migration.state == "post-migration" and now.leader_epoch > before,
        )
        # Its znodes are still there, and still watched.
        assert state.sources == {"kraft": "following", "zookeeper": "following"}
        assert (state.migration.in_progress, state.controller.node_id) == (False, 3001)
        assert state.migration.kraft_controller_id == 3001
        shown = featurewatch(tmp_path, "state", *watcher_process.published.flags)
        assert "no alert fires" in shown.stdout
        assert "igration" not in shown.stdout
        assert "ZooKeeper" not in shown.stdout

        changes = {change.id: change for change in watcher_process.published.changes}.values()
        assert [(change.feature, change.before, change.after) for change in changes] == [
            ("metadata.version", 0, 20)
        ]
        assert {epoch.revision for epoch in watcher_process.published.epochs} == {1}
        assert {alert.rule for alert in watcher_process.published.alerts} == {
            IN_PROGRESS,
            INCOMPLETE,
        }
