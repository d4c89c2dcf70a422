"""Several copies of a log and its snapshots: what is damaged in one comes from another."""

from pathlib import Path

import pytest

from featurewatch.pipeline.replay.assembly import ClusterReplay, assemble
from featurewatch.pipeline.replay.plan import LogSlice, ReplayPlan, SnapshotFile, prepare
from featurewatch.pipeline.replay.splits import splits_of
from featurewatch.streams.events import DeadLetter, LogCommit, LogEvent, LogGap
from featurewatch.streams.kraft.records.batch import HEADER_BYTES, scan_batches
from tests.pipeline.replay.logs import (
    BEGIN,
    END,
    Log,
    events,
    level,
    noop,
    plain,
    random_log,
    read_units,
    snapshot,
)


def planned(path: Path) -> ReplayPlan:
    """What would be taken of a path."""
    return prepare([path], "", path / "scratch")


def taken(path: Path, size: int = 0) -> tuple[list[LogEvent | DeadLetter], ClusterReplay]:
    """The events of the log's units, and what is said between them."""
    (track,) = tracks = splits_of(planned(path).courses, size)
    rows, tallies = read_units(tracks)
    steps = [step if isinstance(step, SnapshotFile) else step.number for step in track.steps]
    return events(rows), assemble(track.cluster, steps, tallies)


def write_snapshot(node: Path, end: int, *, torn: bool = False) -> None:
    """A snapshot beside the log of a node; a torn one has no footer."""
    content = snapshot([level(20)], end, 1)
    path = node / "__cluster_metadata-0" / f"{end:020}-{1:010}.checkpoint"
    path.write_bytes(content[:-60] if torn else content)


def test_a_torn_snapshot_of_one_node_is_not_taken_where_another_has_it_whole(
    tmp_path: Path,
) -> None:
    """Whichever node's comes first; a line says which one could not be read."""
    for torn in ("a", "b"):
        root = tmp_path / torn
        for node in ("a", "b"):
            Log(100).add(level(21)).write(root / node, 100)
            write_snapshot(root / node, 100, torn=node == torn)
        plan = planned(root)
        known, _ = plan.courses[0].steps
        assert isinstance(known, SnapshotFile)
        assert torn not in Path(known.stretch.place).relative_to(root).parts
        said = "cut off before its footer" in "".join(plan.notes)
        assert (plan.problems, said) == ([], torn == "a")
        assert taken(root)[1].problems == []


def test_a_torn_snapshot_does_not_hide_the_one_after_it(tmp_path: Path) -> None:
    """The log goes on from the first snapshot that is whole; the torn one is told."""
    log = Log(100)
    for value in range(40):
        log.add(level(20 + value % 3))
    log.write(tmp_path, 100)
    write_snapshot(tmp_path, 110, torn=True)
    write_snapshot(tmp_path, 130)
    steps = planned(tmp_path).courses[0].steps
    runs = [step.floor for step in steps if isinstance(step, LogSlice)]
    assert [step.place.offset for step in steps if isinstance(step, SnapshotFile)] == [110, 130]
    assert runs == [130]
    _, replay = taken(tmp_path)
    assert (replay.first, replay.end) == (130, 140)
    (line,) = replay.problems
    assert "cut off before its footer" in line


def test_where_no_snapshot_is_whole_all_of_the_log_is_taken(tmp_path: Path) -> None:
    """What it says has no ground, which a gap says; but it is not left out."""
    Log(100).add(level(20), level(21)).add(noop()).write(tmp_path, 100)
    write_snapshot(tmp_path, 102, torn=True)
    _, replay = taken(tmp_path)
    assert (replay.first, replay.end, replay.records) == (100, 103, 3)
    assert any("offsets 0 to 99 are missing" in line for line in replay.problems)


def test_a_snapshot_behind_a_change_of_copies_is_where_the_log_begins(tmp_path: Path) -> None:
    """Also where the log up to it comes from two nodes."""
    log = Log(100)
    for value in range(10):
        log.add(level(20 + value % 3))
    log.write(tmp_path / "old", 100)
    later = Log(104, epoch=1)
    later.batches = log.batches[4:]
    later.elect(2)
    later.write(tmp_path / "new", 104)
    write_snapshot(tmp_path / "new", 107)
    steps = planned(tmp_path).courses[0].steps
    assert [type(step) for step in steps] == [SnapshotFile, LogSlice]
    assert [step.floor for step in steps if isinstance(step, LogSlice)] == [107]


