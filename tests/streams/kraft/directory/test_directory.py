"""A log directory followed read only: growth, rolls, deletions, snapshots, cuts, damage."""

import itertools
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.streams.kraft.directory.commit_rule import CommitRule
from featurewatch.streams.kraft.directory.files import cluster_id_of
from featurewatch.streams.kraft.directory.reader import LogDirectoryReader
from featurewatch.streams.kraft.observer.states import ObserverOutput
from featurewatch.streams.kraft.records.batch import scan_batches
from featurewatch.streams.types import LOG_START, LeaderAndEpoch, OffsetAndEpoch
from tests.streams.kraft.directory.log_directory import CLUSTER, LogDirectory, entry, leader_change
from tests.streams.kraft.observer.observer_script import place, spell_output


@pytest.fixture
def directory(tmp_path: Path) -> LogDirectory:
    """An empty metadata log directory."""
    return LogDirectory(tmp_path / "data")


async def drain(reader: LogDirectoryReader, reads: int = 8) -> list[str]:
    """The outputs of a few reads."""
    outputs: list[ObserverOutput] = []
    for _ in range(reads):
        outputs += await reader.read()
    return [spell_output(output) for output in outputs]


async def test_records_settle_before_they_are_given_out(directory: LogDirectory) -> None:
    """A record is given out once its epoch's log holds one that is later by the settling time."""
    directory.append(0, leader_change(0, 1, 1000), entry(1, 1, 1100, 3), entry(4, 1, 2050))
    reader = directory.reader()
    assert await drain(reader) == ["commit 0-0"]
    assert reader.progress.leader == LeaderAndEpoch(1, 1)
    directory.append(0, entry(5, 1, 2100))
    assert await drain(reader) == ["commit 1-3"]
    directory.append(0, entry(6, 1, 9000))
    assert await drain(reader) == ["commit 4-5"]
    assert reader.progress.caught_up
    assert reader.progress.next_position == OffsetAndEpoch(6, 1)
    assert reader.progress.high_watermark == 6
    await reader.close()


async def test_a_new_epoch_settles_by_its_own_times(directory: LogDirectory) -> None:
    """Records of an older epoch wait for a settled one of the new epoch; times do not mix."""
    directory.append(0, leader_change(0, 1, 1000), entry(1, 1, 1100))
    directory.append(0, leader_change(2, 2, 5000), entry(3, 2, 5500))
    reader = directory.reader()
    assert await drain(reader) == []
    directory.append(0, entry(4, 2, 6000))
    assert await drain(reader) == ["commit 0-2"]
    await reader.close()


async def test_a_single_voter_needs_no_settling(directory: LogDirectory) -> None:
    """Where one voter makes the quorum, what is written is committed."""
    directory.append(0, leader_change(0, 1, 1000, voters=1), entry(1, 1, 1000))
    reader = directory.reader()
    assert await drain(reader) == ["commit 0-1"]
    await reader.close()


async def test_many_voters_settle_for_twice_as_long(directory: LogDirectory) -> None:
    """With five voters the fetches of a majority may lie in two spans: twice the time."""
    directory.append(0, leader_change(0, 1, 1000, voters=5), entry(1, 1, 2500))
    reader = directory.reader()
    assert await drain(reader) == []
    directory.append(0, entry(2, 1, 3000))
    assert await drain(reader) == ["commit 0-0"]
    await reader.close()


async def test_what_a_snapshot_covers_is_committed(directory: LogDirectory) -> None:
    """A snapshot holds committed records, so its end needs no settling; the bootstrap one not."""
    directory.append(0, leader_change(0, 1, 1000), entry(1, 1, 1100), entry(2, 1, 1200))
    directory.snapshot(2, 1)
    (directory.log / "bootstrap.checkpoint").write_bytes(b"")
    reader = directory.reader()
    assert await drain(reader) == ["commit 0-1"]
    await reader.close()


