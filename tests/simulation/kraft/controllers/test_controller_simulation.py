"""Controllers over a faulty network, disk and clock, and proof that the auditors notice bugs."""

import pytest

from tests.plugins.nightly import case_seeds
from tests.simulation.kraft.controllers.__main__ import run
from tests.simulation.kraft.controllers.bugs import BUGS

SEEDS = case_seeds(40)


def test_histories() -> None:
    """Whatever fails, what controllers answer is committed and stays, and states agree.

    A registration, topic, level, ISR or block of producer ids that was confirmed is in the
    committed log at that time; epochs of brokers grow, ids and names are given once; controllers
    have one state at one offset; leaders are in sync and not fenced; a controller at a level that
    it does not support has ended.
    """
    answers = levels = 0
    for seed in SEEDS:
        world = run(seed)
        answers += world.metadata.answers
        levels += world.metadata.level_changes
    assert answers > 10 * len(SEEDS)
    assert levels > 2 * len(SEEDS)


FEW = 20
"""Histories that may pass before a bug is noticed; more of them take seconds."""


@pytest.mark.parametrize("bug", BUGS)
def test_the_auditors_notice(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each planted bug breaks an invariant in one of the first histories."""
    patches, first = BUGS[bug]
    for owner, name, planted in patches:
        monkeypatch.setattr(owner, name, planted)
    with pytest.raises(AssertionError) as failure:
        for seed in (first, *range(200)):
            run(seed)
    assert any(note.startswith("seed ") for note in failure.value.__notes__)
    assert seed == first or seed < FEW, f"name the seed {seed} in BUGS, which is tried first"
