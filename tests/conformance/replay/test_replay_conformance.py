"""Replay against Kafka's own tool: as the reference of what is read, and as what is read."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from featurewatch.pipeline.replay.assembly import assemble
from featurewatch.pipeline.replay.discovery import discover
from featurewatch.pipeline.replay.plan import SnapshotFile, plan
from featurewatch.pipeline.replay.split_reader import BronzeRow
from featurewatch.pipeline.replay.splits import splits_of
from featurewatch.stack.java.jars import Cache, parse_release, tool_command
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.events import LogCommit
from featurewatch.streams.kraft.records.batch import scan_batches
from featurewatch.streams.kraft.records.decoder import Record
from featurewatch.streams.kraft.records.selection import DEFAULT_RECORD_TYPES, TRANSACTION_MARKERS
from tests.conformance.dump_log import kafkas
from tests.pipeline.replay.logs import Log, events, level, read_splits, registration, snapshot

pytestmark = pytest.mark.stack

SMALL = 4000


def printed(files: list[Path], release: str, cache: Cache) -> bytes:
    """What the release's own tool prints of files."""
    package = "kafka.tools" if parse_release(release) < (4, 0, 0) else "org.apache.kafka.tools"
    command = tool_command(
        release,
        f"{package}.DumpLogSegments",
        *("--cluster-metadata-decoder", "--files", ",".join(map(str, files))),
        cache=cache,
    )
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    return subprocess.run(
        command, check=True, capture_output=True, timeout=120, env=environment
    ).stdout


def replayed(path: Path, cluster: str = "") -> list[BronzeRow]:
    """All that a replay of a path would take into bronze, but for the time when it did."""
    logs = discover([path], cluster, path.parent / "scratch")
    (cluster_plan,) = plan(logs.files, logs.problems)
    (cluster_splits,) = clusters = splits_of([cluster_plan], SMALL)
    rows, all_stats = read_splits(clusters)
    steps = [
        step if isinstance(step, SnapshotFile) else step.number for step in cluster_splits.steps
    ]
    assembled = assemble(cluster_plan.cluster, steps, all_stats)
    assert [*logs.problems, *assembled.problems] == []
    return [row._replace(split=0) for row in (*rows, *assembled.rows)]


def records(rows: list[BronzeRow], *but: str) -> list[Record]:
    """The records in the commits of rows, in order."""
    commits = [event for event in events(rows) if isinstance(event, LogCommit)]
    return [r for commit in commits for r in commit.records if r["type"] not in but]  # type: ignore[misc]


@pytest.mark.parametrize("release", [pytest.param("3.9.1", marks=pytest.mark.nightly), "4.3.0"])
def test_replay_of_a_real_directory_is_what_kafka_prints(
    release: str, quorum_of: Callable[[str], Cluster], stack_cache: Cache, tmp_path: Path
) -> None:
    """The log directory of a real node replays to the records that Kafka's tool prints, and the
    text of the newest tool, replayed, gives the same messages byte for byte."""
    cluster = quorum_of(release)
    log = cluster.leader().metadata_log
    copy = tmp_path / "node" / log.name
    shutil.copytree(log, copy)
    shutil.copy(log.parent / "meta.properties", copy.parent)
    (segment,) = copy.glob("*.log")
    content = segment.read_bytes()
    segment.write_bytes(content[: scan_batches(content).consumed])
    for snapshot_of_another_time in copy.glob("*.checkpoint"):
        snapshot_of_another_time.unlink()
    rows = replayed(copy.parent)
    wanted = DEFAULT_RECORD_TYPES - TRANSACTION_MARKERS
    own = [
        r
        for r in kafkas(segment, release, stack_cache)
        if r["type"] in wanted and r["type"] != "LEADER_CHANGE"
    ]
    assert records(rows, "LEADER_CHANGE") == own
    assert {"FEATURE_LEVEL_RECORD", "REGISTER_BROKER_RECORD"} <= {record["type"] for record in own}
    text = tmp_path / "dump.txt"
    text.write_bytes(printed([segment], "4.3.0", stack_cache))
    assert replayed(text, cluster.cluster_id) == rows
    if release == "3.9.1":
        # Its own tool does not print who leads.
        text.write_bytes(printed([segment], release, stack_cache))
        assert records(replayed(text, cluster.cluster_id)) == own


def test_the_text_of_a_snapshot_and_a_log_replays_as_they_do(
    stack_cache: Cache, tmp_path: Path
) -> None:
    """One text may tell of several files: a snapshot and what follows it give the messages that
    the files give."""
    node = tmp_path / "node"
    state, log = snapshot([registration(1, 25), level(20)], 90, 2), registration(2, 20)
    files = after_snapshot(node, state, log)
    rows = replayed(node)
    text = tmp_path / "dump.txt"
    text.write_bytes(printed(files, "4.3.0", stack_cache))
    assert replayed(text, "replay-cluster-00000A") == rows
    assert [row.topic.split(".")[2] for row in rows].count("checkpoint-90-2") == 1


def after_snapshot(node: Path, state: bytes, record: bytes) -> list[Path]:
    """A log directory that begins with a snapshot; its files."""
    segment = Log(90, epoch=2).add(record).add(level(21)).write(node, 90)
    checkpoint = segment.parent / f"{90:020}-{2:010}.checkpoint"
    checkpoint.write_bytes(state)
    return [checkpoint, segment]