async def test_segments_roll_and_go(directory: LogDirectory) -> None:
    """The next segment is taken up at the end of the last one, deleted or not."""
    directory.append(0, leader_change(0, 1, 1000), entry(1, 1, 1000))
    reader = directory.reader()
    assert await drain(reader) == []
    directory.append(2, entry(2, 1, 3000), entry(3, 1, 3000))
    os.rename(directory.log / f"{0:020}.log", directory.log / f"{0:020}.log.deleted")
    assert await drain(reader) == ["commit 0-1"]
    directory.append(4, entry(4, 1, 5000))
    assert await drain(reader) == ["commit 2-3"]
    await reader.close()


async def test_a_deleted_place_is_taken_from_the_snapshot(directory: LogDirectory) -> None:
    """The log begins after our place: the snapshot's bytes, the lost stretch, and on."""
    directory.append(20, leader_change(20, 3, 1000, voters=1), entry(21, 3, 1000))
    directory.snapshot(10, 2)
    directory.snapshot(20, 2, bytes(3 << 19))
    reader = directory.reader(place("5@1"))
    assert await drain(reader) == ["bytes 20@2+0", "lost 5-19", "whole 20@2", "commit 20-21"]
    await reader.close()


async def test_from_nothing_a_snapshot_is_no_loss(directory: LogDirectory) -> None:
    """A reader that begins with a snapshot has lost nothing."""
    directory.append(20, leader_change(20, 3, 1000, voters=1))
    directory.snapshot(20, 2)
    reader = directory.reader()
    assert await drain(reader) == ["whole 20@2", "commit 20-20"]
    await reader.close()


async def test_resuming_gives_each_record_once(directory: LogDirectory) -> None:
    """A reader that begins at a place gives what follows it, also within a segment."""
    log = [leader_change(0, 1, 1000, voters=1), *(entry(n, 1, 1000) for n in range(1, 9))]
    directory.append(0, *log[:4])
    directory.append(4, *log[4:])
    for offset in range(1, 9):
        reader = directory.reader(OffsetAndEpoch(offset, 1))
        expected = [f"commit {offset}-3", "commit 4-8"] if offset < 4 else [f"commit {offset}-8"]
        assert await drain(reader) == expected
        assert reader.progress.next_position == OffsetAndEpoch(9, 1)
        await reader.close()


async def test_a_cut_above_what_was_given_out_is_healed(directory: LogDirectory) -> None:
    """A tail that is cut off and rewritten by another leader is read again, nothing is said."""
    committed = [leader_change(0, 1, 1000), entry(1, 1, 3000)]
    directory.append(0, *committed, entry(2, 1, 3100), entry(3, 1, 3200))
    reader = directory.reader()
    assert await drain(reader) == ["commit 0-0"]
    directory.write(0, *committed, leader_change(2, 2, 4000), entry(3, 2, 4500), entry(4, 2, 9000))
    assert await drain(reader) == ["commit 1-3"]
    await reader.close()


async def test_a_log_that_was_replaced_while_nobody_read_it_is_a_reset(
    directory: LogDirectory,
) -> None:
    """It has the offset and the epoch of the position: the checksum of the batch is another one."""
    (before,) = scan_batches(entry(1, 1, 1100, 2)).batches
    directory.append(0, leader_change(0, 1, 5000), entry(1, 1, 5100, 2), entry(3, 1, 9000))
    reader = directory.reader(OffsetAndEpoch(3, 1), before.checksum)
    assert await drain(reader) == ["reset 1-2", "commit 0-2"]
    await reader.close()
    (unchanged,) = scan_batches(entry(1, 1, 5100, 2)).batches
    reader = directory.reader(OffsetAndEpoch(3, 1), unchanged.checksum)
    directory.append(0, entry(4, 1, 20_000))
    assert await drain(reader) == ["commit 3-3"]
    await reader.close()


