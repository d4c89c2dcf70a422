"""Why the watcher cannot read, each reason one line that says what to do."""

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
"""Znodes that brokers and levels do not depend on: unreadable ones do not stall the source."""

_PENDING: Final = 2**63


@dataclass(frozen=True, slots=True)
class _RetryLater:
    message: str
    due_ms: int
    since_ms: int


class ZookeeperFailures:
    """The current failures; ``where`` names the servers and the chroot in messages."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._offline: StallReason | None = None
        self._lag: StallReason | None = None
        self._identity: StallReason | None = None
        self._forbidden: dict[WatchTarget, _RetryLater] = {}
        self._failed: dict[WatchTarget, _RetryLater] = {}

    @property
    def worst(self) -> StallReason | None:
        """The most severe one."""
        if first := self._offline or self._lag or self._identity:
            return first
        for target, failure in self._forbidden.items():
            if target.path not in SIDE_PATHS:
                return StallReason(failure.message, True, failure.since_ms)
        for failure in self._failed.values():
            return StallReason(failure.message, False, failure.since_ms)
        return None

    # -- the connection ----------------------------------------------------------------------

    def served(self) -> None:
        """A server responded: a connection alone may be closed at once."""
        self._offline = None

    def disconnected(self, message: str, now_ms: int) -> None:
        """There is no connection; the newest reason counts, since the first."""
        self._offline = StallReason(
            message, False, self._offline.since_ms if self._offline else now_ms
        )

    def lagging(self, zxid: int, now_ms: int) -> int:
        """The server does not know transaction ``zxid``; returns since when."""
        since_ms = self._lag.since_ms if self._lag else now_ms
        message = f"the server at {self._where} does not know transaction 0x{zxid:x} yet: it lags"
        self._lag = StallReason(message, False, since_ms)
        return since_ms

    def level(self) -> None:
        """Everything was read, and nothing of it is older than what was read before."""
        self._lag = None

    # -- the cluster's id --------------------------------------------------------------------

    def identified(self) -> None:
        """The znodes are the cluster's."""
        self._identity = None

    def unidentified(self, reason: str, now_ms: int) -> None:
        """``reason``: why the cluster is not known, and what to do."""
        since_ms = self._identity.since_ms if self._identity else now_ms
        self._identity = StallReason(f"{self._where}: {reason}", True, since_ms)

    def other_cluster(self, other: str, cluster: str | None, now_ms: int) -> None:
        """The znodes are another cluster's."""
        self.unidentified(
            f"these are the znodes of cluster {other}, not of {cluster}: check the addresses and "
            "the chroot, or the cluster's id in the settings",
            now_ms,
        )

    def chroot(self, exists: bool, now_ms: int) -> None:
        """``/cluster/id`` does not exist; ``exists``: whether the chroot does."""
        if exists:
            reason = f"{CLUSTER_ID} is not there: no Kafka registered here yet, or under a chroot"
        else:
            reason = "the chroot does not exist: check the path after the addresses"
        self.unidentified(reason, now_ms)

    # -- single znodes -----------------------------------------------------------------------

    def forbidden(self, target: WatchTarget, now_ms: int, retry_ms: int) -> bool:
        """A target may not be read; returns whether that is new."""
        before = self._forbidden.get(target)
        message = f"reading {target.path} is forbidden: give READ on it to the login in use"
        since_ms = before.since_ms if before else now_ms
        self._forbidden[target] = _RetryLater(message, now_ms + retry_ms, since_ms)
        return before is None

    def failed(self, target: WatchTarget, reason: str, now_ms: int, retry_ms: int) -> None:
        """Reading a target failed; it is tried again."""
        before = self._failed.get(target)
        message = f"{target.path} cannot be read at {self._where}: {reason}"
        since_ms = before.since_ms if before else now_ms
        self._failed[target] = _RetryLater(message, now_ms + retry_ms, since_ms)

    def clear(self, target: WatchTarget) -> bool:
        """A target was read, or is no longer wanted; returns whether it was forbidden."""
        self._failed.pop(target, None)
        return self._forbidden.pop(target, None) is not None

    def due(self, now_ms: int) -> Iterable[WatchTarget]:
        """The targets to retry now, each once until it fails again."""
        due = []
        for failures in (self._forbidden, self._failed):
            for target, failure in failures.items():
                if failure.due_ms <= now_ms:
                    failures[target] = replace(failure, due_ms=_PENDING)
                    due.append(target)
        return due
