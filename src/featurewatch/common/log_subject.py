"""The cluster and the source that lines of a log are about.

A task sets its subject once; what it calls, its own tasks and `asyncio.to_thread` inherit it, so a
call of a logger needs no arguments for it. Only the JSON form of a line shows it.
"""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class LogSubject:
    """``cluster`` returns the id as far as it is known when a line is written; empty: unknown."""

    cluster: Callable[[], str]
    source: str = ""


_current: Final[ContextVar[LogSubject | None]] = ContextVar("featurewatch_log_subject")


def current_subject() -> LogSubject | None:
    """Returns the subject of lines that are written now; None: there is none."""
    return _current.get(None)


@contextlib.contextmanager
def log_subject(cluster: Callable[[], str], source: str = "") -> Iterator[None]:
    """Lines in this context are about a cluster, and about one of its sources if it is named."""
    token = _current.set(LogSubject(cluster, source))
    try:
        yield
    finally:
        _current.reset(token)
