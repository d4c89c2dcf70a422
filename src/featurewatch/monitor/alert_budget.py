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
    """What a cluster has spent, at a time of the bus (ms since the Unix epoch).

    ``spent_ms`` is `MESSAGE_MS` for each message, less the time that has passed since. The topics
    of a cluster may be read at different times of the bus: one that is behind gives nothing back.
    """

    spent_ms: int = 0
    at_ms: int = 0

    def left(self, now_ms: int) -> int:
        """The messages that may be published now."""
        return CAPACITY - -(-self._spent_ms(now_ms) // MESSAGE_MS)

    def spend(self, messages: int, now_ms: int) -> Self:
        """The budget after some messages."""
        if not messages:
            return self
        spent_ms = self._spent_ms(now_ms) + messages * MESSAGE_MS
        return type(self)(spent_ms, max(self.at_ms, now_ms))

    def _spent_ms(self, now_ms: int) -> int:
        return max(self.spent_ms - max(now_ms - self.at_ms, 0), 0)


NOTHING_SPENT: Final = AlertBudget()
