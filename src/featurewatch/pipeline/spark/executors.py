"""Notices that a Spark cluster has no executors for the work that waits.

Spark waits for executors forever and without a word: on a standalone cluster whose master was
restarted, which ends the executors of those that it does not know, or whose workers have less
memory than an executor wants.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from featurewatch.pipeline.errors import RunError

LOG: Final = logging.getLogger("featurewatch.pipeline")

PATIENCE_S: Final = 60.0
"""How long work may wait without an executor. A cluster replaces one within seconds."""
_POLL_S: Final = 2.0
_NOTHING_IS_LOST: Final = "start again: it continues where it was, and nothing is lost"


class Verdict(Enum):
    """Whether the work that waits has executors."""

    FINE = "fine"
    NONE_YET = "none yet"
    ALL_LOST = "all lost"


class Absence:
    """Judges how long work has waited without an executor.

    Before the first executor a cluster may still be preparing it, so that takes as long as it
    takes.
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._since: float | None = None
        self._had_any = False

    def judge(self, executors: int, *, is_waiting: bool, now_s: float) -> Verdict:
        """Takes the number of executors, whether any job is unfinished, and the time in seconds.

        A cluster that allocates executors dynamically has none while there is nothing to do.
        """
        self._had_any = self._had_any or executors > 0
        if executors > 0 or not is_waiting:
            self._since = None
            return Verdict.FINE
        if self._since is None:
            self._since = now_s
        if now_s - self._since < self._patience_s:
            return Verdict.FINE
        return Verdict.ALL_LOST if self._had_any else Verdict.NONE_YET


@contextmanager
def executors_watched(
    session: SparkSession, master: str, monotonic: Callable[[], float] = time.monotonic
) -> Iterator[None]:
    """Ends the work of the block if all executors of a cluster are lost and none replaces them.

    ``monotonic`` gives seconds of a clock that does not go back.

    Raises:
        RunError: That happened.
    """
    if master.startswith("local"):
        yield
        return
    stop, lost = threading.Event(), threading.Event()
    watched = (session, master, stop, lost, monotonic)
    watcher = threading.Thread(target=_watch, args=watched, daemon=True)
    watcher.start()
    try:
        yield
    except Exception as error:
        if lost.is_set():
            raise RunError(
                f"the Spark cluster {master} lost all executors and gave no other for "
                f"{PATIENCE_S:.0f} s: see whether its master and workers run, and "
                f"{_NOTHING_IS_LOST}"
            ) from error
        raise
    finally:
        stop.set()
        watcher.join()


def _watch(
    session: SparkSession,
    master: str,
    stop: threading.Event,
    lost: threading.Event,
    monotonic: Callable[[], float],
) -> None:
    context: Any = session.sparkContext._jsc.sc()
    absence, has_told = Absence(), False
    while not stop.wait(_POLL_S):
        try:
            executors = context.getExecutorMemoryStatus().size() - 1  # the driver is one of them
            is_waiting = len(context.statusTracker().getActiveJobIds()) > 0
            verdict = absence.judge(executors, is_waiting=is_waiting, now_s=monotonic())
            if verdict is Verdict.ALL_LOST:
                lost.set()
                context.cancelAllJobs()  # again and again: a stream may begin another one
        except (Py4JError, OSError):
            return  # the session ends
        if verdict is Verdict.NONE_YET and not has_told:
            has_told = True
            LOG.warning(
                "the Spark cluster %s has given no executor for %.0f s: see whether its workers "
                "have the cores and the memory that an executor wants; waiting",
                *(master, PATIENCE_S),
            )
