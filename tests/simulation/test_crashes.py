"""The worker may die between any two rows: nothing is lost, or said with another key."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulation.engine import Engine, encoded_outputs, rows_of
from tests.simulation.world import World


def crash_everywhere(seed: int, steps: int) -> None:
    """Dies after each row of each event of a history, and takes the event in again."""
    engine = Engine()
    for number, event in enumerate(World(Random(seed)).history(steps)):
        rows, state = dict(engine.rows), engine.state
        expected = encoded_outputs(engine.apply(event))
        for written in range(rows_of(state, event) + 1):
            crashed = Engine(rows)
            crashed.apply(event, rows_written=written)
            crashed.apply(event)
            where = f"seed {seed}, event {number}, killed after {written} rows: {event}"
            assert crashed.state == engine.state, where
            assert Engine(crashed.rows).state == engine.state, where
            assert set(crashed.published) == set(expected), where


def test_killed_after_any_row_of_any_event() -> None:
    """Whatever prefix of an event's rows was kept, the event taken in again leads to one state,
    and what was said twice is the same byte by byte."""
    for seed in range(150):
        crash_everywhere(seed, steps=20)


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 10**9),
    deaths=st.lists(st.tuples(st.integers(0, 45), st.integers(0, 9)), max_size=25),
)
def test_killed_again_and_again(seed: int, deaths: list[tuple[int, int]]) -> None:
    """Many deaths in one history end in the state, and in the outputs, of a life without."""
    calm, killed = Engine(), Engine()
    for number, event in enumerate(World(Random(seed)).history(steps=25)):
        calm.apply(event)
        for _, rows in (death for death in deaths if death[0] == number):
            killed.apply(event, rows_written=rows)
        killed.apply(event)
    assert killed.state == calm.state
    assert Engine(killed.rows).state == calm.state
    assert set(killed.published) == set(calm.published)
    ids = [one for one, _ in set(killed.published) if "/change/" in one or "/revision/" in one]
    assert len(ids) == len(set(ids)), "one key, two contents"