async def test_a_log_that_was_replaced_while_it_was_read_is_a_reset(
    directory: LogDirectory,
) -> None:
    """Another directory takes its place, with the offsets and the epoch that were read."""
    directory.append(0, leader_change(0, 1, 1000), entry(1, 1, 1100, 2), entry(3, 1, 9000))
    reader = directory.reader()
    assert await drain(reader) == ["commit 0-2"]
    (directory.log / f"{0:020}.log").unlink()
    directory.append(0, leader_change(0, 1, 21_000), entry(1, 1, 21_100, 2), entry(3, 1, 29_000))
    assert await drain(reader) == ["reset 1-2", "commit 0-2"]
    await reader.close()


async def test_a_cut_below_what_was_given_out_is_a_reset(directory: LogDirectory) -> None:
    """A log that lost what was given out went backwards: said so, and read from the start."""
    log = [leader_change(0, 1, 1000), entry(1, 1, 1000), entry(2, 1, 1000), entry(3, 1, 9000)]
    directory.append(0, *log)
    reader = directory.reader()
    assert await drain(reader) == ["commit 0-2"]
    directory.write(0, *log[:2], entry(2, 2, 9000), entry(3, 2, 19000))
    assert await drain(reader) == ["reset 2-2", "commit 0-2"]
    directory.write(0, *log[:2])
    assert await drain(reader) == ["reset 2-2"]
    await reader.close()


async def test_a_segment_that_was_deleted_by_a_cut_is_left(directory: LogDirectory) -> None:
    """A deleted segment stays open with us: its name tells that it is no part of the log."""
    directory.append(0, leader_change(0, 1, 1000), entry(1, 1, 5000))
    directory.append(2, entry(2, 1, 5000), entry(3, 1, 5000))
    reader = directory.reader()
    assert await drain(reader) == ["commit 0-0"]
    os.rename(directory.log / f"{2:020}.log", directory.log / f"{2:020}.log.deleted")
    directory.append(0, leader_change(2, 2, 6000), entry(3, 2, 8000))
    assert await drain(reader) == ["commit 1-2"]
    await reader.close()


async def test_a_half_written_batch_is_waited_for(directory: LogDirectory) -> None:
    """A batch that is not whole yet, or zeros set aside for later, are no trouble."""
    later = entry(1, 1, 9000)
    directory.append(0, leader_change(0, 1, 1000), later[:30])
    reader = directory.reader()
    assert await drain(reader) == []
    assert reader.progress.stall_reason is None
    directory.append(0, later[30:], bytes(5000))
    assert await drain(reader) == ["commit 0-0"]
    assert reader.progress.stall_reason is None
    await reader.close()


async def test_a_damaged_batch_is_passed_on_with_its_error(directory: LogDirectory) -> None:
    """A bad checksum that stays is passed on with its fault, for the dead letters."""
    damaged = bytearray(entry(1, 1, 1000, 3))
    damaged[-1] ^= 0xFF
    directory.append(0, leader_change(0, 1, 1000, voters=1), bytes(damaged), entry(4, 1, 1000))
    reader = directory.reader()
    assert await drain(reader) == ["commit 0-0", "commit 1-4"]
    assert reader.progress.stall_reason is None
    await reader.close()


async def test_garbage_stalls_the_reader_until_it_is_removed(directory: LogDirectory) -> None:
    """Bytes that are no batch stop the reader with one line, until they are removed."""
    directory.append(0, leader_change(0, 1, 1000, voters=1), b"\xff" * 100)
    reader = directory.reader()
    assert await drain(reader, 3) == ["commit 0-0"]
    assert reader.progress.stall_reason is not None
    assert "cannot be read" in reader.progress.stall_reason.message
    directory.write(0, leader_change(0, 1, 1000, voters=1), entry(1, 1, 1000))
    assert await drain(reader, 4) == ["commit 1-1"]
    assert reader.progress.stall_reason is None
    await reader.close()


