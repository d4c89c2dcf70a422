"""After a crash the bus gives again what was read since the last commit of offsets."""

from random import Random

from featurewatch.streams.events import Event, LogGap
from tests.simulation.engine import Engine
from tests.simulation.world import World

SEEDS = range(4000)
WINDOWS = {False: 350, True: 15}
"""So many are looked at, without and with a log that goes backwards in them."""


def windows(*, with_reset: bool) -> list[tuple[int, list[Event], int, int]]:
    """Histories with a stretch [first, end) that is given twice."""
    found = []
    for seed in SEEDS:
        events = World(Random(seed)).history(steps=25)
        dice = Random(seed)
        end = dice.randrange(5, len(events))
        first = max(0, end - dice.randint(1, 8))
        reset = any(isinstance(event, LogGap) and event.reset for event in events[first:end])
        if reset == with_reset:
            found.append((seed, events, first, end))
        if len(found) == WINDOWS[with_reset]:
            return found
    raise AssertionError(f"only {len(found)} windows")


def given_again(events: list[Event], first: int, end: int) -> tuple[Engine, Engine]:
    """An engine that read everything once, and one that died and was given a stretch again."""
    calm, other = Engine(), Engine()
    calm.apply_all(events)
    other.apply_all(events[:end])
    other.restart()
    other.apply_all(events[first:], first)
    return calm, other


def test_a_stretch_again_ends_in_the_same_state() -> None:
    """And nothing that was said is missing."""
    for seed, events, first, end in windows(with_reset=False):
        calm, other = given_again(events, first, end)
        assert other.state == calm.state, f"seed {seed}, {first} to {end}"
        assert set(calm.published) <= set(other.published), f"seed {seed}, {first} to {end}"


def test_a_stretch_again_says_nothing_else() -> None:
    """What is said a second time was said before, word by word."""
    for seed, events, first, end in windows(with_reset=False):
        calm, other = given_again(events, first, end)
        assert set(other.published) <= set(calm.published), f"seed {seed}, {first} to {end}"


def test_a_stretch_again_with_a_log_that_went_backwards() -> None:
    """What was committed before it fell is not taken in after it."""
    for seed, events, first, end in windows(with_reset=True):
        calm, other = given_again(events, first, end)
        assert other.state == calm.state, f"seed {seed}, {first} to {end}"
