"""Garbage and free memory of processes that hold images."""

import ctypes
import gc
from collections.abc import Callable
from functools import cache
from typing import Final

_THRESHOLDS: Final = 50_000, 20, 50
"""Python's defaults are 700, 10 and 10."""

_M_ARENA_MAX: Final = -8
"""The number of the option in glibc's malloc.h."""


def collect_rarely() -> None:
    """Makes this process look for garbage less often.

    Images are millions of small objects that stay: going through the new ones so often takes up to
    half of the time.
    """
    gc.set_threshold(*_THRESHOLDS)


def collect_all() -> None:
    """Frees all garbage now.

    A connection that failed is a reference cycle of its error, the frames that it went through and
    the messages that these had. Few objects may have many bytes, and a process that looks for
    garbage rarely may keep the old ones for days.
    """
    gc.collect()


def share_memory() -> None:
    """Makes the threads that start later share one or two of glibc's arenas.

    It gives each of a client's fifty threads one for itself, up to eight for each processor, and
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
