"""A real cluster of 3.9.1 moves from ZooKeeper to KRaft while both are watched."""

import asyncio
import time
from collections.abc import Callable

import pytest

from featurewatch.kafka.address import parse_addresses
from featurewatch.monitor.snapshot import snapshot
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import zookeeper_mode
from featurewatch.streams.events import DeadLetter, Event
from featurewatch.streams.kraft.observer.quorum_reader import QuorumSettings
from featurewatch.streams.kraft.source import KraftSettings, KraftSource
from featurewatch.streams.outputs import Snapshot
from featurewatch.streams.topics import Topic
from featurewatch.streams.types import ClusterId, LastRecord
from featurewatch.streams.zookeeper.settings import ZookeeperSettings
from featurewatch.streams.zookeeper.source import ZookeeperSource
from tests.conftest import MakeCluster, MakeEnsemble
from tests.running import running
from tests.simulation.auditor import Auditor
from tests.simulation.engine import Engine
from tests.stack.migration import ClusterMigration

pytestmark = [pytest.mark.stack, pytest.mark.nightly]


class MonitoredSources:
    """A sink that applies what the sources publish, audited at each step."""

    error: str | None = None

    def __init__(self, cluster: ClusterId) -> None:
        self.engine = Engine(cluster=cluster)
        self.engine.auditor = Auditor()
        self.rules: list[str] = []
        """Each alert that fired or was resolved, in order: ``+rule`` or ``-rule``."""

    async def publish(self, _topic: Topic, event: Event | DeadLetter) -> None:
        """Applies an event."""
        assert not isinstance(event, DeadLetter), event
        result = self.engine.apply(event)
        self.rules += [f"{'+-'[a.state == 'resolved']}{a.rule}" for a in result.alerts]

    async def flush(self) -> None:
        """There is nothing to wait for."""

    @property
    def firing(self) -> set[str]:
        """The rules of the firing alerts."""
        return {a.rule for alerts in self.engine.state.firing.values() for a in alerts}

    async def until(self, condition: Callable[[Snapshot], bool]) -> Snapshot:
        """Waits until the state meets a condition, and returns it."""
        deadline = time.monotonic() + 60
        while not condition(state := snapshot(self.engine.state.image, 1)):
            assert time.monotonic() < deadline, (state, self.firing)
            await asyncio.sleep(0.02)
        return state


def log_of(cluster: Cluster, sink: MonitoredSources) -> KraftSource:
    """The source of the controllers' log."""

    async def resume() -> LastRecord | None:
        return None

    cluster_id = ClusterId(cluster.cluster_id)
    quorum = QuorumSettings(cluster_id, parse_addresses(cluster.controllers))
    return KraftSource(KraftSettings(cluster_id, quorum=quorum), sink, resume)


async def test_a_migration_is_seen_from_both_sides(
    make_ensemble: MakeEnsemble, make_cluster: MakeCluster
) -> None:
    """Both sources show the controller, the missing brokers, and the end of the migration."""
    zookeeper = f"{make_ensemble().connect_string}/kafka"
    spec = zookeeper_mode(1, zookeeper, properties={"inter.broker.protocol.version": "3.8"})
    cluster = await asyncio.to_thread(make_cluster, spec)
    migration, sink = ClusterMigration(cluster), MonitoredSources(ClusterId(cluster.cluster_id))
    async with running(ZookeeperSource(ZookeeperSettings(zookeeper), sink)):
        state = await sink.until(
            lambda state: state.ready and state.migration.brokers_in_zookeeper == 1
        )
        assert (state.authority, state.epoch, state.controller.node_id) == ("zookeeper", 0, 1)
        assert (state.controller.kraft_epoch, state.migration.in_progress) == (-1, False)
        assert sink.firing == set()

        await asyncio.to_thread(migration.add_controllers)
        async with running(log_of(cluster, sink)):
            state = await sink.until(lambda state: state.ready and state.authority == "kraft")
            assert (state.migration.state, state.migration.missing) == ("pre-migration", (1,))
            assert sink.firing == {"migration-in-progress", "migration-incomplete"}

            await asyncio.to_thread(migration.enroll_brokers)
            state = await sink.until(
                lambda state: (
                    state.migration.state == "migration" and state.controller.kraft_epoch > 0
                )
            )
            assert (state.controller.node_id, state.migration.kraft_controller_id) == (3001, 3001)
            assert (state.migration.brokers_in_zookeeper, state.migration.missing) == (1, ())
            assert sink.firing == {"migration-in-progress"}, sink.engine.state.firing

            await asyncio.to_thread(migration.move_brokers)
            state = await sink.until(lambda state: state.migration.brokers_in_zookeeper == 0)
            assert (state.migration.in_progress, state.ready) == (True, True)

            await asyncio.to_thread(migration.finish)
            state = await sink.until(lambda state: state.migration.state == "post-migration")
            assert not state.migration.in_progress
            assert not {rule for rule in sink.firing if rule.startswith("migration")}
            lines = [rule for rule in sink.rules if rule.endswith("migration-in-progress")]
            assert lines.count("-migration-in-progress") == 1, sink.rules
            assert lines[-1] == "-migration-in-progress", sink.rules
