"""Clusters over a faulty ZooKeeper, and proof that the auditor notices bugs."""

import subprocess
import sys

import pytest

from tests.paths import ROOT
from tests.plugins.nightly import case_count
from tests.simulation.reference.__main__ import run
from tests.simulation.reference.bugs import BUGS

SEEDS = case_count(1000)
FIRST_SEEDS = {
    "a deposed controller can write": 49,
    "a lost write counts as done": 18,
    "brokers are not watched again": 25,
}
"""Where a bug that shows late is looked for first."""
BLOCK = case_count(100)


@pytest.mark.form("document", "released")
@pytest.mark.parametrize("block", range(0, SEEDS, BLOCK))
def test_histories(block: int) -> None:
    """Whatever fails, the invariants hold, in any order of events (F-13, F-28, F-42, F-44, F-70).

    Levels lie within every range of the live set, the epoch grows by one a write, only the newest
    controller's writes take effect, reported successes are done, rejected requests changed nothing,
    and at rest every broker has the finalized levels or has exited.
    """
    elections = written = 0
    for seed in range(block, block + BLOCK):
        world = run(seed)
        elections += world.auditor.elections
        written += len(world.auditor.written)
    assert elections > BLOCK
    assert written > BLOCK


@pytest.mark.parametrize("bug", BUGS)
def test_the_auditor_notices(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each planted bug breaks an invariant in one of the first few hundred histories."""
    owner, name, planted = BUGS[bug]
    monkeypatch.setattr(owner, name, planted)
    with pytest.raises(AssertionError) as failure:
        first = FIRST_SEEDS.get(bug, 0)
        for seed in range(first, first + 400):
            run(seed)
    assert any(note.startswith("seed ") for note in failure.value.__notes__)


def test_by_hand() -> None:
    """The command runs the given seeds and prints its speed."""
    command = [sys.executable, "-m", "tests.simulation.reference", "--seeds", "3", "--from", "7"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("3 histories in ")
    topics = subprocess.run(
        [*command, "--topics"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert topics.stdout.startswith("3 histories of topics in ")
