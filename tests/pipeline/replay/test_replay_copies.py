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
    read_splits,
    snapshot,
)


def planned(path: Path) -> ReplayPlan:
    """The plan for a path."""
    return prepare([path], "", path / "scratch")


def replay_of(path: Path, size: int = 0) -> tuple[list[LogEvent | DeadLetter], ClusterReplay]:
    """The events of the log's splits, and the assembled replay."""
    (cluster_splits,) = clusters = splits_of(planned(path).cluster_plans, size)
    rows, all_stats = read_splits(clusters)
    steps = [
        step if isinstance(step, SnapshotFile) else step.number for step in cluster_splits.steps
    ]
    return events(rows), assemble(cluster_splits.cluster, steps, all_stats)


def write_snapshot(node: Path, end: int, *, torn: bool = False) -> None:
    """Writes a snapshot beside a node's log; a torn one has no footer."""
    content = snapshot([level(20)], end, 1)
    path = node / "__cluster_metadata-0" / f"{end:020}-{1:010}.checkpoint"
    path.write_bytes(content[:-60] if torn else content)


def test_a_torn_snapshot_of_one_node_is_not_taken_where_another_has_it_whole(
    tmp_path: Path,
) -> None:
    """The complete copy is used, in any order of the nodes; a line names the unreadable one."""
    for torn in ("a", "b"):
        root = tmp_path / torn
        for node in ("a", "b"):
            Log(100).add(level(21)).write(root / node, 100)
            write_snapshot(root / node, 100, torn=node == torn)
        plan = planned(root)
        snapshot_file, _ = plan.cluster_plans[0].steps
        assert isinstance(snapshot_file, SnapshotFile)
        assert torn not in Path(snapshot_file.file_range.label).relative_to(root).parts
        is_reported = "cut off before its footer" in "".join(plan.notes)
        assert (plan.problems, is_reported) == ([], torn == "a")
        assert replay_of(root)[1].problems == []


def test_a_torn_snapshot_does_not_hide_the_one_after_it(tmp_path: Path) -> None:
    """The log continues from the first complete snapshot; the torn one is reported."""
    log = Log(100)
    for value in range(40):
        log.add(level(20 + value % 3))
    log.write(tmp_path, 100)
    write_snapshot(tmp_path, 110, torn=True)
    write_snapshot(tmp_path, 130)
    steps = planned(tmp_path).cluster_plans[0].steps
    floors = [step.floor for step in steps if isinstance(step, LogSlice)]
    assert [step.position.offset for step in steps if isinstance(step, SnapshotFile)] == [110, 130]
    assert floors == [130]
    _, cluster_replay = replay_of(tmp_path)
    assert (cluster_replay.first, cluster_replay.end) == (130, 140)
    (line,) = cluster_replay.problems
    assert "cut off before its footer" in line


def test_where_no_snapshot_is_whole_all_of_the_log_is_taken(tmp_path: Path) -> None:
    """It is ingested although its beginning is missing, which a gap records."""
    Log(100).add(level(20), level(21)).add(noop()).write(tmp_path, 100)
    write_snapshot(tmp_path, 102, torn=True)
    _, cluster_replay = replay_of(tmp_path)
    assert (cluster_replay.first, cluster_replay.end, cluster_replay.records) == (100, 103, 3)
    assert any("offsets 0 to 99 are missing" in line for line in cluster_replay.problems)


def test_a_snapshot_behind_a_change_of_copies_is_where_the_log_begins(tmp_path: Path) -> None:
    """Even if the log up to the snapshot comes from two nodes."""
    log = Log(100)
    for value in range(10):
        log.add(level(20 + value % 3))
    log.write(tmp_path / "old", 100)
    later = Log(104, epoch=1)
    later.batches = log.batches[4:]
    later.elect(2)
    later.write(tmp_path / "new", 104)
    write_snapshot(tmp_path / "new", 107)
    steps = planned(tmp_path).cluster_plans[0].steps
    assert [type(step) for step in steps] == [SnapshotFile, LogSlice]
    assert [step.floor for step in steps if isinstance(step, LogSlice)] == [107]