@pytest.mark.parametrize("size", [300, 700, 1 << 20])
def test_damage_in_one_copy_comes_from_another(tmp_path: Path, size: int) -> None:
    """Zeros, wrong lengths, wrong bytes: wherever they are before the last batch, and wherever the
    log is cut, the log is that of the whole copy, and a note says so."""
    log = random_log(4)
    content = log.content
    starts = [batch.at for batch in scan_batches(content).batches]
    bad = log.write(tmp_path / "a")
    log.write(tmp_path / "b")
    for number in range(0, len(starts) - 8, 7):
        begin, end = starts[number] + HEADER_BYTES + 3, starts[number + 5] + 20
        for wrong in (bytes(end - begin), b"\x5a" * 9, b"\x00"):
            bad.write_bytes(content[:begin] + wrong + content[begin + len(wrong) :])
            found, replay = taken(tmp_path, size)
            assert found == plain(content)
            assert (replay.problems, replay.end) == ([], log.end)
            assert len(replay.notes) >= (wrong != content[begin : begin + len(wrong)])
            assert all(f"are taken from {tmp_path / 'b'}" in line for line in replay.notes[:1])


@pytest.mark.parametrize("cut", ["bytes", "length", "short"])
def test_damage_at_the_end_of_a_segment_comes_from_another_copy(tmp_path: Path, cut: str) -> None:
    """The next segment of the damaged copy goes on, and nothing of the damage is in the lake."""
    log = random_log(6)
    first, second = Log(), Log()
    first.batches, second.batches = log.batches[:30], log.batches[30:]
    base = scan_batches(first.content).batches[-1].last_offset + 1
    begin = len(b"".join(log.batches[:29]))
    content = bytearray(first.content)
    if cut == "bytes":
        content[begin + HEADER_BYTES + 2] ^= 1
    elif cut == "length":
        content[begin + 8 : begin + 12] = b"\x7f\xff\xff\xff"
    else:
        del content[begin + 20 :]
    first.write(tmp_path / "a").write_bytes(content)
    second.write(tmp_path / "a", base)
    first.write(tmp_path / "b")
    second.write(tmp_path / "b", base)
    found, replay = taken(tmp_path)
    assert found == plain(log.content)
    assert (replay.problems, replay.end) == ([], log.end)
    assert "another file goes on at offset" in replay.notes[0]


def test_a_transaction_that_begins_in_what_is_damaged_comes_out_whole(tmp_path: Path) -> None:
    """What is mended counts for what stands after it, small batches of no interest among that."""
    log = Log().elect(1).add(level(19)).add(BEGIN, level(20)).add(noop()).add(noop()).add(END)
    log.add(noop())
    content = bytearray(log.content)
    content[len(b"".join(log.batches[:2])) + HEADER_BYTES + 2] ^= 1
    log.write(tmp_path / "a").write_bytes(content)
    log.write(tmp_path / "b")
    found, replay = taken(tmp_path)
    assert found == plain(log.content)
    assert replay.problems == []


def test_a_copy_that_went_another_way_mends_nothing(tmp_path: Path) -> None:
    """A node may have had other records there, which were never committed: only a copy that has
    the batch after the damage too, of the same epoch, has the same log before it."""
    log = Log().elect(1).add(level(19)).add(level(20))
    other = Log().elect(1).add(level(19)).add(level(25)).add(level(26)).add(level(27))
    log.epoch = 3
    log.add(level(21)).add(level(22))
    content = bytearray(log.content)
    content[len(b"".join(log.batches[:2])) + HEADER_BYTES + 2] ^= 1
    log.write(tmp_path / "a").write_bytes(content)
    other.write(tmp_path / "b")
    found, replay = taken(tmp_path)
    assert [type(event) for event in found].count(DeadLetter) == 1
    levels = [
        record["data"]["featureLevel"]
        for event in found
        if isinstance(event, LogCommit)
        for record in event.records
        if record["type"] == "FEATURE_LEVEL_RECORD"
    ]
    assert levels == [19, 21, 22]
    assert (len(replay.problems), replay.notes) == (1, [])


def test_what_no_copy_has_whole_is_told_once(tmp_path: Path) -> None:
    """Both copies are damaged in the same place: a gap, as of one copy alone."""
    log = Log().elect(1)
    for value in range(12):
        log.add(level(20 + value % 3))
    content = bytearray(log.content)
    begin = len(b"".join(log.batches[:4]))
    content[begin + 8 : begin + 12] = b"\x7f\xff\xff\xff"
    for node in ("a", "b"):
        log.write(tmp_path / node).write_bytes(content)
    found, replay = taken(tmp_path)
    gaps = [event for event in found if isinstance(event, LogGap)]
    assert [(gap.from_offset, gap.to_offset) for gap in gaps] == [(4, 4)]
    assert (len(replay.problems), replay.notes) == (1, [])
