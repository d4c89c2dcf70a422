"""A log that is read in units says what a plain reading says, wherever it is cut and damaged."""

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
    read_units,
    registration,
    snapshot,
    topic,
)

SMALL = 700
"""Bytes in a unit: some five batches."""


def planned(*paths: Path, cluster: str = "") -> tuple[list[ClusterPlan], list[str]]:
    """The courses of what lies under paths, and the lines about problems."""
    finds = discover(paths, cluster, paths[0].parent / "scratch")
    problems = finds.problems
    return plan(finds.found, problems), problems


def read(
    *paths: Path, size: int = SMALL
) -> tuple[list[BronzeRow], dict[int, SplitStats], list[ClusterSplits]]:
    """What the units of paths come to."""
    courses, problems = planned(*paths)
    assert not problems
    tracks = splits_of(courses, size)
    return *read_units(tracks), tracks


@pytest.mark.parametrize("size", [300, SMALL, 1 << 20])
def test_units_say_what_a_plain_reading_says(tmp_path: Path, size: int) -> None:
    """Commits of units are those of the whole log, transactions across cuts among them."""
    joined = 0
    for seed in range(25):
        log = random_log(seed)
        log.write(tmp_path / str(seed))
        rows, tallies, tracks = read(tmp_path / str(seed), size=size)
        assert events(rows) == plain(log.content)
        assert sum(tallies[unit.number].records for unit in tracks[0].units) == log.end
        joined += sum(len(unit.spans) > 1 for unit in tracks[0].units)
    assert joined > 5 or size > SMALL


def test_segments_go_on_where_the_one_before_ended(tmp_path: Path) -> None:
    """A transaction from one segment into the third comes out whole, at its end."""
    log = Log().add(BEGIN, level(19)).add(level(20)).add(level(21), END).add(level(22))
    for first, base in ((0, 0), (1, 2), (2, 3)):
        part = Log()
        part.batches = log.batches[first : first + 1] if first < 2 else log.batches[2:]
        part.write(tmp_path, base)
    rows, _, _ = read(tmp_path)
    joined, single = events(rows)
    assert isinstance(joined, LogCommit)
    assert isinstance(single, LogCommit)
    assert (joined.first_offset, joined.last_offset, len(joined.records)) == (0, 4, 3)
    assert single.last_offset == 5


def damaged(log: Log, at: int) -> bytes:
    """The bytes of a log with one byte changed."""
    content = bytearray(log.content)
    content[at] ^= 0x55
    return bytes(content)


def test_a_damaged_batch_costs_itself_alone(tmp_path: Path) -> None:
    """Wherever a byte is wrong, what stands in other batches is taken, and the damage is told."""
    log = random_log(3, batches=20)
    chance = Random(7)
    whole = {event.last_offset: event for event in plain(log.content)}  # type: ignore[union-attr]
    starts = [batch.at for batch in scan_batches(log.content).batches]
    for at in sorted(chance.sample(range(len(log.content)), 150)):
        path = log.write(tmp_path)
        path.write_bytes(damaged(log, at))
        (course,), problems = planned(tmp_path)
        rows, tallies = read_units(splits_of([course], SMALL))
        found = events(rows)
        lost = [line for tally in tallies.values() for line in tally.problems] + problems
        header = at - max(start for start in starts if start <= at) < HEADER_BYTES
        # Of the header not all is covered by the checksum: the epoch may read as another one.
        assert lost or header
        commits = [event for event in found if isinstance(event, LogCommit)]
        good = [event for event in commits if whole.get(event.last_offset) == event]
        assert len(good) >= len(whole) - 4


def test_a_length_that_is_wrong_hides_nothing_behind_it(tmp_path: Path) -> None:
    """Behind bytes that are no batch the log goes on, and the offsets between are a gap."""
    log = Log().elect(1).add(level(19)).add(topic(1), topic(2)).add(level(20)).add(noop())
    path = log.write(tmp_path)
    content = bytearray(log.content)
    third = len(log.batches[0]) + len(log.batches[1])
    content[third + 8 : third + 12] = b"\x7f\xff\xff\xff"
    path.write_bytes(content)
    (course,), _ = planned(tmp_path)
    rows, tallies = read_units(splits_of([course]))
    found = events(rows)
    assert [type(event) for event in found] == [LogCommit, LogCommit, DeadLetter, LogGap, LogCommit]
    gap, last = found[3], found[4]
    assert isinstance(gap, LogGap)
    assert isinstance(last, LogCommit)
    assert (gap.from_offset, gap.to_offset) == (2, 3)
    assert last.first_offset == 4
    assert "cannot have" in tallies[0].problems[0]


