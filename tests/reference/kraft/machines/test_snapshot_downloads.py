"""Snapshots between a leader and a follower, as Kafka's own voter has them (KIP-630)."""

from dataclasses import replace
from uuid import UUID

import pytest

from featurewatch.reference.kraft.machines.batches import data_batch
from featurewatch.reference.kraft.machines.log import Log
from featurewatch.reference.kraft.machines.protocol import Halt, InstallSnapshot, SnapshotTaken
from featurewatch.reference.kraft.machines.replicas import ReplicaKey
from featurewatch.reference.kraft.machines.requests import (
    Fetch,
    FetchAnswer,
    FetchSnapshot,
    FetchSnapshotAnswer,
    LeaderView,
)
from featurewatch.reference.kraft.machines.states import State
from featurewatch.streams.types import LOG_START, OffsetAndEpoch
from tests.reference.kraft.machines.driving import (
    CLUSTER,
    VOTERS,
    Driven,
    begin,
    endpoint,
    formatted,
    in_state,
)
from tests.simulation.kraft.world import snapshot_of

LEADER = LeaderView(1, 1, (endpoint(1),))
AT = OffsetAndEpoch(3, 1)
DATA = snapshot_of(AT)


def following(count: int) -> Driven:
    """A follower of epoch 1 whose log has this many records, none known to be committed."""
    log = Log(VOTERS)
    log.append([data_batch(offset, 1, 0, [b"a"]) for offset in range(count)])
    driven = Driven(log)
    driven.ask(begin(1))
    driven.tick()
    return driven


def offer(driven: Driven, at: OffsetAndEpoch) -> None:
    """The leader answers a Fetch with a snapshot to load first."""
    driven.answer(1, FetchAnswer(0, LEADER, snapshot=at))


def part(position: int, size: int, at: OffsetAndEpoch = AT) -> FetchSnapshotAnswer:
    """A part of the leader's snapshot."""
    data = DATA[position : position + size]
    return FetchSnapshotAnswer(0, LEADER, at, len(DATA), position, data)


def test_a_download_in_parts() -> None:
    """Each request is for what is missing; the next Fetch tells what is committed by it."""
    driven = following(2)
    offer(driven, AT)
    asked = driven.last_to(1).request
    assert isinstance(asked, FetchSnapshot)
    assert (asked.snapshot, asked.position) == (AT, 0)
    driven.answer(1, part(0, 100))
    asked = driven.last_to(1).request
    assert isinstance(asked, FetchSnapshot)
    assert asked.position == 100
    driven.answer(1, part(100, 1000))
    assert driven.of_kind(InstallSnapshot) == [InstallSnapshot(AT, DATA)]
    fetched = driven.last_to(1).request
    assert isinstance(fetched, Fetch)
    assert (fetched.offset, fetched.last_epoch, fetched.high_watermark) == (3, 1, 3)


@pytest.mark.parametrize("count", [3, 4])
def test_a_snapshot_within_the_log_is_not_loaded(count: int) -> None:
    """The leader may count on every record that was fetched, committed or not."""
    driven = following(count)
    offer(driven, AT)
    driven.answer(1, part(0, 1000))
    assert not driven.of_kind(InstallSnapshot)
    assert driven.voter.log.end == count


def test_a_snapshot_of_a_newer_epoch_replaces_what_is_not_committed() -> None:
    """It ends where the committed records do, and what follows them is of an old leader."""
    driven = following(4)
    driven.answer(1, FetchAnswer(0, LEADER, 3, 0))
    newer = OffsetAndEpoch(3, 2)
    data = snapshot_of(newer)
    driven.ask(begin(2))
    driven.tick()
    view = LeaderView(1, 2, (endpoint(1),))
    driven.answer(1, FetchAnswer(0, view, snapshot=newer))
    driven.answer(1, FetchSnapshotAnswer(0, view, newer, len(data), 0, data))
    assert driven.of_kind(InstallSnapshot) == [InstallSnapshot(newer, data)]
    assert (driven.voter.log.end, driven.voter.log.last_epoch) == (3, 2)


