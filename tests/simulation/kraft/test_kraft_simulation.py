"""Quorums over a faulty network, disk and clock, and proof that the auditor notices bugs."""

import subprocess
import sys
from random import Random

import pytest

from featurewatch.reference.kraft.machines.batches import Batch, data_batch
from featurewatch.reference.kraft.machines.log import InvalidAppendError
from featurewatch.reference.kraft.machines.replicas import ReplicaKey
from tests.paths import ROOT
from tests.plugins.nightly import case_seeds
from tests.simulation.kraft.__main__ import run
from tests.simulation.kraft.auditor import Auditor
from tests.simulation.kraft.bugs import BUGS
from tests.simulation.kraft.disk import Disk
from tests.simulation.kraft.process import Process, voters_of

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


FEW = 20
"""Histories that may pass before a bug is noticed; more of them take seconds."""


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
    assert seed == first or seed < FEW, f"name the seed {seed} in BUGS, which is tried first"


def with_log(*batches: Batch) -> Process:
    """A voter of three with these batches on its disk."""
    disk = Disk()
    disk.batches = [*batches]
    return Process(ReplicaKey(1), disk, voters_of((1, 2, 3)), 1, Random(0), 0, 1)


def test_the_auditor_knows_what_was_committed() -> None:
    """Another content, a gap and an offset beyond the log are noticed, which no bug above shows."""
    auditor = Auditor()
    first, then, last = (data_batch(at, 1, 0, [b"a"]) for at in (0, 1, 2))
    one = with_log(first, then, last)
    disks = {1: one.disk, 2: one.disk}
    auditor.on_committed(one, 1, disks)
    auditor.on_committed(one, 1, disks)
    with pytest.raises(AssertionError, match="0 has changed"):
        auditor.on_committed(with_log(data_batch(0, 2, 0, [b"b"])), 1, disks)
    with pytest.raises(AssertionError, match="told of 4 beyond its log"):
        auditor.on_committed(one, 4, disks)
    gap = with_log(first, then, last)
    del gap.voter.log.batches[1]
    with pytest.raises(AssertionError, match="leaves a gap"):
        auditor.on_committed(gap, 3, disks)
    with pytest.raises(AssertionError, match=r"only the disks \{1\} have it"):
        auditor.on_committed(one, 2, {1: one.disk, 2: Disk(), 3: Disk()})


def test_by_hand() -> None:
    """The command runs the given seeds and prints its speed."""
    command = [sys.executable, "-m", "tests.simulation.kraft", "--seeds", "3", "--from", "7"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("3 histories in ")