@pytest.mark.parametrize("size", [300, 700, 1 << 20])
def test_damage_in_one_copy_comes_from_another(tmp_path: Path, size: int) -> None:
    """Zeros, wrong lengths, wrong bytes: wherever they are before the last batch, and wherever the
    log is divided, the result is that of the intact copy, and a note says so."""
    log = random_log(4)
    content = log.content
    starts = [batch.at for batch in scan_batches(content).batches]
    corrupt_file = log.write(tmp_path / "a")
    log.write(tmp_path / "b")
    for number in range(0, len(starts) - 8, 7):
        begin, end = starts[number] + HEADER_BYTES + 3, starts[number + 5] + 20
        for bytes_ in (bytes(end - begin), b"\x5a" * 9, b"\x00"):
            corrupt_file.write_bytes(content[:begin] + bytes_ + content[begin + len(bytes_) :])
            log_events, cluster_replay = replay_of(tmp_path, size)
            assert log_events == plain(content)
            assert (cluster_replay.problems, cluster_replay.end) == ([], log.end)
            assert len(cluster_replay.notes) >= (bytes_ != content[begin : begin + len(bytes_)])
            assert all(
                f"are taken from {tmp_path / 'b'}" in line for line in cluster_replay.notes[:1]
            )


@pytest.mark.parametrize("cut", ["bytes", "length", "short"])
def test_damage_at_the_end_of_a_segment_comes_from_another_copy(tmp_path: Path, cut: str) -> None:
    """The next segment of the corrupt copy continues, and the lake has no trace of the
    corruption."""
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
    log_events, cluster_replay = replay_of(tmp_path)
    assert log_events == plain(log.content)
    assert (cluster_replay.problems, cluster_replay.end) == ([], log.end)
    assert "another file continues at offset" in cluster_replay.notes[0]


def test_a_transaction_that_begins_in_what_is_damaged_comes_out_whole(tmp_path: Path) -> None:
    """Repaired batches count for the following ones, including small ones that could be skipped."""
    log = Log().elect(1).add(level(19)).add(BEGIN, level(20)).add(noop()).add(noop()).add(END)
    log.add(noop())
    content = bytearray(log.content)
    content[len(b"".join(log.batches[:2])) + HEADER_BYTES + 2] ^= 1
    log.write(tmp_path / "a").write_bytes(content)
    log.write(tmp_path / "b")
    log_events, cluster_replay = replay_of(tmp_path)
    assert log_events == plain(log.content)
    assert cluster_replay.problems == []


def test_a_copy_that_went_another_way_mends_nothing(tmp_path: Path) -> None:
    """A node may have uncommitted records there: only a copy with the same batch after the
    corruption, with the same epoch, has the same log before it."""
    log = Log().elect(1).add(level(19)).add(level(20))
    other = Log().elect(1).add(level(19)).add(level(25)).add(level(26)).add(level(27))
    log.epoch = 3
    log.add(level(21)).add(level(22))
    content = bytearray(log.content)
    content[len(b"".join(log.batches[:2])) + HEADER_BYTES + 2] ^= 1
    log.write(tmp_path / "a").write_bytes(content)
    other.write(tmp_path / "b")
    log_events, cluster_replay = replay_of(tmp_path)
    assert [type(event) for event in log_events].count(DeadLetter) == 1
    levels = [
        record["data"]["featureLevel"]
        for event in log_events
        if isinstance(event, LogCommit)
        for record in event.records
        if record["type"] == "FEATURE_LEVEL_RECORD"
    ]
    assert levels == [19, 21, 22]
    assert (len(cluster_replay.problems), cluster_replay.notes) == (1, [])


def test_what_no_copy_has_whole_is_reported_once(tmp_path: Path) -> None:
    """If both copies are corrupt in the same place, it is one gap."""
    log = Log().elect(1)
    for value in range(12):
        log.add(level(20 + value % 3))
    content = bytearray(log.content)
    begin = len(b"".join(log.batches[:4]))
    content[begin + 8 : begin + 12] = b"\x7f\xff\xff\xff"
    for node in ("a", "b"):
        log.write(tmp_path / node).write_bytes(content)
    log_events, cluster_replay = replay_of(tmp_path)
    gaps = [event for event in log_events if isinstance(event, LogGap)]
    assert [(gap.from_offset, gap.to_offset) for gap in gaps] == [(4, 4)]
    assert (len(cluster_replay.problems), cluster_replay.notes) == (1, [])
