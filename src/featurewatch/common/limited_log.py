"""Lines of a log whose number others determine: a few at once, then one a minute, with a count."""

import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from featurewatch.common.http.rate_limits import RateLimits

_AT_ONCE: Final = 10
_PERIOD_S: Final = 60.0
_MAX_KINDS: Final = 1_000


class LimitedLog:
    """Logs ten lines of a kind at once, then one in a minute, which counts those left out.

    ``clock`` gives seconds of a clock that never goes back.
    """

    def __init__(self, log: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._limits = RateLimits(1 / _PERIOD_S, _AT_ONCE, clock)
        self._left_out: Counter[str] = Counter()

    def note(
        self, kind: str, text: str, *arguments: object, exc_info: BaseException | None = None
    ) -> None:
        """Logs an error, unless there were too many of its kind, such as the name of a topic."""
        if self._limits.take(kind):
            if kind in self._left_out or len(self._left_out) < _MAX_KINDS:
                self._left_out[kind] += 1
            return
        if count := self._left_out.pop(kind, 0):
            text, arguments = f"{text} (and %d more since the last such line)", (*arguments, count)
        self._log.error(text, *arguments, exc_info=exc_info)