def test_a_torn_last_batch_is_told_and_left_out(tmp_path: Path) -> None:
    """A segment that is cut off in a batch ends with the batch before it."""
    log = Log().add(level(19)).add(level(20))
    path = log.write(tmp_path)
    path.write_bytes(log.content[:-3])
    (course,), _ = planned(tmp_path)
    rows, tallies = read_units(splits_of([course]))
    assert [row.offset for row in rows if row.topic.endswith("metadata-log")] == [0]
    assert tallies[0].end == 1
    assert "cut off" in tallies[0].problems[0]


def test_zeros_at_the_end_are_nothing(tmp_path: Path) -> None:
    """A preallocated segment is whole."""
    log = Log().add(level(19))
    log.write(tmp_path).write_bytes(log.content + bytes(5000))
    rows, tallies, _ = read(tmp_path)
    assert (len(rows), tallies[0].problems) == (1, [])


def test_copies_of_several_nodes_make_one_log(tmp_path: Path) -> None:
    """The copy with the newest epoch says what the log is; older ones fill in what it lacks."""
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
    """Segments that cannot follow each other are taken of neither; the line says what to do."""
    random_log(1).write(tmp_path)
    random_log(2, base=30).write(tmp_path, 30)
    courses, (line,) = planned(tmp_path)
    assert courses == []
    assert "are not of one log" in line
    assert "a directory of its own" in line


def test_clusters_are_told_apart_by_their_meta_properties(tmp_path: Path) -> None:
    """One bundle may hold several clusters, each with its own log."""
    random_log(1).write(tmp_path / "x", cluster="cluster-x")
    random_log(2).write(tmp_path / "y", cluster="cluster-y")
    courses, problems = planned(tmp_path)
    assert [course.cluster for course in courses] == ["cluster-x", "cluster-y"]
    assert problems == []


def test_a_log_of_nobody_knows_which_cluster_is_asked_for(tmp_path: Path) -> None:
    """Without meta.properties the id must be given, and one that contradicts them is refused."""
    path = random_log(1).write(tmp_path)
    with pytest.raises(ReplayUsageError, match="is of cluster replay-cluster-00000A"):
        planned(path, cluster="another")
    (tmp_path / "meta.properties").unlink()
    with pytest.raises(ReplayUsageError, match="give the cluster's id with --cluster"):
        planned(path)
    (course,), _ = planned(path, cluster="another")
    assert course.cluster == "another"


def test_what_is_no_log_is_said_to_be_none(tmp_path: Path) -> None:
    """Each path that gives nothing has one line; an ordinary topic's segment is no metadata log."""
    (tmp_path / "empty").mkdir()
    text = tmp_path / "text.log"
    text.write_text("nothing of use")
    segment = tmp_path / "topic-0" / f"{0:020}.log"
    segment.parent.mkdir()
    segment.write_bytes(Log().add(b"an ordinary record").content)
    courses, problems = planned(tmp_path / "empty", text, segment)
    assert courses == []
    assert [line.split(" ")[1] for line in problems] == ["holds", "is", "is"]
    with pytest.raises(ReplayUsageError, match="is not there"):
        planned(tmp_path / "nowhere")


def test_a_log_that_begins_later_begins_with_its_snapshot(tmp_path: Path) -> None:
    """The first snapshot at or after the log's beginning is taken, and the log from there on."""
    log = Log(100)
    log.add(registration(1, 25)).add(level(20)).add(noop()).write(tmp_path, 100)
    for end in (50, 101, 102):
        name = f"{end:020}-{1:010}.checkpoint"
        (tmp_path / "__cluster_metadata-0" / name).write_bytes(snapshot([level(20)], end, 1))
    (course,), _ = planned(tmp_path)
    known, run = course.steps[-2:]
    assert isinstance(known, SnapshotFile)
    assert isinstance(run, LogSlice)
    assert (course.cluster, known.place.offset, run.floor) == (CLUSTER, 101, 101)


def test_a_file_that_goes_away_is_told(tmp_path: Path) -> None:
    """What cannot be opened when its turn comes is a line, and other units are read."""
    log = Log().add(level(19)).add(topic(1)).add(level(20))
    first, second = Log(), Log()
    first.batches, second.batches = log.batches[:2], log.batches[2:]
    gone = first.write(tmp_path)
    second.write(tmp_path, 2)
    (course,), _ = planned(tmp_path)
    tracks = splits_of([course])
    gone.unlink()
    rows, tallies = read_units(tracks)
    assert [event.last_offset for event in events(rows) if isinstance(event, LogCommit)] == [2]
    assert [bool(tally.problems) for tally in tallies.values()] == [True, False]
    assert "cannot be read: No such file" in tallies[0].problems[0]
