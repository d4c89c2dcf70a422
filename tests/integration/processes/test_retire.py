"""``featurewatch retire``, with a worker that takes it in."""

import time
import uuid
from pathlib import Path

import pytest

from featurewatch.deploy.kafka.cluster import Cluster
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
    """It is gone from the state; one that the cluster does not have is named, with those it has.

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
