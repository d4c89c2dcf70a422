"""``featurewatch retire``, with a worker that takes it in."""

import time
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.events import SourceState, SourceStatus
from featurewatch.streams.topics import METADATA_LOG, ZOOKEEPER
from featurewatch.streams.types import ClusterId
from tests.cli.commands import featurewatch
from tests.integration.published import PublishedOutputs
from tests.processes import Process, wait_ready

pytestmark = pytest.mark.stack

CLUSTER = ClusterId("retiring")


def _following(source: str) -> SourceStatus:
    now = time.time_ns() // 1_000_000
    return SourceStatus(CLUSTER, source, SourceState.FOLLOWING, 0, 1, 1, 1, 1, "", now)


async def test_a_source_is_forgotten(bus: Cluster, tmp_path: Path) -> None:
    """It is no longer in the state; one that the cluster does not have is named, with those it has.

    Without a source, the whole cluster is forgotten, until a source publishes again.
    """
    prefix = f"retire-{uuid.uuid4().hex[:8]}"
    published = PublishedOutputs(bus, prefix)
    worker = Process("worker", ["worker", *published.flags], tmp_path)
    worker.start()
    try:
        wait_ready([worker])
        settings = BusSettings(bus.bootstrap_servers, prefix=prefix, replication_factor=1)
        async with Publisher(settings) as publisher:
            await publisher.publish(METADATA_LOG, _following("kraft"))
            await publisher.publish(ZOOKEEPER, _following("zookeeper"))
        published.state(CLUSTER, lambda state, _: len(state.sources) == 2, [worker])

        def retire(source: str = "") -> tuple[int, str]:
            named = ["--source", source] if source else []
            flags = ["--cluster", CLUSTER, *named, *published.flags]
            done = featurewatch(tmp_path, "retire", *flags)
            return done.returncode, done.stderr

        assert retire("zookeeper") == (0, f"featurewatch: zookeeper of {CLUSTER} is retired\n")
        published.state(CLUSTER, lambda state, _: set(state.sources) == {"kraft"}, [worker])
        code, text = retire("zookeeper")
        assert (code, text) == (
            2,
            f"featurewatch: cluster {CLUSTER} has no source zookeeper: it has kraft\n",
        )
        async with Publisher(settings) as publisher:
            await publisher.publish(ZOOKEEPER, _following("zookeeper"))
        published.state(CLUSTER, lambda state, _: len(state.sources) == 2, [worker])
        assert retire() == (0, f"featurewatch: {CLUSTER} is retired\n")
        assert retire() == (2, f"featurewatch: nothing is known of the cluster {CLUSTER}\n")
        shown = featurewatch(tmp_path, "state", "--cluster", CLUSTER, *published.flags)
        assert shown.returncode == 4
        async with Publisher(settings) as publisher:
            await publisher.publish(ZOOKEEPER, _following("zookeeper"))
        published.state(CLUSTER, lambda state, _: set(state.sources) == {"zookeeper"}, [worker])
    finally:
        worker.kill()


async def test_clusters_that_nobody_watches_are_forgotten(bus: Cluster, tmp_path: Path) -> None:
    """Those of which nothing came for a time, as if somebody had made them up; configured ones and
    new ones stay."""
    prefix = f"retire-{uuid.uuid4().hex[:8]}"
    published = PublishedOutputs(bus, prefix)
    worker = Process("worker", ["worker", *published.flags], tmp_path)
    configuration = tmp_path / "featurewatch.yaml"
    configuration.write_text("clusters:\n  - {cluster_id: kept, servers: 'b:1'}\n")
    worker.start()
    try:
        wait_ready([worker])
        settings = BusSettings(bus.bootstrap_servers, prefix=prefix, replication_factor=1)
        names = ("kept", "forged-1", "forged-2")
        async with Publisher(settings) as publisher:
            for name in names:
                event = replace(_following("kraft"), cluster=ClusterId(name))
                await publisher.publish(METADATA_LOG, event)
        for name in names:
            published.state(name, lambda state, _: state.sources, [worker])

        def retire(hours: float) -> tuple[int, str]:
            flags = ["--outdated-for", str(hours), "--config", str(configuration)]
            done = featurewatch(tmp_path, "retire", *flags, *published.flags)
            return done.returncode, done.stderr

        assert retire(1) == (0, "featurewatch: retired: none\n")
        assert retire(0) == (0, "featurewatch: retired: forged-1, forged-2\n")
        states = featurewatch(tmp_path, "state", "--json", *published.flags).stdout
        assert (states.count("forged"), states.count("kept") > 0) == (0, True)
    finally:
        worker.kill()
