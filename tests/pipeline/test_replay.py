"""Replay: files become the tables that a live source and worker would have made of them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from controller.monitor import MonitorState, step
from pipeline.gold_tables import EPOCHS, FEATURE_CHANGES
from pipeline.lake import Lake
from pipeline.registry import MESSAGES
from pipeline.replay import units
from pipeline.replay.run import replay
from pipeline.silver_tables import LEVELS
from streams.codec import decode_log_event
from streams.events import DeadLetter, Event, LogCommit, SourceStatus
from streams.outputs import Snapshot
from streams.types import ClusterId
from tests.pipeline.filling import rows
from tests.pipeline.replay_logs import Log, level, noop, plain, random_log, registration

pytestmark = pytest.mark.stack

CHANGE = ("cluster", "id", "feature", "before", "after", "revision", "epoch")


def in_order(lake: Lake, cluster: str) -> list[tuple[Any, ...]]:
    """A cluster's replayed messages in the lake's order, with their times."""
    found = lake.read(MESSAGES).where(f"key = '{cluster}' AND topic LIKE '%.metadata-log'")
    ordered = found.orderBy("round", "kafka_time", "topic", "offset")
    return [tuple(row) for row in ordered.select("value", "kafka_time", "offset").collect()]


def digests(events: Iterable[Event]) -> list[tuple[str, int, str]]:
    """The snapshots that the plain fold comes to."""
    states: dict[str, MonitorState] = {}
    shots: list[Snapshot] = []
    for event in events:
        outcome = step(states.get(event.cluster) or MonitorState.of(event.cluster), event)
        states[event.cluster] = outcome.state
        shots += [outcome.snapshot] if outcome.snapshot else []
    return sorted((shot.cluster, shot.revision, shot.digest) for shot in shots)


def test_replay_is_what_the_plain_fold_says(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bronze has the events of a plain reading in the log's order, and gold its digests, for
    several clusters at once; to replay again, or a longer copy later, adds what is new alone."""
    monkeypatch.setattr(units, "UNIT_BYTES", 1500)
    logs = {ClusterId(f"replay-{seed}"): random_log(seed) for seed in (1, 2)}
    wanted: list[Event] = []
    for cluster, log in logs.items():
        log.write(tmp_path / cluster, cluster=cluster)
        events = [event for event in plain(log.content, cluster) if not _dead(event)]
        wanted += events  # type: ignore[arg-type]
    first = replay(lake, [tmp_path], "", tmp_path / "scratch")
    told = {one.cluster: one for one in first.clusters}
    assert {one: (told[one].first, told[one].end, told[one].records) for one in told} == {
        cluster: (0, log.end, log.end) for cluster, log in logs.items()
    }
    following: list[Event] = []
    for cluster in logs:
        found = in_order(lake, cluster)
        begin, *content, end = [decode_log_event(value) for value, _, _ in found]
        assert isinstance(begin, SourceStatus)
        assert isinstance(end, SourceStatus)
        assert content == [event for event in wanted if event.cluster == cluster]
        assert [at for _, at, _ in found] == sorted(at for _, at, _ in found)
        following += [begin, *content, end]
    assert rows(lake, EPOCHS, "cluster", "revision", "digest") == digests(following)
    before = rows(lake, MESSAGES), rows(lake, EPOCHS), rows(lake, FEATURE_CHANGES)

    again = replay(lake, [tmp_path], "", tmp_path / "scratch")
    assert again.problems == first.problems
    assert (rows(lake, MESSAGES), rows(lake, EPOCHS), rows(lake, FEATURE_CHANGES)) == before

    cluster, log = next(iter(logs.items()))
    log.elect(3).add(level(17)).write(tmp_path / "later", cluster=cluster)
    replay(lake, [tmp_path / "later"], "", tmp_path / "scratch")
    (change,) = set(rows(lake, FEATURE_CHANGES, *CHANGE)) - {
        tuple(row) for row in _changes(before[2])
    }
    assert (change[0], change[2], change[4]) == (cluster, "metadata.version", 17)
    assert len(rows(lake, LEVELS, "id")) >= len(rows(lake, EPOCHS, "id"))


def _dead(event: LogCommit | DeadLetter) -> bool:
    return isinstance(event, DeadLetter)


def _changes(found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    at = [[*FEATURE_CHANGES.columns].index(name) for name in CHANGE]
    return [tuple(row[index] for index in at) for row in found]


def test_what_is_missing_is_a_gap(lake: Lake, tmp_path: Path) -> None:
    """A segment that is not there is told, and gold has the alert about it."""
    Log().add(registration(1, 25)).add(level(19)).write(tmp_path)
    Log(9).add(noop()).add(level(20)).write(tmp_path, 9)
    replayed = replay(lake, [tmp_path], "", tmp_path / "scratch")
    assert replayed.problems == [
        "cluster replay-cluster-00000A: offsets 2 to 8 are missing: no file has these offsets"
    ]
    from pipeline.gold_tables import ALERTS

    (alert,) = rows(lake, ALERTS, "rule", "state")
    assert alert == ("log-gap", "firing")