def test_a_snapshot_that_is_there_is_not_loaded_again() -> None:
    """The follower fetches on."""
    driven = following(4)
    driven.answer(1, FetchAnswer(0, LEADER, 3, 0))
    driven.receive(SnapshotTaken(AT, DATA))
    offer(driven, AT)
    assert isinstance(driven.last_to(1).request, Fetch)


@pytest.mark.parametrize(("error", "asks_again"), [(98, Fetch), (99, FetchSnapshot)])
def test_errors(error: int, asks_again: type) -> None:
    """A deleted snapshot is given up; after another error the same part is asked for."""
    driven = following(2)
    offer(driven, AT)
    driven.answer(1, part(0, 100))
    driven.answer(1, FetchSnapshotAnswer(error, LEADER))
    driven.tick(100)
    asked = driven.last_to(1).request
    assert isinstance(asked, asks_again)
    assert not isinstance(asked, FetchSnapshot) or asked.position == 100


@pytest.mark.parametrize(
    "other", [part(1, 100), replace(part(0, 100), snapshot=OffsetAndEpoch(4, 1))]
)
def test_another_part_ends_the_download(other: FetchSnapshotAnswer) -> None:
    """The position or the snapshot is another; Kafka ends the process."""
    driven = following(2)
    offer(driven, AT)
    driven.answer(1, other)
    driven.tick(100)
    assert isinstance(driven.sent[-1].request, Fetch)
    assert driven.voter.log.end == 2


def test_a_log_is_not_cut_off_below_a_snapshot() -> None:
    """Its records were committed, though nobody knows the high watermark after a restart."""
    driven = following(4)
    driven.voter.log.add_snapshot(AT, DATA, trims=False)
    driven.answer(1, FetchAnswer(0, LEADER, diverging=OffsetAndEpoch(2, 1)))
    (halt,) = driven.of_kind(Halt)
    assert isinstance(halt, Halt)
    assert "records up to 3 are committed here" in halt.reason
    assert driven.voter.log.end == 4


# -- what a leader answers -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "position", "error"),
    [
        (AT, 0, 0),
        (AT, len(DATA), 99),
        (AT, -1, 99),
        (OffsetAndEpoch(9, 1), 0, 98),
        (LOG_START, 0, 98),
    ],
)
def test_parts_that_are_asked_for(at: OffsetAndEpoch, position: int, error: int) -> None:
    """An error names no snapshot."""
    driven = in_state(State.LEADER)
    driven.voter.log.snapshots[AT] = DATA
    request = FetchSnapshot(CLUSTER, ReplicaKey(1), 1, at, position, 50)
    answer = driven.ask(request)
    assert isinstance(answer, FetchSnapshotAnswer)
    assert answer.error == error
    assert answer.snapshot == (LOG_START if error else AT)
    assert answer.data == (b"" if error else DATA[:50])


def test_an_epoch_before_all_snapshots() -> None:
    """Such a follower loads the newest, even where the log has what it lacks."""
    log = Log(VOTERS)
    log.append(
        [data_batch(0, 1, 0, [b"a"]), data_batch(1, 2, 0, [b"a"]), data_batch(2, 2, 0, [b"a"])]
    )
    at = OffsetAndEpoch(2, 2)
    log.add_snapshot(at, snapshot_of(at), trims=False)
    assert log.position(1, 1).snapshot == at
    assert log.position(1, 2).is_valid


def test_voters_of_a_snapshot_beside_the_log() -> None:
    """A process that starts finds them there where no record in the log has them."""
    log = formatted(1, 3)
    log.append([data_batch(offset, 1, 0, [b"a"]) for offset in range(4)])
    log.add_snapshot(AT, snapshot_of(AT, log.voters), trims=False)
    assert log.voters_offset == -1
    driven = Driven(log, me=ReplicaKey(3, UUID(int=3)))
    assert driven.voter.log.voters_offset == 2
