"""The log: positions of followers, cutting off, snapshots; and the batches in it."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.reference.kraft.machines.batches import (
    KRAFT_VOTERS,
    LEADER_CHANGE,
    InvalidBatchesError,
    control_batch,
    control_records,
    data_batch,
    read_batches,
)
from featurewatch.reference.kraft.machines.log import InvalidAppendError, Log
from featurewatch.reference.kraft.machines.replicas import (
    Endpoint,
    ReplicaKey,
    VoterNode,
    VoterSet,
)
from featurewatch.streams.types import OffsetAndEpoch
from tests.simulation.kraft.world import snapshot_of
from tests.streams.kraft import encoding, log_bytes

NOBODY = VoterSet(())


def log_of(text: str) -> Log:
    """A log of batches such as ``0-3@1 4@2``."""
    log = Log(NOBODY)
    log.append(read_batches(log_bytes.log(text)))
    return log


@pytest.mark.parametrize(
    ("epoch", "found"),
    [(0, (0, 0)), (1, (4, 1)), (2, (4, 1)), (3, (6, 3)), (9, (6, 3))],
)
def test_ends_of_epochs(epoch: int, found: tuple[int, int]) -> None:
    """The newest epoch up to the one asked for, and where it ends (``endOffsetForEpoch``)."""
    assert log_of("0-3@1 4@3 5@3").end_of_epoch(epoch) == found


@pytest.mark.parametrize(
    ("offset", "epoch", "diverging"),
    [
        (0, 0, None),
        (4, 1, None),
        (6, 3, None),
        (2, 1, None),
        (5, 1, (4, 1)),
        (7, 3, (6, 3)),
        (4, 2, (4, 1)),
        (9, 9, (6, 3)),
    ],
)
def test_positions(offset: int, epoch: int, diverging: tuple[int, int] | None) -> None:
    """A follower may read on where its last epoch reaches as far here."""
    position = log_of("0-3@1 4@3 5@3").position(offset, epoch)
    assert position.diverging == diverging
    assert position.is_valid is (diverging is None)


@pytest.mark.parametrize(
    ("offset", "epoch", "loads"),
    [(0, 0, True), (3, 1, True), (4, 1, False), (4, 0, True), (4, 2, True), (6, 3, False)],
)
def test_positions_beside_a_snapshot(offset: int, epoch: int, loads: bool) -> None:
    """A follower that is before the start of the log, or left it there, loads the snapshot."""
    log = log_of("0-3@1 4@3 5@3")
    at = OffsetAndEpoch(4, 1)
    log.add_snapshot(at, snapshot_of(at), trims=True)
    assert (log.start, log.end, log.last_epoch) == (at, 6, 3)
    position = log.position(offset, epoch)
    assert position.snapshot == (at if loads else None)
    assert position.is_valid is not loads


def test_the_oldest_snapshot_says_who_may_read_on() -> None:
    """As long as the log before it is there; a newer one in between is given up."""
    log = log_of("0-3@1 4@3 5-6@5")
    taken = [OffsetAndEpoch(4, 1), OffsetAndEpoch(5, 3), OffsetAndEpoch(7, 5)]
    for at in taken:
        log.add_snapshot(at, snapshot_of(at), trims=False)
    assert [*log.snapshots] == [taken[0], taken[2]]
    assert log.position(4, 1).is_valid
    assert log.position(4, 0).snapshot == taken[2]
    log.add_snapshot(taken[2], snapshot_of(taken[2]), trims=True)
    assert [*log.snapshots] == [taken[2]]
    assert log.position(5, 3).snapshot == taken[2]


def test_cutting_off() -> None:
    """At a batch's border, or before the batch that holds the offset."""
    for offset, end, epoch in ((9, 6, 3), (5, 5, 3), (4, 4, 1), (2, 0, 0), (0, 0, 0)):
        log = log_of("0-3@1 4@3 5@3")
        assert log.truncate(offset) == end
        assert (log.end, log.last_epoch) == (end, epoch)
        assert log.end_of_epoch(9) == (end, epoch)


def test_reading() -> None:
    """From the batch that holds an offset, up to a size, and at least one batch."""
    log = log_of("0-3@1 4@3 5@3")
    assert log.read(2, 1 << 20) == log_bytes.log("0-3@1 4@3 5@3")
    assert log.read(4, 1) == log_bytes.log("4@3")
    assert log.read(6, 1) == b""
    assert [log.epoch_at(offset) for offset in (0, 1, 4, 5, 6)] == [0, 1, 1, 3, 3]


@pytest.mark.parametrize("text", ["0-3@2 5@2", "0-3@2 3@2", "0-3@2 4@1"])
def test_batches_that_do_not_follow(text: str) -> None:
    """Gaps, overlaps and epochs that go back are refused."""
    with pytest.raises(InvalidAppendError):
        log_of(text)


def test_voters_of_the_log() -> None:
    """The newest count, committed or not; cutting off takes them back (KIP-853)."""
    sets = [
        VoterSet.of(
            VoterNode(ReplicaKey(one, UUID(int=one)), (Endpoint("C", "h", one),))
            for one in range(1, last)
        )
        for last in (2, 3)
    ]
    log = Log(NOBODY)
    for at, voters in enumerate(sets):
        log.append([control_batch(at, 1, 0, [(KRAFT_VOTERS, voters.to_record())])])
    assert (log.voters, log.voters_offset, log.earlier_voters) == (sets[1], 1, sets[0])
    log.high_watermark = 2
    assert log.earlier_voters is None
    log.high_watermark = 1
    log.truncate(1)
    assert (log.voters, log.voters_offset, log.earlier_voters) == (sets[0], 0, None)


# -- batches ---------------------------------------------------------------------------------------


@given(
    st.integers(0, 1 << 40),
    st.integers(0, 1 << 30),
    st.integers(0, 1 << 40),
    st.lists(st.binary(max_size=300), min_size=1, max_size=20),
)
def test_data_batches(base: int, epoch: int, append_ms: int, values: list[bytes]) -> None:
    """They have the bytes that the tests' own encoder writes, which Kafka's tools read."""
    written = data_batch(base, epoch, append_ms, values)
    expected = encoding.data_batch(
        values, base_offset=base, leader_epoch=epoch, append_ms=append_ms
    )
    assert written.data == expected
    assert read_batches(written.data) == [written]


def test_control_batches() -> None:
    """They have the bytes of the tests' own encoder, and are read as they were written."""
    change = {
        "version": 0,
        "leaderId": 3,
        "voters": [{"voterId": 1}, {"voterId": 3}],
        "grantingVoters": [{"voterId": 3}],
    }
    written = control_batch(7, 2, 5, [(LEADER_CHANGE, change)])
    framed = [encoding.control_framed(LEADER_CHANGE, change, 0)]
    assert written.data == encoding.batch_of(framed, 7, 2, 5, control=True)
    assert [record["data"] for record in control_records([written])] == [change]


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_damaged_batches(cut: int) -> None:
    """A batch that is cut off or changed is refused with one phrase."""
    data = data_batch(0, 1, 0, [b"value"]).data
    with pytest.raises(InvalidBatchesError, match="cut off"):
        read_batches(data[:-cut])
    with pytest.raises(InvalidBatchesError, match="checksum"):
        read_batches(data[:-1] + b"x")
