"""Reading a log in splits gives the result of a plain reading, wherever it is divided or
corrupt."""

from pathlib import Path
from random import Random

import pytest

from featurewatch.pipeline.errors import ReplayUsageError
from featurewatch.pipeline.replay.discovery import discover
from featurewatch.pipeline.replay.plan import ClusterPlan, LogSlice, SnapshotFile, plan
from featurewatch.pipeline.replay.split_reader import BronzeRow, SplitStats
from featurewatch.pipeline.replay.splits import ClusterSplits, splits_of
from featurewatch.streams.events import DeadLetter, LogCommit, LogGap
from featurewatch.streams.kraft.records.batch import HEADER_BYTES, scan_batches
from tests.pipeline.replay.logs import (
    BEGIN,
    CLUSTER,
    END,
    Log,
    events,
    level,
    noop,
    plain,
    random_log,
    read_splits,
    registration,
    snapshot,
    topic,
)

SMALL = 700
"""Bytes in a split: some five batches."""


def planned(*paths: Path, cluster: str = "") -> tuple[list[ClusterPlan], list[str]]:
    """The plans for some paths, and the lines about problems."""
    logs = discover(paths, cluster, paths[0].parent / "scratch")
    problems = logs.problems
    return plan(logs.files, problems), problems


def read(
    *paths: Path, size: int = SMALL
) -> tuple[list[BronzeRow], dict[int, SplitStats], list[ClusterSplits]]:
    """Reads the splits of some paths."""
    cluster_plans, problems = planned(*paths)
    assert not problems
    clusters = splits_of(cluster_plans, size)
    return *read_splits(clusters), clusters


@pytest.mark.parametrize("size", [300, SMALL, 1 << 20])
def test_units_say_what_a_plain_reading_says(tmp_path: Path, size: int) -> None:
    """The commits equal those of the whole log, including transactions across splits."""
    joined = 0
    for seed in range(25):
        log = random_log(seed)
        log.write(tmp_path / str(seed))
        rows, all_stats, clusters = read(tmp_path / str(seed), size=size)
        assert events(rows) == plain(log.content)
        assert sum(all_stats[split.number].records for split in clusters[0].splits) == log.end
        joined += sum(len(split.ranges) > 1 for split in clusters[0].splits)
    assert joined > 5 or size > SMALL


def test_segments_continue_where_the_previous_one_ended(tmp_path: Path) -> None:
    """A transaction from one segment into the third is yielded complete, at its end."""
    log = Log().add(BEGIN, level(19)).add(level(20)).add(level(21), END).add(level(22))
    for first, base in ((0, 0), (1, 2), (2, 3)):
        segment = Log()
        segment.batches = log.batches[first : first + 1] if first < 2 else log.batches[2:]
        segment.write(tmp_path, base)
    rows, _, _ = read(tmp_path)
    joined, single = events(rows)
    assert isinstance(joined, LogCommit)
    assert isinstance(single, LogCommit)
    assert (joined.first_offset, joined.last_offset, len(joined.records)) == (0, 4, 3)
    assert single.last_offset == 5


def corrupted(log: Log, at: int) -> bytes:
    """The bytes of a log with one byte changed."""
    content = bytearray(log.content)
    content[at] ^= 0x55
    return bytes(content)


def test_a_damaged_batch_costs_itself_alone(tmp_path: Path) -> None:
    """Wherever a byte is wrong, the other batches are read, and the corruption is reported."""
    log = random_log(3, batches=20)
    random_ = Random(7)
    expected = {event.last_offset: event for event in plain(log.content)}  # type: ignore[union-attr]
    starts = [batch.at for batch in scan_batches(log.content).batches]
    for at in sorted(random_.sample(range(len(log.content)), 150)):
        path = log.write(tmp_path)
        path.write_bytes(corrupted(log, at))
        (cluster_plan,), problems = planned(tmp_path)
        rows, all_stats = read_splits(splits_of([cluster_plan], SMALL))
        log_events = events(rows)
        lines_ = [line for stats in all_stats.values() for line in stats.problems] + problems
        is_in_header = at - max(start for start in starts if start <= at) < HEADER_BYTES
        # The checksum does not cover the whole header: the epoch may have another valid value.
        assert lines_ or is_in_header
        commits = [event for event in log_events if isinstance(event, LogCommit)]
        intact = [event for event in commits if expected.get(event.last_offset) == event]
        assert len(intact) >= len(expected) - 4


def test_a_length_that_is_wrong_hides_nothing_behind_it(tmp_path: Path) -> None:
    """After bytes that are no batch the log continues, and the offsets between are a gap."""
    log = Log().elect(1).add(level(19)).add(topic(1), topic(2)).add(level(20)).add(noop())
    path = log.write(tmp_path)
    content = bytearray(log.content)
    third = len(log.batches[0]) + len(log.batches[1])
    content[third + 8 : third + 12] = b"\x7f\xff\xff\xff"
    path.write_bytes(content)
    (cluster_plan,), _ = planned(tmp_path)
    rows, all_stats = read_splits(splits_of([cluster_plan]))
    log_events = events(rows)
    assert [type(event) for event in log_events] == [
        LogCommit,
        LogCommit,
        DeadLetter,
        LogGap,
        LogCommit,
    ]
    gap, last = log_events[3], log_events[4]
    assert isinstance(gap, LogGap)
    assert isinstance(last, LogCommit)
    assert (gap.from_offset, gap.to_offset) == (2, 3)
    assert last.first_offset == 4
    assert "cannot have" in all_stats[0].problems[0]


