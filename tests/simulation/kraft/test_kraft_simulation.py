"""Quorums over a faulty network, disk and clock, and proof that the auditor notices bugs."""

import subprocess
import sys

import pytest

from featurewatch.reference.kraft.machines.log import InvalidAppendError
from tests.paths import ROOT
from tests.plugins.nightly import case_seeds
from tests.simulation.kraft.__main__ import run
from tests.simulation.kraft.bugs import BUGS

SEEDS = case_seeds(1000)
BLOCK = len(SEEDS) // 10


@pytest.mark.parametrize("block", range(10))
def test_histories(block: int) -> None:
    """Whatever fails, the invariants hold, and a quorum that is left alone serves again.

    One leader leads an epoch, in one life; a replica votes once in an epoch; logs match; what is
    committed is never lost or changed, and was on the disks of a majority when that was said.
    """
    elections = committed = 0
    for seed in SEEDS[block * BLOCK : (block + 1) * BLOCK]:
        world = run(seed)
        elections += world.auditor.elections
        committed += len(world.auditor.committed)
    assert elections > BLOCK
    assert committed > 20 * BLOCK


@pytest.mark.parametrize("bug", BUGS)
def test_the_auditor_notices(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each planted bug breaks its invariant in one of the first few hundred histories."""
    owner, name, planted, first, broken = BUGS[bug]
    monkeypatch.setattr(owner, name, planted)
    with pytest.raises((AssertionError, InvalidAppendError)) as failure:
        for seed in (first, *range(600)):
            run(seed)
    assert broken in str(failure.value)
    assert any(note.startswith("seed ") for note in failure.value.__notes__)


def test_by_hand() -> None:
    """The command runs the given seeds and prints its speed."""
    command = [sys.executable, "-m", "tests.simulation.kraft", "--seeds", "3", "--from", "7"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("3 histories in ")
