"""After a crash the bus delivers messages again, from the last committed offset on."""

from random import Random

from featurewatch.streams.events import Event, LogGap
from tests.plugins.nightly import case_count
from tests.simulation.engine import Engine
from tests.simulation.world import World

SEEDS = range(4000)
WINDOWS = {False: case_count(350), True: max(3, case_count(15))}
"""The number of windows to test, without and with a log that goes backwards in them."""


def windows(*, with_reset: bool) -> list[tuple[int, list[Event], int, int]]:
    """Histories with a window [first, end) that is delivered twice."""
    selected = []
    for seed in SEEDS:
        events = World(Random(seed)).history(steps=25)
        dice = Random(seed)
        end = dice.randrange(5, len(events))
        first = max(0, end - dice.randint(1, 8))
        reset = any(isinstance(event, LogGap) and event.reset for event in events[first:end])
        if reset == with_reset:
            selected.append((seed, events, first, end))
        if len(selected) == WINDOWS[with_reset]:
            return selected
    raise AssertionError(f"only {len(selected)} windows")


def given_again(events: list[Event], first: int, end: int) -> tuple[Engine, Engine]:
    """An engine that read everything once, and one that crashed and read a window again."""
    calm, other = Engine(), Engine()
    calm.apply_all(events)
    other.apply_all(events[:end])
    other.restart()
    other.apply_all(events[first:], first)
    return calm, other


def test_a_stretch_again_ends_in_the_same_state() -> None:
    """No published output is missing either."""
    for seed, events, first, end in windows(with_reset=False):
        calm, other = given_again(events, first, end)
        assert other.state == calm.state, f"seed {seed}, {first} to {end}"
        assert set(calm.published) <= set(other.published), f"seed {seed}, {first} to {end}"


def test_redelivered_events_have_equal_outputs() -> None:
    """Outputs that are published again are equal, byte by byte."""
    for seed, events, first, end in windows(with_reset=False):
        calm, other = given_again(events, first, end)
        assert set(other.published) <= set(calm.published), f"seed {seed}, {first} to {end}"


def test_a_stretch_again_with_a_log_that_went_backwards() -> None:
    """Commits from before the log went backwards are not applied after it."""
    for seed, events, first, end in windows(with_reset=True):
        calm, other = given_again(events, first, end)
        assert other.state == calm.state, f"seed {seed}, {first} to {end}"