async def test_a_lasting_stall_keeps_its_start(directory: LogDirectory) -> None:
    """Bytes that cannot be read at each new try are one trouble, since the first of them."""
    directory.append(0, b"\xff" * 100)
    reader = directory.reader()
    reasons = []
    for _ in range(8):
        await reader.read()
        reasons.append(reader.progress.stall_reason)
    stalled = list(itertools.dropwhile(lambda reason: reason is None, reasons))
    assert len(stalled) > 4
    assert all(reason is not None for reason in stalled)
    assert len({reason.since_ms for reason in stalled if reason is not None}) == 1
    await reader.close()


async def test_another_cluster_is_refused(directory: LogDirectory) -> None:
    """meta.properties names another cluster: one line with both ids, and nothing is read."""
    directory.append(0, leader_change(0, 1, 1000, voters=1))
    reader = LogDirectoryReader(directory.log, "another", LOG_START)
    assert await drain(reader, 1) == []
    assert reader.progress.stall_reason is not None
    assert reader.progress.stall_reason.permanent
    assert f"belongs to cluster {CLUSTER}, not another" in reader.progress.stall_reason.message
    await reader.close()


def test_the_cluster_id_is_found_from_any_path_to_the_log(
    directory: LogDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be relative, from within the log's directory too, or a link."""
    link = directory.root.parent / "link"
    link.symlink_to(directory.log)
    monkeypatch.chdir(directory.log)
    for path in (directory.root, directory.log, link, Path("."), Path("..")):
        assert cluster_id_of(path) == CLUSTER


def test_an_escaped_cluster_id_is_unescaped(directory: LogDirectory) -> None:
    """Java writes ``=`` behind a backslash; other bytes are Latin-1 and harm nothing."""
    meta = directory.root / "meta.properties"
    meta.write_bytes(b"#\xe9\xff\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\\=\\=\n")
    assert cluster_id_of(directory.log) == "MkU3OEVBNTcwNTJENDM2Qg=="
    meta.unlink()
    assert cluster_id_of(directory.log) is None


async def test_meta_properties_that_cannot_be_read_are_no_missing_ones(
    directory: LogDirectory,
) -> None:
    """Whose log it is is not known, so nothing is read; the line names the file."""
    directory.append(0, leader_change(0, 1, 1000, voters=1))
    meta = directory.root / "meta.properties"
    meta.unlink()
    meta.mkdir()
    with pytest.raises(IsADirectoryError):
        cluster_id_of(directory.log)
    reader = directory.reader()
    assert await drain(reader, 1) == []
    assert reader.progress.stall_reason is not None
    assert f"{meta}: Is a directory" in reader.progress.stall_reason.message
    await reader.close()


@pytest.mark.parametrize("what", ["nothing", "no log", "only the end"])
async def test_a_directory_without_a_log_is_a_stall_reason(
    directory: LogDirectory, what: str
) -> None:
    """A directory that is not there, holds no log, or only its end: one line says what to do."""
    if what == "nothing":
        shutil.rmtree(directory.root)
    elif what == "only the end":
        directory.append(7, entry(7, 1, 1000))
    reader = directory.reader()
    assert await drain(reader, 1) == []
    assert reader.progress.stall_reason is not None
    assert reader.progress.stall_reason.permanent
    hints = {"nothing": "is the log mounted", "no log": "give", "only the end": "mount the whole"}
    assert hints[what] in reader.progress.stall_reason.message
    await reader.close()


@given(st.lists(st.integers(0, 1500), min_size=1, max_size=20))
def test_nothing_is_released_before_its_time(steps: Sequence[int]) -> None:
    """A record is committed only with one of its epoch that is later by the settling time."""
    now, log = 0, b""
    times = []
    for offset, step in enumerate(steps):
        now += step
        times.append(now)
        log += entry(offset, 1 + offset // 7, now)
    rule = CommitRule(settle_ms=1000)
    batches = scan_batches(log).batches
    for batch in batches:
        rule.observe(batch)
    watermark = rule.high_watermark(batches, -1)
    if watermark > 0:
        epoch = batches[watermark - 1].leader_epoch
        same = [ms for ms, batch in zip(times, batches, strict=True) if batch.leader_epoch == epoch]
        assert max(same) - times[watermark - 1] >= 1000
