"""Each cluster's share of a worker's time.

A worker processes the messages of all its clusters one after the other. Whoever answers as one
cluster decides what its messages cost, so a message that costs far more than its size explains is
charged to its cluster. A cluster that has used up its share is passed over for a while: its
messages count as lost, which an alert about it says, and its source publishes its state again
later. The alerts of the other clusters arrive meanwhile.
"""

from typing import Final

from featurewatch.streams.types import ClusterId

CAPACITY_S: Final = 120.0
"""What a cluster may use at once, in seconds of the processor beyond what its messages explain."""

SHARE: Final = 0.2
"""What it may use in the long run, of each second."""

_MESSAGE_S: Final = 0.002
_BYTE_S: Final = 0.5e-6
"""What a message explains, with its bytes: twice as much as one of changed partitions costs."""


class TimeShare:
    """What clusters have used of a worker's time. Pure: times are monotonic seconds.

    It holds the clusters that have used more than is refilled: few, and each was processed.
    """

    def __init__(self) -> None:
        self._used_s: dict[ClusterId, tuple[float, float]] = {}
        self._over: set[ClusterId] = set()

    def charge(self, cluster: ClusterId, took_s: float, size_bytes: int, now_s: float) -> None:
        """Charges a message of a cluster: the processor's seconds that it took, and its bytes."""
        excess_s = took_s - _MESSAGE_S - size_bytes * _BYTE_S
        if excess_s > 0:
            used_s = self._used(cluster, now_s) + excess_s
            self._used_s[cluster] = used_s, now_s
            if used_s > CAPACITY_S:
                self._over.add(cluster)

    def is_over(self, cluster: ClusterId, now_s: float) -> bool:
        """Whether a cluster has used up its share, until half of it is there again."""
        if cluster not in self._used_s:
            return False
        used_s = self._used(cluster, now_s)
        if used_s <= CAPACITY_S / 2:
            self._over.discard(cluster)
        if used_s <= 0:
            del self._used_s[cluster]
        return cluster in self._over

    def _used(self, cluster: ClusterId, now_s: float) -> float:
        used_s, at_s = self._used_s.get(cluster, (0.0, now_s))
        return max(used_s - (now_s - at_s) * SHARE, 0.0)
