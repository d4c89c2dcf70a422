"""The two clocks that shells hand in."""

import time


def wall_clock_ms() -> int:
    """Milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    """Milliseconds of a clock that does not go back."""
    return time.monotonic_ns() // 1_000_000
