"""Publishes that a configured cluster was never reached, so that it is in the state and alerts.

Until its id is known, its name stands for it: its addresses in the configuration. The name is
retired when the id is known.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from featurewatch.agents.timers import source_status
from featurewatch.streams.events import SourceState
from featurewatch.streams.source import Sink, wall_clock_ms
from featurewatch.streams.topics import INPUT_OF_SOURCE
from featurewatch.streams.types import ClusterId

_INTERVAL_S: Final = 5.0
"""Seconds between two statuses, as for other sources."""

_GRACE_S: Final = 10.0
"""The grace period: nodes may start at the same time as the source."""


class UnreachedCluster(Protocol):
    """A configured cluster whose id is not known at first."""

    @property
    def name(self) -> str:
        """The name of the cluster before its id is known."""

    @property
    def first_source(self) -> str:
        """The name of its source, the first if it has several."""

    def unreached_reason(self) -> str | None:
        """Why its id is not known; None if it is known."""


async def report_unreached(
    cluster: UnreachedCluster,
    sink: Sink,
    clock_ms: Callable[[], int] = wall_clock_ms,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Publishes statuses under the cluster's name until its id is known, and then its retirement.

    A cluster that is reached within the grace period leaves no trace. ``clock_ms`` gives
    milliseconds since the Unix epoch.
    """
    name = ClusterId(cluster.name.replace("/", ":"))  # the ids of alerts are divided by slashes
    source = cluster.first_source
    topic = INPUT_OF_SOURCE[source]
    waited_s = 0.0
    while (reason := cluster.unreached_reason()) is not None:
        if waited_s >= _GRACE_S:
            stalled = source_status(name, source, SourceState.STALLED, reason, clock_ms())
            await sink.publish(topic, stalled)
        await sleep(_INTERVAL_S)
        waited_s += _INTERVAL_S
    if waited_s <= _GRACE_S:
        return
    retired = source_status(name, source, SourceState.RETIRED, "its id is known", clock_ms())
    await sink.publish(topic, retired)
