"""What a worker does when its tables have been recovered."""

import gc
import weakref
from typing import Any

import pytest

from featurewatch.agents.at_least_once import OffsetTracker
from featurewatch.agents.processor import EventProcessor
from featurewatch.streams.bus.settings import BusSettings


class _App:
    """What a processor needs of an app before the first message."""

    tracker = OffsetTracker(lambda: pytest.fail("nothing is flushed"))


class _Cycle:
    """An object that refers to itself, as an error and the frames of its traceback do."""

    def __init__(self) -> None:
        self.itself = self


def _processor() -> EventProcessor:
    rest: Any = None
    return EventProcessor(_App(), BusSettings("none"), rest, rest, rest, rest, lambda: 0.0)  # type: ignore[arg-type]


async def test_a_recovery_frees_what_failed_connections_left_behind() -> None:
    """However rarely the process looks for garbage, and however old it is."""
    processor = _processor()
    left = _Cycle()
    gc.collect()  # it is among the oldest objects now
    found = weakref.ref(left)
    gc.disable()
    try:
        del left
        assert found() is not None
        assert processor.restore([], lambda _: True) == {}
        assert found() is None
        assert processor._memory._is_due, "what the changelog took is not returned to the system"
    finally:
        gc.enable()
