"""Keeps the names of a cluster fresh in a separate thread, so that completion never waits."""

import threading
import time
from collections.abc import Callable
from typing import Final

from featurewatch.cli.commands.shell.cluster_names import ClusterNames
from featurewatch.common.text import error_line, quoted

MAX_AGE_S: Final = 30.0
"""Names that are older are reread when they are completed."""

PAUSE_S: Final = 1.0
REST_FACTOR: Final = 20.0
"""The pause after a read, as a multiple of its duration: a read of a large cluster takes seconds of
one core here and on the broker."""


class NamesRefresher:
    """The names that were read last; empty until then, and for a broken cluster.

    ``read`` gives the names, and may raise anything; it runs in this thread alone. ``monotonic``
    gives seconds of a clock that does not go back.
    """

    def __init__(
        self, read: Callable[[], ClusterNames], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read
        self._monotonic = monotonic
        self._is_wanted = threading.Event()
        self._is_ended = threading.Event()
        self._names = ClusterNames()
        self._read_at: float | None = None
        self._thread = threading.Thread(target=self._run, name="names", daemon=True)
        self.error = ""
        """One line with the reason why the last read failed; empty if it did not."""

    def start(self) -> None:
        """Reads for the first time, in the background."""
        self._thread.start()
        self.request()

    def stop(self) -> None:
        """Stops reading; does not wait for a running read."""
        self._is_ended.set()
        self._is_wanted.set()

    def join(self, timeout_s: float) -> None:
        """Waits until a read that ran when it was stopped is over."""
        self._thread.join(timeout_s)

    def request(self) -> None:
        """Reads the names soon, because they may have changed. Returns at once."""
        self._is_wanted.set()

    def names(self) -> ClusterNames:
        """The known names; if they are old, new ones are read in the meantime."""
        if self._read_at is None or self._monotonic() - self._read_at > MAX_AGE_S:
            self.request()
        return self._names

    def _run(self) -> None:
        while True:
            self._is_wanted.wait()
            self._is_wanted.clear()
            if self._is_ended.is_set():
                return
            begin = self._monotonic()
            try:
                self._names, self.error = self._read(), ""
            except Exception as error:
                # Completion is optional: whatever fails, the person can type without it.
                self.error = _reason(error)
            self._read_at = self._monotonic()
            self._is_ended.wait(max(PAUSE_S, REST_FACTOR * (self._read_at - begin)))


def _reason(error: Exception) -> str:
    from featurewatch.admin.errors import AdminError
    from featurewatch.cli.errors import UsageError

    if isinstance(error, AdminError | UsageError):
        return quoted(str(error))
    return "the cluster took too long" if isinstance(error, TimeoutError) else error_line(error)
