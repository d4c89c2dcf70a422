"""How many messages about alerts one cluster may publish: its share of every reader's turn.

Webhooks are called one after the other, and so wait for whoever publishes most. What a cluster's
log says may begin and end any number of alerts with each event, so their beginnings and the changes
of their texts are counted; each end follows a beginning.
"""

from typing import Final, NamedTuple, Self

CAPACITY: Final = 1000
"""Messages at once: twice what a cluster may have of firing alerts."""

MESSAGE_MS: Final = 1000
"""One more message after each such time."""


class AlertBudget(NamedTuple):
    """The budget of a cluster, in times of the bus (ms since the Unix epoch).

    Nothing is spent if ``full_ms`` has passed: each message moves it by `MESSAGE_MS` (the generic
    cell rate algorithm, which needs a single number).
    """

    full_ms: int = 0

    def left(self, now_ms: int) -> int:
        """The messages that may be published now."""
        return CAPACITY - -(-max(self.full_ms - now_ms, 0) // MESSAGE_MS)

    def spend(self, messages: int, now_ms: int) -> Self:
        """The budget after some messages."""
        return type(self)(max(self.full_ms, now_ms) + messages * MESSAGE_MS) if messages else self


NOTHING_SPENT: Final = AlertBudget()
