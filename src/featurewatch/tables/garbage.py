"""Garbage and free memory of processes that hold images."""

import ctypes
import gc
from typing import Final

_THRESHOLDS: Final = 50_000, 20, 50
"""Python's defaults are 700, 10 and 10."""


def collect_rarely() -> None:
    """Makes this process look for garbage less often.

    Images are millions of small objects that stay: going through the new ones so often takes up to
    half of the time.
    """
    gc.set_threshold(*_THRESHOLDS)


def release_memory() -> None:
    """Returns what was freed to the system, after a message that took much memory.

    glibc keeps free memory below anything that is still in use, and a worker keeps some of what
    each message brought. Other C libraries do nothing here.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
