"""``featurewatch replay``: what it says, and its exit codes, where no Spark is needed yet."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from featurewatch.cli.main import main
from featurewatch.cli.runtime import lake
from featurewatch.pipeline.replay.assembly import ClusterReplay, assemble
from featurewatch.pipeline.replay.plan import ReplayPlan, SnapshotFile, prepare
from featurewatch.pipeline.replay.run import ReplayResult
from featurewatch.pipeline.replay.splits import splits_of
from featurewatch.streams.codec.events import decode_dead_letter, decode_log_event
from featurewatch.streams.events import LogGap, SnapshotChunk, SourceStatus
from tests.pipeline.replay.logs import (
    BEGIN,
    CLUSTER,
    START_MS,
    Log,
    level,
    read_units,
    registration,
    snapshot,
    topic,
)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The command's exit code."""
    monkeypatch.setattr("sys.argv", ["featurewatch", "replay", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_wrong_paths_and_nothing_of_use_have_exit_codes_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A path that is not there and a cluster that nobody names are wrong usage (2), a directory
    without a log is a failure (1); each is one line, and no Spark is started for it."""
    empty = tmp_path / "empty"
    empty.mkdir()
    log = Log().add(level(19)).write(tmp_path / "node")
    (tmp_path / "node" / "meta.properties").unlink()
    cut_off = tmp_path / "bundle.zip"
    cut_off.write_bytes(b"PK\3\4 and no more")
    bootstrap = tmp_path / "bootstrap.checkpoint"
    bootstrap.write_bytes(snapshot([level(19)], 0, 0))
    for path, code, line in (
        (tmp_path / "nowhere", 2, "is not there"),
        (log, 2, "give the cluster's id with --cluster"),
        (empty, 1, "holds no metadata log, snapshot or text of kafka-dump-log"),
        (cut_off, 1, "cannot be unpacked"),
        (bootstrap, 1, "is what the log begins with when a cluster is formatted; passed over"),
    ):
        assert run(monkeypatch, str(path)) == code
        said = capsys.readouterr()
        assert said.out == ""
        assert line in said.err.splitlines()[0]


def test_what_was_taken_is_told_and_what_was_not_is_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each cluster is a line on stdout, or a JSON document; problems go to stderr."""
    Log().add(level(19)).write(tmp_path)
    told = ClusterReplay(CLUSTER, first=0, end=5, records=5, messages=3)

    @contextmanager
    def no_lake(root: str, _: str, *, brief: bool) -> Iterator[Any]:
        assert brief
        yield SimpleNamespace()

    def ran(_: Any, plan: ReplayPlan, *__: Any) -> ReplayResult:
        assert [course.cluster for course in plan.courses] == [CLUSTER]
        return ReplayResult([told], [*told.problems])

    monkeypatch.setattr(lake, "open_lake", no_lake)
    monkeypatch.setattr("featurewatch.pipeline.replay.run.replay", ran)
    assert run(monkeypatch, "--lake", "here", str(tmp_path)) == 0
    line = f"cluster {CLUSTER}: offsets 0 to 4, 5 records, 3 messages\n"
    assert capsys.readouterr() == (line, "")
    told.problems.append("a torn batch")
    assert run(monkeypatch, "--json", str(tmp_path)) == 1
    said = capsys.readouterr()
    assert orjson.loads(said.out) == {
        "cluster": CLUSTER,
        "from_offset": 0,
        "to_offset": 4,
        "records": 5,
        "messages": 3,
        "problems": ["a torn batch"],
    }
    assert said.err == "featurewatch: a torn batch\n"


def told_of(path: Path) -> ClusterReplay:
    """What is said between the units of a path."""
    plan = prepare([path], "", path / "scratch")
    (track,) = tracks = splits_of(plan.courses)
    _, tallies = read_units(tracks)
    steps = [step if isinstance(step, SnapshotFile) else step.number for step in track.steps]
    return assemble(track.cluster, steps, tallies)


def test_a_log_that_begins_with_a_snapshot_is_ready_from_there_on(tmp_path: Path) -> None:
    """First the word that the source follows, then the snapshot, then the log, and the end; each
    has a time of its own, so that the fold takes it in that order."""
    log = Log(90, epoch=2).add(level(21))
    checkpoint = log.write(tmp_path, 90).parent / f"{90:020}-{2:010}.checkpoint"
    checkpoint.write_bytes(snapshot([registration(1, 25), level(20)], 90, 2))
    told = told_of(tmp_path)
    begin, chunk, end = [decode_log_event(row.value, row.key) for row in told.rows]
    assert isinstance(begin, SourceStatus)
    assert isinstance(chunk, SnapshotChunk)
    assert isinstance(end, SourceStatus)
    assert (chunk.end_offset, chunk.last, len(chunk.records)) == (90, True, 2)
    assert (end.offset, end.high_watermark) == (90, 91)
    assert [row.time_ms - START_MS for row in told.rows] == [0, 1, 8]
    assert (told.starts, told.problems) == ({0: START_MS + 2}, [])


def test_a_snapshot_without_its_footer_is_told_and_the_log_is_taken(tmp_path: Path) -> None:
    """Nothing of a snapshot that is cut off counts: what was before the log is a gap then."""
    log = Log(90, epoch=2).add(level(21))
    checkpoint = log.write(tmp_path, 90).parent / f"{90:020}-{2:010}.checkpoint"
    checkpoint.write_bytes(snapshot([registration(1, 25)], 90, 2)[:-60])
    told = told_of(tmp_path)
    assert len(told.problems) == 2
    assert "cut off before its footer" in told.problems[0]
    dead, *rest = told.rows
    assert "footer" in decode_dead_letter(dead.value).reason  # type: ignore[union-attr]
    gap = decode_log_event(rest[1].value)
    assert isinstance(gap, LogGap)
    assert (gap.from_offset, gap.to_offset) == (0, 89)
    assert told.end == 91


def test_a_bundle_is_unpacked_without_what_does_not_belong(tmp_path: Path) -> None:
    """Of an archive only what may be a log is written, and nothing outside of its place."""
    log = Log().add(level(19)).write(tmp_path / "node")
    bundle = tmp_path / "bundle.zip"
    with zipfile.ZipFile(bundle, "w") as archive:
        archive.write(log, f"a/__cluster_metadata-0/{log.name}")
        archive.writestr("a/meta.properties", "cluster.id=zipped\n")
        archive.writestr("a/server.log", "a log of another kind")
        archive.writestr("../outside.checkpoint", b"")
    scratch = tmp_path / "scratch"
    plan = prepare([bundle], "", scratch)
    assert [course.cluster for course in plan.courses] == ["zipped"]
    (line,) = plan.problems
    assert line == (
        f"{bundle} holds ../outside.checkpoint, whose name leads out of it; passed over"
    )
    written = sorted(path.name for path in scratch.rglob("*") if path.is_file())
    assert written == [log.name, "meta.properties"]
    assert not (tmp_path / "outside.checkpoint").exists()


def test_a_transaction_without_an_end_is_left_out_and_told(tmp_path: Path) -> None:
    """It is no failure: a log may be copied in the middle of one. The source stands before it."""
    Log().add(level(19)).add(topic(1), BEGIN, level(20)).add(topic(2)).write(tmp_path)
    told = told_of(tmp_path)
    (note,) = told.notes
    assert "the transaction that begins at offset 2 has no end" in note
    assert (told.problems, told.end) == ([], 5)
    end = decode_log_event(told.rows[-1].value)
    assert isinstance(end, SourceStatus)
    assert (end.offset, end.high_watermark) == (1, 5)


def test_a_log_that_goes_on_where_the_lake_ends_misses_nothing(tmp_path: Path) -> None:
    """What an earlier replay took need not be given again."""
    Log(40).add(level(21)).write(tmp_path, 40)
    (track,) = tracks = splits_of(prepare([tmp_path], "", tmp_path / "scratch").courses)
    _, tallies = read_units(tracks)
    numbers: list[SnapshotFile | int] = [unit.number for unit in track.units]
    assert assemble(CLUSTER, numbers, tallies, held=40).problems == []
    (line,) = assemble(CLUSTER, numbers, tallies, held=39).problems
    assert "offsets 39 to 39 are missing" in line
    ahead = assemble(CLUSTER, numbers, tallies, held=99)
    assert (ahead.first, ahead.end) == (40, 41)
