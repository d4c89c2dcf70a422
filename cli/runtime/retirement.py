"""Publishes that a source is retired, and waits until a worker has applied it."""

import asyncio
import contextlib
import time
from typing import Final

from featurewatch.agents.timers import source_status, topic_of_source
from featurewatch.cli.errors import UsageError
from featurewatch.cli.output.cluster_states import ClusterStates
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.events import SourceState
from featurewatch.streams.source import wall_clock_ms
from featurewatch.streams.types import ClusterId

_APPLIED_S: Final = 15.0


def retire_source(bus: BusSettings, cluster: str, source: str) -> bool:
    """Whether a worker applied it in time.

    Raises:
        UsageError: The cluster has no such source.
    """
    with contextlib.closing(ClusterStates(bus, cluster)) as states:
        snapshot = states.snapshots.get(cluster)
        if snapshot is None or source not in snapshot.sources:
            sources = ", ".join(sorted(snapshot.sources)) if snapshot else "none"
            raise UsageError(f"cluster {cluster} has no source {source}: it has {sources}")
        asyncio.run(_publish(bus, ClusterId(cluster), source))
        deadline = time.monotonic() + _APPLIED_S
        while source in states.snapshots[cluster].sources:
            if time.monotonic() > deadline:
                return False
            for _ in states.poll(0.5):
                pass
    return True


async def _publish(bus: BusSettings, cluster: ClusterId, source: str) -> None:
    status = source_status(
        cluster, source, SourceState.RETIRED, "retired by a person", wall_clock_ms()
    )
    async with Publisher(bus) as publisher:
        await (await publisher.publish(topic_of_source(source), status))
