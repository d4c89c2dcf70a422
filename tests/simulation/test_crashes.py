"""The worker may be killed between any two rows: nothing is lost or published with another key."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plugins.nightly import case_count
from tests.simulation.engine import Engine, encoded_outputs, rows_of
from tests.simulation.world import World


def crash_everywhere(seed: int, steps: int) -> None:
    """Kills the engine after each row of each event of a history, and applies the event again."""
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
    """Whatever prefix of an event's rows was persisted, applying the event again gives one state,
    and outputs published twice are equal byte by byte."""
    for seed in range(case_count(150)):
        crash_everywhere(seed, steps=20)


@settings(max_examples=200)
@given(
    seed=st.integers(0, 10**9),
    deaths=st.lists(st.tuples(st.integers(0, 45), st.integers(0, 9)), max_size=25),
)
def test_killed_again_and_again(seed: int, deaths: list[tuple[int, int]]) -> None:
    """Many crashes in one history give the same state and outputs as none."""
    calm, killed = Engine(), Engine()
    for number, event in enumerate(World(Random(seed)).history(steps=25)):
        calm.apply(event)
        for _, rows in (death for death in deaths if death[0] == number):
            killed.apply(event, rows_written=rows)
        killed.apply(event)
    assert killed.state == calm.state
    assert Engine(killed.rows).state == calm.state
    assert set(killed.published) == set(calm.published)
    ids = [id_ for id_, _ in set(killed.published) if "/change/" in id_ or "/revision/" in id_]
    assert len(ids) == len(set(ids)), "one key, two contents"
