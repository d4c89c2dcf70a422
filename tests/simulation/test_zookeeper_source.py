"""From a simulated ZooKeeper through the real observer to the image, which equals the truth."""

import pytest

from tests.simulation.watched_znodes import run

SEEDS = 300


@pytest.mark.parametrize("first", range(0, SEEDS, 100))
def test_the_published_znodes_are_those_of_zookeeper(first: int) -> None:
    """With lagging servers, disconnections and lost sessions no change is lost or invented."""
    for seed in range(first, first + 100):
        try:
            run(seed)
        except BaseException as error:
            error.add_note(f"seed {seed}: run(seed) in {__file__} plays it again")
            raise
