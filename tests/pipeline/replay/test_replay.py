"""Replay: files become the tables that a live source and worker would have produced."""

import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from featurewatch.monitor.step import MonitorState, step
from featurewatch.pipeline.gold.tables import ALERTS, EPOCHS, FEATURE_CHANGES
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import MESSAGES
from featurewatch.pipeline.replay import splits
from featurewatch.pipeline.replay.plan import prepare
from featurewatch.pipeline.replay.run import ReplayResult, replay
from featurewatch.pipeline.run import run_once, stages
from featurewatch.pipeline.silver.tables import LEVELS
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.codec.events import decode_log_event
from featurewatch.streams.events import (
    CommitKind,
    DeadLetter,
    Event,
    LogCommit,
    RecordJson,
    SourceStatus,
)
from featurewatch.streams.outputs import Snapshot
from featurewatch.streams.types import ClusterId
from tests.pipeline.filling import put, rows
from tests.pipeline.replay.logs import Log, level, noop, plain, random_log, registration

pytestmark = pytest.mark.stack


def replayed(lake: Lake, *paths: Path) -> ReplayResult:
    """Replays some paths."""
    return replay(lake, prepare(paths, "", paths[0].parent / "scratch"))


def in_order(lake: Lake, cluster: str) -> list[tuple[Any, ...]]:
    """A cluster's replayed messages in the lake's order, with their times."""
    messages = lake.read(MESSAGES).where(f"key = '{cluster}' AND topic LIKE '%.metadata-log'")
    ordered = messages.orderBy("round", "kafka_time", "topic", "offset")
    return [tuple(row) for row in ordered.select("value", "kafka_time").collect()]


def digests(events: Iterable[Event]) -> list[tuple[str, int, str]]:
    """The snapshots that the plain fold yields."""
    states: dict[str, MonitorState] = {}
    snapshots: list[Snapshot] = []
    for event in events:
        outcome = step(states.get(event.cluster) or MonitorState.of(event.cluster), event)
        states[event.cluster] = outcome.state
        snapshots += [outcome.snapshot] if outcome.snapshot else []
    return sorted((snapshot.cluster, snapshot.revision, snapshot.digest) for snapshot in snapshots)


def test_replay_is_what_the_plain_fold_says(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bronze has the events of a plain reading in the log's order, and gold its digests, for
    several clusters at once; replaying all of it again with a longer copy adds only what is new."""
    monkeypatch.setattr(splits, "SPLIT_BYTES", 1500)
    logs = {ClusterId(f"replay-{seed}"): random_log(seed) for seed in (1, 2)}
    for cluster, log in logs.items():
        log.write(tmp_path / "logs" / cluster, cluster=cluster)
    replays = replayed(lake, tmp_path / "logs").clusters
    assert {replay.cluster: (replay.first, replay.end, replay.records) for replay in replays} == {
        name: (0, log.end, log.end) for name, log in logs.items()
    }
    following: list[Event] = []
    for cluster, log in logs.items():
        messages_ = in_order(lake, cluster)
        begin, *content, end = [decode_log_event(value) for value, _ in messages_]
        assert isinstance(begin, SourceStatus)
        assert isinstance(end, SourceStatus)
        expected = [
            event for event in plain(log.content, cluster) if not isinstance(event, DeadLetter)
        ]
        assert content == expected
        assert [at for _, at in messages_] == sorted(at for _, at in messages_)
        following += [begin, *content, end]
    assert rows(lake, EPOCHS, "cluster", "revision", "digest") == digests(following)
    before = [rows(lake, table) for table in (MESSAGES, EPOCHS, FEATURE_CHANGES)]

    cluster, log = next(iter(logs.items()))
    log.elect(3).add(level(17)).write(tmp_path / "logs" / "longer", cluster=cluster)
    again = replayed(lake, tmp_path / "logs").clusters
    added = {replay.cluster: replay.messages for replay in again}
    assert added == dict.fromkeys(logs, 0) | {cluster: 3}
    after = [rows(lake, table) for table in (MESSAGES, EPOCHS, FEATURE_CHANGES)]
    new = [[row for row in b if row not in a] for a, b in zip(before, after, strict=True)]
    assert [len(b) - len(a) for a, b in zip(before, after, strict=True)] == [*map(len, new)]
    messages, _, ((*_, change),) = new[0], new[1], [new[2]]
    assert sorted(row[2] for row in messages) == [log.end - 2, log.end - 1, log.end - 1]
    assert (change[0], change[2], change[4]) == (cluster, "metadata.version", 17)
    assert len(rows(lake, LEVELS, "id")) >= len(after[1])


@pytest.mark.nightly
def test_a_bundle_with_a_gap_is_taken_and_the_lake_continues_live(
    lake: Lake, tmp_path: Path, own_bus: Callable[[], BusSettings]
) -> None:
    """A missing segment in an archive is reported and raises an alert; the lake then ingests the
    same cluster from a bus."""
    node = tmp_path / "node"
    log = Log().add(registration(1, 25)).add(level(19))
    log.write(node)
    Log(9).add(noop()).add(level(20)).write(node, 9)
    bundle = tmp_path / "bundle.tar.gz"
    with tarfile.open(bundle, "w:gz") as archive:
        archive.add(node, "support/node-1")
    result = replayed(lake, bundle)
    cluster = result.clusters[0].cluster
    assert result.problems == [
        f"cluster {cluster}: offsets 2 to 8 are missing: no file has these offsets"
    ]
    assert rows(lake, ALERTS, "rule", "state") == [("log-gap", "firing")]
    bus = own_bus()
    ensure_topics(bus)
    change = {"name": "metadata.version", "featureLevel": 21}
    record: RecordJson = {
        "offset": 11,
        "type": "FEATURE_LEVEL_RECORD",
        "version": 0,
        "data": change,
    }
    at_ms = log.at_ms + 60_000
    commit = LogCommit(ClusterId(cluster), CommitKind.BATCH, 11, 11, 1, at_ms, [record], {}, at_ms)
    put(bus, [commit])
    run_once(lake, stages(lake, bus))
    levels = rows(lake, FEATURE_CHANGES, "revision", "before", "after")
    assert levels == [(1, 0, 19), (2, 19, 20), (3, 20, 21)]
