"""The same events yield the same outputs in every engine: worker, plain calls, batches, streams."""

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from featurewatch.pipeline.derived.query import FoldQuery
from featurewatch.pipeline.fold.messages import FoldOutput
from featurewatch.pipeline.gold.tables import ALERTS, GOLD, UPGRADES
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.streams.events import Event
from featurewatch.streams.types import ClusterId
from tests.pipeline.filling import rows
from tests.pipeline.gold.parity import (
    differences,
    fill_tables,
    folded,
    gold,
    history,
    in_batches,
    in_turn,
    into,
    line,
    lines,
    outputs,
    replayed,
    tables_of,
    worked,
)
from tests.scenarios.runner import SCENARIO_FILES, Scenario

OUTPUTS = ("change", "alert", "snapshot")


def scenario(file: Path) -> list[Event]:
    """The events of a scenario, for a cluster of its name."""
    play = Scenario()
    play.play(file.read_text())
    return [replace(event, cluster=ClusterId(file.stem)) for event in play.taken]


def live_outputs(outputs: Iterable[FoldOutput]) -> list[tuple[str, str, bytes]]:
    """The rows that are also published live, in their order."""
    return [(output.kind, output.id, output.value) for output in outputs if output.kind in OUTPUTS]


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32),
    size=st.integers(5, 60),
    cuts=st.sets(st.integers(0, 150), max_size=12),
)
def test_a_history_says_the_same_however_it_is_cut(seed: int, size: int, cuts: set[int]) -> None:
    """A worker that restarts anywhere, plain steps, and a fold in batches of any size give equal
    outputs, byte by byte and in order, with the digests of snapshots, and equal intervals and
    rolls."""
    events = [*history(seed, size)]
    messages = [*map(line, events)]
    fold_outputs = folded(messages)
    assert (
        worked(messages, cuts) == worked(messages) == replayed(events) == live_outputs(fold_outputs)
    )
    batch_outputs = in_batches(messages, cuts)
    assert live_outputs(batch_outputs) == live_outputs(fold_outputs)
    assert tables_of(batch_outputs) == tables_of(fold_outputs)


@pytest.mark.parametrize("file", SCENARIO_FILES, ids=lambda file: file.stem)
def test_a_scenario_says_the_same(file: Path) -> None:
    """Every scenario, of ZooKeeper, a log, ApiVersions or a migration, with a restart after each
    event."""
    events = scenario(file)
    messages = [*map(line, events)]
    fold_outputs = folded(messages)
    cuts = range(len(messages))
    assert worked(messages, cuts) == replayed(events) == live_outputs(fold_outputs)
    assert tables_of(in_batches(messages, cuts)) == tables_of(fold_outputs)


@pytest.mark.stack
def test_spark_says_what_plain_calls_say(lake: Lake, tmp_path: Path) -> None:
    """Round by round in a stream, all at once in a batch, and rebuilt in a lake without one of the
    tables, as an older featurewatch leaves it: the tables are equal in every column, and hold what
    plain calls yield for generated histories, all scenarios of ZooKeeper, and invalid messages
    (parity)."""
    zookeeper = [
        scenario(file) for file in SCENARIO_FILES if "zoo" in file.stem or "migr" in file.stem
    ]
    assert len(zookeeper) >= 5
    messages = [*lines(range(4)), *in_turn(zookeeper)]
    for _ in into(lake, messages, rounds=(1, 90)):
        fill_tables(lake)
    at_once = Lake(lake.session, str(tmp_path / "at-once"))
    for _ in into(at_once, messages):
        FoldQuery(at_once).rebuild()
    expected = tables_of(folded(messages))
    assert all(expected.values())
    assert differences(gold(lake), expected) == []
    assert differences(gold(at_once), expected) == []
    for table in GOLD:
        if table is not ALERTS:
            assert rows(at_once, table) == rows(lake, table)
    lake.unlock()
    shutil.rmtree(lake.path(UPGRADES))
    again = Lake(lake.session, lake.root)
    FoldQuery(again).writer()
    assert differences(gold(again), expected) == []
    assert outputs(worked(messages)) == {kind: expected[kind] for kind in OUTPUTS}
