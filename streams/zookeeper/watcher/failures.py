"""What keeps the observer from reading, each as one line that says what to do."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from featurewatch.streams.source_status import StallReason
from featurewatch.streams.zookeeper.paths import (
    CLUSTER_ID,
    CONTROLLER,
    CONTROLLER_EPOCH,
    MIGRATION,
    WatchTarget,
)

SIDE_PATHS: Final = frozenset({CONTROLLER, CONTROLLER_EPOCH, MIGRATION})
"""What brokers and levels can be judged without: such a znode is told as unreadable, no more."""

_UNDER_WAY: Final = 2**63


@dataclass(frozen=True, slots=True)
class _RetryLater:
    line: str
    again_ms: int
    since_ms: int


class ZookeeperFailures:
    """Collects them; ``where`` names the servers and the chroot."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._offline: StallReason | None = None
        self._lag: StallReason | None = None
        self._identity: StallReason | None = None
        self._forbidden: dict[WatchTarget, _RetryLater] = {}
        self._failed: dict[WatchTarget, _RetryLater] = {}

    @property
    def worst(self) -> StallReason | None:
        """The one that hinders most."""
        if first := self._offline or self._lag or self._identity:
            return first
        for target, each in self._forbidden.items():
            if target.path not in SIDE_PATHS:
                return StallReason(each.line, True, each.since_ms)
        for each in self._failed.values():
            return StallReason(each.line, False, each.since_ms)
        return None

    # -- the connection ----------------------------------------------------------------------

    def served(self) -> None:
        """A server answered: a connection alone may be one that is closed at once."""
        self._offline = None

    def disconnected(self, line: str, now_ms: int) -> None:
        """There is none; the newest reason counts, since when stays."""
        self._offline = StallReason(
            line, False, self._offline.since_ms if self._offline else now_ms
        )

    def lagging(self, zxid: int, now_ms: int) -> int:
        """The server does not know transaction ``zxid``; gives since when that lasts."""
        since_ms = self._lag.since_ms if self._lag else now_ms
        line = f"the server at {self._where} does not know transaction 0x{zxid:x} yet: it lags"
        self._lag = StallReason(line, False, since_ms)
        return since_ms

    def level(self) -> None:
        """All was read, and nothing of it is older than what was known."""
        self._lag = None

    # -- whose znodes they are ---------------------------------------------------------------

    def identified(self) -> None:
        """They are the cluster's."""
        self._identity = None

    def unidentified(self, why: str, now_ms: int) -> None:
        """``why`` it is not known, with what to do."""
        since_ms = self._identity.since_ms if self._identity else now_ms
        self._identity = StallReason(f"{self._where}: {why}", True, since_ms)

    def other_cluster(self, found: str, cluster: str | None, now_ms: int) -> None:
        """They are another cluster's."""
        self.unidentified(
            f"these are the znodes of cluster {found}, not of {cluster}: check the addresses and "
            "the chroot, or the cluster's id in the settings",
            now_ms,
        )

    def chroot(self, there: bool, now_ms: int) -> None:
        """No cluster's id was found; whether the chroot itself is there."""
        if there:
            why = f"{CLUSTER_ID} is not there: no Kafka registered here yet, or under a chroot"
        else:
            why = "the chroot does not exist: check what stands after the addresses"
        self.unidentified(why, now_ms)

    # -- single znodes -----------------------------------------------------------------------

    def forbidden(self, target: WatchTarget, now_ms: int, retry_ms: int) -> bool:
        """A target may not be read; whether that is new."""
        before = self._forbidden.get(target)
        line = f"reading {target.path} is forbidden: give READ on it to the login in use"
        since_ms = before.since_ms if before else now_ms
        self._forbidden[target] = _RetryLater(line, now_ms + retry_ms, since_ms)
        return before is None

    def failed(self, target: WatchTarget, reason: str, now_ms: int, retry_ms: int) -> None:
        """Reading a target failed; it is tried again."""
        before = self._failed.get(target)
        line = f"{target.path} cannot be read at {self._where}: {reason}"
        since_ms = before.since_ms if before else now_ms
        self._failed[target] = _RetryLater(line, now_ms + retry_ms, since_ms)

    def mended(self, target: WatchTarget) -> bool:
        """A target was read, or is not wanted any more; whether it was forbidden before."""
        self._failed.pop(target, None)
        return self._forbidden.pop(target, None) is not None

    def due(self, now_ms: int) -> Iterable[WatchTarget]:
        """What is to be tried again now; not said twice before it is tried."""
        due = []
        for refused in (self._forbidden, self._failed):
            for target, each in refused.items():
                if each.again_ms <= now_ms:
                    refused[target] = replace(each, again_ms=_UNDER_WAY)
                    due.append(target)
        return due
