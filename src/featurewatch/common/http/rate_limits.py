"""How much of something each client may do: token buckets in a table of bounded size. Pure.

And a log of what was refused: one line in a period, however much it was.
"""

import logging
import math
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Final

MAX_CLIENTS: Final = 10_000
"""Beyond this number the least recent client is forgotten; it begins again with a full bucket."""

_MAX_LOGGED_CLIENTS: Final = 1_000


class RateLimits:
    """One bucket a client, which holds ``burst`` and gets ``per_s`` a second.

    ``clock`` gives seconds, of a clock that never goes back.
    """

    def __init__(self, per_s: float, burst: float, clock: Callable[[], float]) -> None:
        self._per_s = per_s
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, client: str) -> float:
        """Takes one token from a client's bucket; returns the seconds to wait if it is empty."""
        level = self._level(client)
        wait = max(0.0, 1 - level) / self._per_s
        self._buckets[client] = (level if wait else level - 1, self._clock())
        self._buckets.move_to_end(client)
        if len(self._buckets) > MAX_CLIENTS:
            self._buckets.popitem(last=False)
        return wait

    def give_back(self, client: str) -> None:
        """Returns a token that was not used; a client that was forgotten meanwhile has them all."""
        if client in self._buckets:
            self._buckets[client] = (min(self._burst, self._level(client) + 1), self._clock())

    def _level(self, client: str) -> float:
        known = self._buckets.get(client)
        if known is None:
            return self._burst
        level, at = known
        return min(self._burst, level + (self._clock() - at) * self._per_s)


class RefusalLog:
    """Logs what was refused: the first refusal of a kind at once, then their number in a period.

    ``clock`` gives seconds. The next refusal after a period writes the line.
    """

    def __init__(
        self, log: logging.Logger, clock: Callable[[], float], period_s: float = 60.0
    ) -> None:
        self._log = log
        self._clock = clock
        self._period_s = period_s
        self._since: dict[str, float] = {}
        self._counts: dict[str, Counter[str]] = {}

    def note(self, kind: str, client: str) -> None:
        """One refusal; ``kind`` is one of a few texts, such as ``too many requests``."""
        counts = self._counts.setdefault(kind, Counter())
        if client in counts or len(counts) < _MAX_LOGGED_CLIENTS:
            counts[client] += 1
        now = self._clock()
        since = self._since.get(kind, -math.inf)
        if now - since < self._period_s:
            return
        self._since[kind] = now
        worst, count = counts.most_common(1)[0]
        self._log.warning(
            "refused because of %s: %d since the last such line, most of them (%d) from %s; this "
            "is logged every %g s at most",
            *(kind, counts.total(), count, worst, self._period_s),
        )
        counts.clear()
