"""The observer where it reads on: the log must be the one that was read before."""

import pytest

from featurewatch.streams.kraft.observer.requests import FetchResponse
from featurewatch.streams.types import LeaderAndEpoch
from tests.streams.kraft.log_bytes import log
from tests.streams.kraft.observer.observer_script import script, spell_output


def test_the_batch_before_the_position_is_compared_after_a_start() -> None:
    """The first fetch is for the last published record; the leader has it as it was."""
    script("4@1", after="2-3@1").play(
        """
        a 3@1 e1 w0   | ok leader=1@1 hw=6 2-3@1 4-5@1 | commit 4-5, following
        a 6@1 e1 w500 | ok leader=1@1 hw=7 6@1         | commit 6-6, following
        """
    )


@pytest.mark.parametrize(
    ("records", "ends"), [("3@1 4-5@1", 3), ("0-7@1", 3), ("2-3@2", 3), ("", 3)]
)
def test_a_log_that_was_replaced_is_read_again(records: str, ends: int) -> None:
    """It has the offset and the epoch of the position, and another batch there, or none."""
    script("4@1", after="2-3@1").play(
        f"""
        a 3@1 e1 w0   | ok leader=1@2 hw=8            | behind
        a 3@1 e2 w0   | ok leader=1@2 hw=8 {records}  | reset 0-{ends}
        a 0@0 e2 w0   | ok leader=1@2 hw=8 0-2@1      | commit 0-2
        a 3@1 e2 w500 | ok leader=1@2 hw=8 3-7@2      | commit 3-7, following
        """
    )


def test_a_log_that_was_replaced_while_it_was_followed_is_read_again() -> None:
    """The controllers were down for a moment, and what was not committed is fetched again too."""
    script(bootstrap="a").play(
        """
        a 0@0 e0 w0   | FENCED_LEADER_EPOCH leader=1@1   |
        a 0@0 e1 w0   | ok leader=1@1 hw=2 0-1@1 2@1     | commit 0-1
        a 3@1 e1 w0   | gone                             |
        a 1@1 e1 w0   | ok leader=1@1 hw=2 0-1@1 2-3@1   |
        a 4@1 e1 w0   | gone                             |
        a 1@1 e1 w0   | ok leader=1@1 hw=3 0@1 1@1 2@1   | reset 0-1
        a 0@0 e1 w0   | ok leader=1@1 hw=3 0@1 1@1 2@1   | commit 0-2
        """
    )


def test_a_leader_that_has_committed_nothing_cannot_replace_the_log() -> None:
    """It may have been replaced itself without noticing: the others are tried too."""
    script("4@1", "ab", after="2-3@1").play(
        """
        a 3@1 e1 w0   | ok leader=1@1 hw=-1 3@1       | trouble has committed nothing yet
        b 3@1 e1 w0   | FENCED_LEADER_EPOCH leader=2@2 at 2=b |
        b 3@1 e2 w0   | ok leader=2@2 hw=5 2-3@1 4@2  | commit 4-4, following
        """
    )


def test_a_batch_that_only_a_snapshot_covers_cannot_be_compared() -> None:
    """Where the log begins at the position, it is read on; where it begins later, the snapshot."""
    script("4@1", "a", after="2-3@1").play(
        """
        a 3@1 e1 w0   | ok leader=1@1 hw=6 start=4 snap=4@1 |
        a 4@1 e1 w0   | ok leader=1@1 hw=6 start=4 4-5@1    | commit 4-5, following
        """
    )
    script("4@1", "a", after="2-3@1").play(
        """
        a 3@1 e1 w0     | ok leader=1@1 hw=9 start=9 snap=9@1 |
        a 4@1 e1 w0     | ok leader=1@1 hw=9 start=9 snap=9@1 |
        a snap 9@1+0 e1 | ok part=0+10/10 of 9@1              | lost 4-8, whole 9@1
        """
    )


def test_a_corrupt_batch_is_no_other_log() -> None:
    """Bytes that are damaged now prove nothing: the log is read on."""
    observer = script("4@1", "a", after="2-3@1").observer
    observer.next_action(0)
    damaged = bytearray(log("2-3@1"))
    damaged[-1] ^= 0xFF
    answer = FetchResponse(
        0, 17, LeaderAndEpoch(1, 1), high_watermark=5, records=bytes(damaged) + log("4@1")
    )
    (released,) = observer.on_response(answer, 0)
    assert spell_output(released) == "commit 4-4"
