"""The state of a preferred election, by what a cluster shows."""

import pytest

from featurewatch.admin.elections.status import ElectionStatus, election_status

pytestmark = pytest.mark.form("document")

FAILED, RUNS, DONE = ElectionStatus


@pytest.mark.parametrize(
    ("leader", "replicas", "isr", "running", "expected"),
    [
        (1, (1, 2), (1, 2), {1, 2}, DONE),
        (2, (1, 2), (1, 2), {1, 2}, RUNS),
        (2, (1, 2), (2,), {1, 2}, FAILED),
        (2, (1, 2), (1, 2), {2}, FAILED),
        (None, (1, 2), (1,), {1, 2}, RUNS),
        (None, (1, 2), (1,), {2}, FAILED),
        (None, (1, 2), (2,), {1, 2}, FAILED),
        (None, (), (), {1, 2}, FAILED),
    ],
)
def test_an_election_is_done_only_when_the_head_leads(
    leader: int | None,
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    running: set[int],
    expected: ElectionStatus,
) -> None:
    """It is in progress while the head is in sync and runs, also without a leader; a head that is
    dead or not in sync cannot be elected, and the election has failed (A-31, A-39, A-40)."""
    assert election_status(leader, replicas, isr, running) is expected
