"""Python's garbage collector in processes that hold images."""

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
