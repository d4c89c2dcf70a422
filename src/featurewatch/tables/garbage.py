"""Garbage and free memory of processes that hold images."""

import asyncio
import ctypes
import gc
from collections.abc import Callable
from functools import cache
from typing import Final

_THRESHOLDS: Final = 50_000, 20, 50
"""Python's defaults are 700, 10 and 10."""

_RELEASE_S: Final = 1.0

_M_ARENA_MAX: Final = -8
"""The number of the option in glibc's malloc.h."""


def collect_rarely() -> None:
    """Makes this process look for garbage less often.

    Images are millions of small objects that stay: going through the new ones so often takes up to
    half of the time.
    """
    gc.set_threshold(*_THRESHOLDS)


def share_memory() -> None:
    """Makes the threads that start later share one or two of glibc's arenas.

    It gives each of a client's fifty threads one of its own, up to eight for each processor, and
    each keeps what it freed. Other C libraries do nothing here.
    """
    set_option = _c_function("mallopt")
    if set_option is not None:
        set_option(_M_ARENA_MAX, 2)


@cache
def _c_function(name: str) -> Callable[..., int] | None:
    return getattr(ctypes.CDLL(None), name, None)


def release_memory() -> None:
    """Returns to the system what was freed.

    glibc keeps free memory below anything that is still in use, and a worker keeps some of what
    each message brought. Other C libraries do nothing here.
    """
    trim = _c_function("malloc_trim")
    if trim is not None:
        trim(0)


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
