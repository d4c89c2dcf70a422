"""Publishes the retirement of sources, and waits until a worker has applied it."""

import asyncio
import contextlib
import time
from collections.abc import Collection, Iterable
from typing import Final

from featurewatch.agents.timers import source_status
from featurewatch.cli.errors import UsageError
from featurewatch.cli.output.cluster_states import ClusterStates
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.events import SourceState
from featurewatch.streams.outputs import Snapshot
from featurewatch.streams.source import wall_clock_ms
from featurewatch.streams.topics import INPUT_OF_SOURCE
from featurewatch.streams.types import ClusterId
from featurewatch.tables.image.cluster import Authority

_APPLIED_S: Final = 15.0


def retire_sources(bus: BusSettings, cluster: str, source: str) -> bool:
    """Whether a worker applied in time that a source of a cluster is retired (empty: all).

    Raises:
        UsageError: The cluster has no such source, or is not known.
    """
    with contextlib.closing(ClusterStates(bus, cluster)) as states:
        snapshot = states.snapshots.get(cluster)
        if source and (snapshot is None or source not in snapshot.sources):
            sources = ", ".join(sorted(snapshot.sources)) if snapshot else "none"
            raise UsageError(f"cluster {cluster} has no source {source}: it has {sources}")
        if snapshot is None:
            raise UsageError(f"nothing is known of the cluster {cluster}")
        retired = {source} if source else _sources(snapshot)
        asyncio.run(_publish(bus, ClusterId(cluster), retired))
        deadline = time.monotonic() + _APPLIED_S
        while _has_any(states.snapshots.get(cluster), source):
            if time.monotonic() > deadline:
                return False
            for _ in states.poll(0.5):
                pass
    return True


def retire_outdated(bus: BusSettings, kept: Collection[str], outdated_ms: int) -> tuple[str, ...]:
    """The clusters that were retired because nothing of them came for ``outdated_ms``.

    ``kept`` are the ids of those that are not. What a worker has not applied in time is left out.
    """
    with contextlib.closing(ClusterStates(bus)) as states:
        latest_ms = wall_clock_ms() - outdated_ms
        outdated = {
            cluster: _sources(snapshot)
            for cluster, snapshot in sorted(states.snapshots.items())
            if cluster not in kept and snapshot.at_ms <= latest_ms
        }
        for cluster, sources in outdated.items():
            asyncio.run(_publish(bus, ClusterId(cluster), sources))
        deadline = time.monotonic() + _APPLIED_S
        while outdated.keys() & states.snapshots.keys() and time.monotonic() < deadline:
            for _ in states.poll(0.5):
                pass
        return tuple(cluster for cluster in outdated if cluster not in states.snapshots)


def _sources(snapshot: Snapshot) -> set[str]:
    """The sources of a cluster; of one of which there are only unreadable messages, the log's."""
    return {*snapshot.sources} & INPUT_OF_SOURCE.keys() or {Authority.LOG.value}


def _has_any(snapshot: Snapshot | None, source: str) -> bool:
    """Whether a cluster still has the source, or is still known at all (no source named)."""
    return snapshot is not None and (not source or source in snapshot.sources)


async def _publish(bus: BusSettings, cluster: ClusterId, sources: Iterable[str]) -> None:
    async with Publisher(bus) as publisher:
        for source in sorted(sources):
            status = source_status(
                cluster, source, SourceState.RETIRED, "retired by a person", wall_clock_ms()
            )
            await (await publisher.publish(INPUT_OF_SOURCE[source], status))
