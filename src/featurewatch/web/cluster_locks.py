"""Locks of clusters: what is computed of one waits for the same cluster only."""

import asyncio
from typing import Final
from weakref import WeakValueDictionary

from featurewatch.streams.types import ClusterId


class ClusterLocks:
    """A lock for each cluster, for as long as somebody holds it or waits for it."""

    def __init__(self) -> None:
        self._locks: Final[WeakValueDictionary[ClusterId, asyncio.Lock]] = WeakValueDictionary()

    def of(self, cluster: ClusterId) -> asyncio.Lock:
        """Returns the lock of a cluster, for ``async with``."""
        lock = self._locks.get(cluster)
        if lock is None:
            lock = self._locks[cluster] = asyncio.Lock()
        return lock
