"""A cluster that is followed by its metadata log and polled as well."""

import asyncio
from contextlib import suppress

import pytest

from featurewatch.cli.config.settings import ClusterSection
from featurewatch.cli.runtime.sources import WatchedCluster
from featurewatch.monitor.step import MonitorState, step
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.events import DeadLetter, NodeAnswer
from featurewatch.streams.outputs import FeatureChange
from featurewatch.streams.types import METADATA_VERSION, ClusterId
from tests.integration.kraft.support import LogSink, until

pytestmark = pytest.mark.stack


class BusSink(LogSink):
    """Keeps the events of all sources; a source resumes from a bus on which there is nothing."""

    def __init__(self, bus: BusSettings) -> None:
        super().__init__()
        self.bus = bus


async def test_the_first_change_has_the_time_of_the_log(quorum_430: Cluster, bus: Cluster) -> None:
    """No response is published before the log was read: it would date the levels by its arrival."""
    settings = BusSettings(bus.bootstrap_servers, prefix="two-sources")
    await asyncio.to_thread(ensure_topics, settings)
    sink = BusSink(settings)
    section = ClusterSection(
        controllers=quorum_430.controllers, servers=quorum_430.bootstrap_servers
    )
    watching = asyncio.create_task(WatchedCluster(section).run(sink))  # type: ignore[arg-type]
    try:
        await until(lambda: len(sink.of(NodeAnswer)) >= 6)
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    state = MonitorState.of(ClusterId(quorum_430.cluster_id))
    changes: list[FeatureChange] = []
    for event in sink.events:
        assert not isinstance(event, DeadLetter)
        result = step(state, event)
        state = result.state
        changes += result.changes
    finalized = next(change for change in changes if change.feature == METADATA_VERSION)
    assert finalized.append_ms >= 0
    assert finalized.provenance["offset"] >= 0
