"""When a worker returns memory to the system."""

import asyncio
from collections.abc import Callable
from typing import Final

from featurewatch.tables.garbage import release_memory

_RELEASE_S: Final = 1.0


class LateRelease:
    """Releases memory some time after it was requested, once for all requests until then.

    A large message is still in the buffers of the client when it has been processed. ``release`` is
    called in the running event loop, ``delay_s`` seconds after the first request.
    """

    def __init__(
        self, delay_s: float = _RELEASE_S, release: Callable[[], None] = release_memory
    ) -> None:
        self._delay_s = delay_s
        self._release = release
        self._is_due = False

    def request(self) -> None:
        """Requests a release; one that is due already does."""
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(self._delay_s, self._run)

    def _run(self) -> None:
        self._is_due = False
        self._release()
