"""``featurewatch replay``: its output and its exit codes, as far as no Spark is needed."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from featurewatch.cli.main import main
from featurewatch.pipeline.replay.assembly import ClusterReplay, assemble
from featurewatch.pipeline.replay.plan import ReplayPlan, SnapshotFile, prepare
from featurewatch.pipeline.replay.run import ReplayResult
from featurewatch.pipeline.replay.splits import splits_of
from featurewatch.streams.codec.events import decode_log_event
from featurewatch.streams.events import LogGap, SnapshotChunk, SourceStatus
from tests.pipeline.replay.logs import (
    BEGIN,
    CLUSTER,
    START_MS,
    Log,
    level,
    read_splits,
    registration,
    snapshot,
    topic,
)
from tests.streams.dead_letters import decode_dead_letter


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The command's exit code."""
    monkeypatch.setattr("featurewatch.cli.logs.set_up", lambda **_: None)
    monkeypatch.setattr("sys.argv", ["featurewatch", "replay", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_wrong_paths_and_useless_ones_have_their_own_exit_codes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing path and an unknown cluster are wrong usage (2), a directory without a log is a
    failure (1); each is one line, and Spark is not started."""
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
        captured = capsys.readouterr()
        assert captured.out == ""
        assert line in captured.err.splitlines()[0]


def test_what_was_taken_is_reported_and_what_was_not_is_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each cluster is a line on stdout, or a JSON document; problems go to stderr."""
    Log().add(level(19)).write(tmp_path)
    cluster_replay = ClusterReplay(CLUSTER, first=0, end=5, records=5, messages=3)

    @contextmanager
    def no_lake(root: str, _: str, *, brief: bool) -> Iterator[Any]:
        assert brief
        yield SimpleNamespace()

    def fake_replay(_: Any, plan: ReplayPlan, *__: Any) -> ReplayResult:
        assert [cluster_plan.cluster for cluster_plan in plan.cluster_plans] == [CLUSTER]
        return ReplayResult([cluster_replay], [*cluster_replay.problems])

    monkeypatch.setattr("featurewatch.cli.runtime.lake.open_lake", no_lake)
    monkeypatch.setattr("featurewatch.pipeline.replay.run.replay", fake_replay)
    assert run(monkeypatch, "--lake", "here", str(tmp_path)) == 0
    line = f"cluster {CLUSTER}: offsets 0 to 4, 5 records, 3 messages\n"
    assert capsys.readouterr() == (line, "")
    cluster_replay.problems.append("a torn batch")
    assert run(monkeypatch, "--json", str(tmp_path)) == 1
    captured = capsys.readouterr()
    assert orjson.loads(captured.out) == {
        "cluster": CLUSTER,
        "from_offset": 0,
        "to_offset": 4,
        "records": 5,
        "messages": 3,
        "problems": ["a torn batch"],
    }
    assert captured.err == "featurewatch: a torn batch\n"


def assembled(path: Path) -> ClusterReplay:
    """Assembles the replay of a path."""
    plan = prepare([path], "", path / "scratch")
    (cluster_splits,) = clusters = splits_of(plan.cluster_plans)
    _, all_stats = read_splits(clusters)
    steps = [
        step if isinstance(step, SnapshotFile) else step.number for step in cluster_splits.steps
    ]
    return assemble(cluster_splits.cluster, steps, all_stats)


def test_a_log_that_begins_with_a_snapshot_is_ready_from_there_on(tmp_path: Path) -> None:
    """The first status event comes first, then the snapshot, the log, and the last status event;
    each has its own time, which gives the fold that order."""
    log = Log(90, epoch=2).add(level(21))
    checkpoint = log.write(tmp_path, 90).parent / f"{90:020}-{2:010}.checkpoint"
    checkpoint.write_bytes(snapshot([registration(1, 25), level(20)], 90, 2))
    cluster_replay = assembled(tmp_path)
    begin, chunk, end = [decode_log_event(row.value, row.key) for row in cluster_replay.rows]
    assert isinstance(begin, SourceStatus)
    assert isinstance(chunk, SnapshotChunk)
    assert isinstance(end, SourceStatus)
    assert (chunk.end_offset, chunk.last, len(chunk.records)) == (90, True, 2)
    assert (end.offset, end.high_watermark) == (90, 91)
    assert [row.time_ms - START_MS for row in cluster_replay.rows] == [0, 1, 8]
    assert (cluster_replay.starts, cluster_replay.problems) == ({0: START_MS + 2}, [])


def test_a_snapshot_without_its_footer_is_reported_and_the_log_is_taken(tmp_path: Path) -> None:
    """A truncated snapshot is not used at all: the part before the log is a gap."""
    log = Log(90, epoch=2).add(level(21))
    checkpoint = log.write(tmp_path, 90).parent / f"{90:020}-{2:010}.checkpoint"
    checkpoint.write_bytes(snapshot([registration(1, 25)], 90, 2)[:-60])
    cluster_replay = assembled(tmp_path)
    assert len(cluster_replay.problems) == 2
    assert "cut off before its footer" in cluster_replay.problems[0]
    letter, *rest = cluster_replay.rows
    assert "footer" in decode_dead_letter(letter.value).reason
    gap = decode_log_event(rest[1].value)
    assert isinstance(gap, LogGap)
    assert (gap.from_offset, gap.to_offset) == (0, 89)
    assert cluster_replay.end == 91


def test_a_bundle_is_unpacked_without_what_does_not_belong(tmp_path: Path) -> None:
    """Only files that may be logs are unpacked, and nothing outside of the target."""
    log = Log().add(level(19)).write(tmp_path / "node")
    bundle = tmp_path / "bundle.zip"
    with zipfile.ZipFile(bundle, "w") as archive:
        archive.write(log, f"a/__cluster_metadata-0/{log.name}")
        archive.writestr("a/meta.properties", "cluster.id=zipped\n")
        archive.writestr("a/server.log", "a log of another kind")
        archive.writestr("../outside.checkpoint", b"")
    scratch = tmp_path / "scratch"
    plan = prepare([bundle], "", scratch)
    assert [cluster_plan.cluster for cluster_plan in plan.cluster_plans] == ["zipped"]
    (line,) = plan.problems
    assert line == (
        f"{bundle} holds ../outside.checkpoint, whose name leads out of it; passed over"
    )
    written = sorted(path.name for path in scratch.rglob("*") if path.is_file())
    assert written == [log.name, "meta.properties"]
    assert not (tmp_path / "outside.checkpoint").exists()


def test_a_transaction_without_an_end_is_left_out_and_reported(tmp_path: Path) -> None:
    """It is not a failure: a log may be copied in the middle of one. The source's position is
    before it."""
    Log().add(level(19)).add(topic(1), BEGIN, level(20)).add(topic(2)).write(tmp_path)
    cluster_replay = assembled(tmp_path)
    (note,) = cluster_replay.notes
    assert "the transaction that begins at offset 2 has no end" in note
    assert (cluster_replay.problems, cluster_replay.end) == ([], 5)
    end = decode_log_event(cluster_replay.rows[-1].value)
    assert isinstance(end, SourceStatus)
    assert (end.offset, end.high_watermark) == (1, 5)


def test_a_log_that_continues_where_the_lake_ends_misses_nothing(tmp_path: Path) -> None:
    """The part of an earlier replay need not be given again."""
    Log(40).add(level(21)).write(tmp_path, 40)
    (cluster_splits,) = clusters = splits_of(
        prepare([tmp_path], "", tmp_path / "scratch").cluster_plans
    )
    _, all_stats = read_splits(clusters)
    numbers: list[SnapshotFile | int] = [split.number for split in cluster_splits.splits]
    assert assemble(CLUSTER, numbers, all_stats, held=40).problems == []
    (line,) = assemble(CLUSTER, numbers, all_stats, held=39).problems
    assert "offsets 39 to 39 are missing" in line
    ahead = assemble(CLUSTER, numbers, all_stats, held=99)
    assert (ahead.first, ahead.end) == (40, 41)
