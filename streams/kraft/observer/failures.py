"""What keeps the observer from reading: of what controllers say, the line that helps most."""

from enum import IntEnum
from typing import NamedTuple

from featurewatch.streams.net.address import Address
from featurewatch.streams.source_status import StallReason


class FailureRank(IntEnum):
    """How much a line counts beside those of other controllers, from the least to the most."""

    SILENT = 0
    """No usable connection, or no answer."""

    BEHIND = 1
    """An answer out of an older epoch."""

    ANSWERED = 2
    """Any other answer: it knows more of the quorum than a connection that is refused."""

    LASTING = 3
    """What will not mend by itself."""


class _Said(NamedTuple):
    weight: FailureRank
    line: str


class QuorumFailures:
    """Keeps the newest line of each controller until the leader answers.

    ``worst`` is the one of most weight, and of several the one whose controller spoke first: it
    stays the same while the controllers are asked in turn.
    """

    def __init__(self) -> None:
        self.worst: StallReason | None = None
        self._said: dict[Address, _Said] = {}

    def record(
        self, of: Address, line: str, now_ms: int, weight: FailureRank = FailureRank.ANSWERED
    ) -> None:
        """Takes what asking the controller at ``of`` came to."""
        self._said[of] = _Said(weight, line)
        first = max(self._said.values(), key=lambda said: said.weight)
        since_ms = self.worst.since_ms if self.worst else now_ms
        self.worst = StallReason(first.line, first.weight is FailureRank.LASTING, since_ms)

    def new_epoch(self) -> None:
        """What was said of the last epoch does not count; the trouble stays until more is known."""
        self._said.clear()

    def clear(self) -> None:
        """The leader answered."""
        self._said.clear()
        self.worst = None
