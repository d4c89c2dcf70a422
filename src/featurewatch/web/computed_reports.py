"""Reports that follow from the rows of a cluster: computed in a thread, and held for a moment."""

import asyncio
from collections.abc import Callable
from typing import Final

from featurewatch.streams.types import ClusterId
from featurewatch.web.cluster_locks import ClusterLocks
from featurewatch.web.report_cache import ReportCache
from featurewatch.web.worker_rows import WorkerRows

_HELD_MS: Final = 10_000
"""What reports say of nodes that are unavailable depends on the time, too."""


class ComputedReports:
    """The reports of all clusters; ``now_ms`` is the wall clock.

    Of each cluster one is computed at a time: restoring a large one takes long, and whoever asks
    again and again keeps nobody else waiting.
    """

    def __init__(self, rows: WorkerRows, locks: ClusterLocks, now_ms: Callable[[], int]) -> None:
        self._rows = rows
        self._locks = locks
        self._now_ms = now_ms
        self._held = ReportCache()

    async def get(self, cluster: ClusterId, name: str, compute: Callable[[], bytes]) -> bytes:
        """The report of this name: the one that is held while the cluster's rows are the same, or
        what ``compute`` returns. ``name`` has whatever else the report follows from."""
        number = self._rows.version(cluster) * 1_000_000_000 + self._now_ms() // _HELD_MS
        async with self._locks.of(cluster):
            body = self._held.get((cluster, name, number))
            if body is None:
                body = await asyncio.to_thread(compute)
                self._held.put((cluster, name, number), body)
            return body
