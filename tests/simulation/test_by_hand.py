"""Many histories by hand: ``python -m tests.simulation``."""

import subprocess
import sys

import pytest

from featurewatch.monitor.rows import rows_of_step
from tests.paths import ROOT
from tests.simulation import engine
from tests.simulation.__main__ import PARTS, failures


def test_by_hand() -> None:
    """The command plays the given seeds through each part and prints its speed."""
    command = [sys.executable, "-m", "tests.simulation", "--seeds", "7..10"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("3 seeds through source, znodes, worker: 0 failed, ")


def test_a_seed_that_fails_is_reported_and_the_others_continue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A worker that forgets the last row of each step fails in one part, seed by seed."""
    monkeypatch.setattr(engine, "rows_of_step", lambda *step: rows_of_step(*step)[:-1])
    found = list(failures(range(3), PARTS))
    assert {line.partition(":")[0] for line in found} >= {"seed 0, worker", "seed 2, worker"}
    assert not any("source" in line.partition(":")[0] for line in found)