def test_a_torn_last_batch_is_reported_and_left_out(tmp_path: Path) -> None:
    """A segment that ends within a batch ends with the batch before it."""
    log = Log().add(level(19)).add(level(20))
    path = log.write(tmp_path)
    path.write_bytes(log.content[:-3])
    (cluster_plan,), _ = planned(tmp_path)
    rows, all_stats = read_splits(splits_of([cluster_plan]))
    assert [row.offset for row in rows if row.topic.endswith("metadata-log")] == [0]
    assert all_stats[0].end == 1
    assert "cut off" in all_stats[0].problems[0]


def test_zeros_at_the_end_are_nothing(tmp_path: Path) -> None:
    """A preallocated segment is complete."""
    log = Log().add(level(19))
    log.write(tmp_path).write_bytes(log.content + bytes(5000))
    rows, all_stats, _ = read(tmp_path)
    assert (len(rows), all_stats[0].problems) == (1, [])


def test_copies_of_several_nodes_make_one_log(tmp_path: Path) -> None:
    """The copy with the newest epoch defines the log; older ones fill its gaps."""
    log = random_log(5)
    half = len(log.batches) // 2
    old, new = Log(), Log()
    old.batches = log.batches[: half + 5]
    base = scan_batches(b"".join(log.batches[:half])).batches[-1].last_offset + 1
    new.batches = log.batches[half:]
    old.write(tmp_path / "a").write_bytes(
        old.content
        + Log(scan_batches(old.content).batches[-1].last_offset + 1, epoch=1).add(noop()).content
    )
    new.write(tmp_path / "b", base)
    rows, _, _ = read(tmp_path)
    assert events(rows) == plain(log.content)


def test_files_of_two_clusters_in_one_folder_are_refused(tmp_path: Path) -> None:
    """Segments that cannot follow each other are not used; the line says what to do."""
    random_log(1).write(tmp_path)
    random_log(2, base=30).write(tmp_path, 30)
    cluster_plans, (line,) = planned(tmp_path)
    assert cluster_plans == []
    assert "are not of one log" in line
    assert "into a separate directory" in line


def test_clusters_are_distinguished_by_their_meta_properties(tmp_path: Path) -> None:
    """One bundle may hold several clusters, each with its own log."""
    random_log(1).write(tmp_path / "x", cluster="cluster-x")
    random_log(2).write(tmp_path / "y", cluster="cluster-y")
    cluster_plans, problems = planned(tmp_path)
    assert [cluster_plan.cluster for cluster_plan in cluster_plans] == ["cluster-x", "cluster-y"]
    assert problems == []


def test_a_log_of_nobody_knows_which_cluster_is_asked_for(tmp_path: Path) -> None:
    """Without meta.properties the id must be given, and an id that contradicts them is refused."""
    path = random_log(1).write(tmp_path)
    with pytest.raises(ReplayUsageError, match="is of cluster replay-cluster-00000A"):
        planned(path, cluster="another")
    (tmp_path / "meta.properties").unlink()
    with pytest.raises(ReplayUsageError, match="give the cluster's id with --cluster"):
        planned(path)
    (cluster_plan,), _ = planned(path, cluster="another")
    assert cluster_plan.cluster == "another"


def test_a_path_without_a_metadata_log_is_reported(tmp_path: Path) -> None:
    """Each useless path has one line; an ordinary topic's segment is not a metadata log."""
    (tmp_path / "empty").mkdir()
    text = tmp_path / "text.log"
    text.write_text("nothing of use")
    segment = tmp_path / "topic-0" / f"{0:020}.log"
    segment.parent.mkdir()
    segment.write_bytes(Log().add(b"an ordinary record").content)
    cluster_plans, problems = planned(tmp_path / "empty", text, segment)
    assert cluster_plans == []
    assert [line.split(" ")[1] for line in problems] == ["holds", "is", "is"]
    with pytest.raises(ReplayUsageError, match="is not there"):
        planned(tmp_path / "nowhere")


def test_a_log_that_begins_later_begins_with_its_snapshot(tmp_path: Path) -> None:
    """The first snapshot at or after the log's beginning is used, and the log after it."""
    log = Log(100)
    log.add(registration(1, 25)).add(level(20)).add(noop()).write(tmp_path, 100)
    for end in (50, 101, 102):
        name = f"{end:020}-{1:010}.checkpoint"
        (tmp_path / "__cluster_metadata-0" / name).write_bytes(snapshot([level(20)], end, 1))
    (cluster_plan,), _ = planned(tmp_path)
    snapshot_file, slice_ = cluster_plan.steps[-2:]
    assert isinstance(snapshot_file, SnapshotFile)
    assert isinstance(slice_, LogSlice)
    assert (cluster_plan.cluster, snapshot_file.position.offset, slice_.floor) == (
        CLUSTER,
        101,
        101,
    )


def test_a_file_that_goes_away_is_reported(tmp_path: Path) -> None:
    """A file that cannot be opened any more is one line, and other splits are read."""
    log = Log().add(level(19)).add(topic(1)).add(level(20))
    first, second = Log(), Log()
    first.batches, second.batches = log.batches[:2], log.batches[2:]
    removed = first.write(tmp_path)
    second.write(tmp_path, 2)
    (cluster_plan,), _ = planned(tmp_path)
    clusters = splits_of([cluster_plan])
    removed.unlink()
    rows, all_stats = read_splits(clusters)
    assert [event.last_offset for event in events(rows) if isinstance(event, LogCommit)] == [2]
    assert [bool(stats.problems) for stats in all_stats.values()] == [True, False]
    assert "cannot be read: No such file" in all_stats[0].problems[0]
