"""From a simulated ZooKeeper through the real observer to the image, which equals the truth."""

import pytest

from tests.plugins.nightly import case_count
from tests.simulation.watched_znodes import run

SEEDS = case_count(300)
BLOCK = case_count(100)


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_the_published_znodes_are_those_of_zookeeper(first: int) -> None:
    """With lagging servers, disconnections and lost sessions no change is lost or invented."""
    for seed in range(first, first + BLOCK):
        try:
            run(seed)
        except BaseException as error:
            error.add_note(f"seed {seed}: run(seed) in {__file__} plays it again")
            raise
