"""Tracks why the observer cannot fetch, and picks the most useful of the controllers' errors."""

from enum import IntEnum
from typing import NamedTuple

from featurewatch.kafka.address import Address
from featurewatch.streams.source_status import StallReason


class FailureRank(IntEnum):
    """How useful an error is beside those of other controllers, in ascending order."""

    SILENT = 0
    """No usable connection, or no response."""

    BEHIND = 1
    """A response of an older epoch."""

    ANSWERED = 2
    """Any other response: it says more about the quorum than a refused connection."""

    PERMANENT = 3
    """A failure that does not end on its own."""


class _Failure(NamedTuple):
    rank: FailureRank
    message: str


class QuorumFailures:
    """Keeps each controller's newest error until the leader responds.

    ``worst`` has the highest rank; of several it is that of the controller that failed first, so it
    stays the same while the controllers are tried in turn.
    """

    def __init__(self) -> None:
        self.worst: StallReason | None = None
        self._by_address: dict[Address, _Failure] = {}

    def record(
        self, address: Address, message: str, now_ms: int, rank: FailureRank = FailureRank.ANSWERED
    ) -> None:
        """Record why the controller at ``address`` was of no use."""
        self._by_address[address] = _Failure(rank, message)
        first = max(self._by_address.values(), key=lambda failure: failure.rank)
        since_ms = self.worst.since_ms if self.worst else now_ms
        self.worst = StallReason(first.message, first.rank is FailureRank.PERMANENT, since_ms)

    def new_epoch(self) -> None:
        """Errors of the last epoch do not count; ``worst`` stays until there is a newer one."""
        self._by_address.clear()

    def clear(self) -> None:
        """The leader responded."""
        self._by_address.clear()
        self.worst = None
