"""Whole cluster histories from seeds: the image equals the truth, and the auditor agrees."""

import pytest

from tests.plugins.nightly import case_count
from tests.simulation.histories import run, run_zookeeper

SEEDS = case_count(1200)
BLOCK = case_count(100)


@pytest.mark.form("document", "released")
@pytest.mark.parametrize("block", range(0, SEEDS, BLOCK))
def test_histories_of_zookeeper(block: int) -> None:
    """Histories of znodes end with the znodes' content (F-06 as released, F-11,
    F-12)."""
    for seed in range(block, block + BLOCK):
        try:
            run_zookeeper(seed)
        except BaseException as error:
            error.add_note(f"seed {seed}: run_zookeeper(seed) in {__file__} plays it again")
            raise


@pytest.mark.form("released")
@pytest.mark.parametrize("block", range(0, SEEDS, BLOCK))
def test_histories(block: int) -> None:
    """Histories end with the truth (F-33 as released, F-34, F-35, M-16, M-63, M-65, by any
    path)."""
    for seed in range(block, block + BLOCK):
        try:
            run(seed)
        except BaseException as error:
            error.add_note(f"seed {seed}: run(seed) in {__file__} plays it again")
            raise
