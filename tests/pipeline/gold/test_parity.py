"""The same events through every engine say the same: the worker, plain calls, batches, streams."""

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from featurewatch.pipeline.fold.messages import FoldOutput
from featurewatch.pipeline.gold.query import GoldQuery
from featurewatch.pipeline.gold.tables import ALERTS, GOLD, UPGRADES
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.streams.events import Event
from featurewatch.streams.types import ClusterId
from tests.pipeline.filling import rows
from tests.pipeline.gold.parity import (
    differences,
    fold_lake,
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
    """The events of a scenario, as of a cluster of its name."""
    play = Scenario()
    play.play(file.read_text())
    return [replace(event, cluster=ClusterId(file.stem)) for event in play.taken]


def plainly(said: Iterable[FoldOutput]) -> list[tuple[str, str, bytes]]:
    """What is also said live, in its order."""
    return [(output.kind, output.id, output.value) for output in said if output.kind in OUTPUTS]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    size=st.integers(5, 60),
    cuts=st.sets(st.integers(0, 150), max_size=12),
)
def test_a_history_says_the_same_however_it_is_cut(seed: int, size: int, cuts: set[int]) -> None:
    """A worker that starts again anywhere, plain steps, and a fold in batches of any size: equal
    byte by byte and in order, snapshots with their digests; and so are intervals and rolls."""
    events = [*history(seed, size)]
    of = [*map(line, events)]
    said = folded(of)
    assert worked(of, cuts) == worked(of) == replayed(events) == plainly(said)
    found = in_batches(of, cuts)
    assert plainly(found) == plainly(said)
    assert tables_of(found) == tables_of(said)


@pytest.mark.parametrize("file", SCENARIO_FILES, ids=lambda file: file.stem)
def test_a_scenario_says_the_same(file: Path) -> None:
    """Each scenario, of ZooKeeper, a log, answers, or a migration, with a cut after each event."""
    events = scenario(file)
    of = [*map(line, events)]
    said = folded(of)
    cuts = range(len(of))
    assert worked(of, cuts) == replayed(events) == plainly(said)
    assert tables_of(in_batches(of, cuts)) == tables_of(said)


@pytest.mark.stack
def test_spark_says_what_plain_calls_say(lake: Lake, tmp_path: Path) -> None:
    """Round by round in a stream, all at once in a batch, and anew in a lake that lacks a table, as
    a featurewatch leaves it that does not know it: the tables are equal in every column, and hold
    what the fold says by itself, of generated histories, of all scenarios of ZooKeeper, and of
    messages that are no events (parity)."""
    zookeeper = [
        scenario(file) for file in SCENARIO_FILES if "zoo" in file.stem or "migr" in file.stem
    ]
    assert len(zookeeper) >= 5
    of = [*lines(range(4)), *in_turn(zookeeper)]
    for _ in into(lake, of, rounds=(1, 90)):
        fold_lake(lake)
    at_once = Lake(lake.session, str(tmp_path / "at-once"))
    for _ in into(at_once, of):
        GoldQuery(at_once).rebuild()
    wanted = tables_of(folded(of))
    assert all(wanted.values())
    assert differences(gold(lake), wanted) == []
    assert differences(gold(at_once), wanted) == []
    for table in GOLD:
        if table is not ALERTS:
            assert rows(at_once, table) == rows(lake, table)
    lake.unlock()
    shutil.rmtree(lake.path(UPGRADES))
    again = Lake(lake.session, lake.root)
    GoldQuery(again).writer()
    assert differences(gold(again), wanted) == []
    assert outputs(worked(of)) == {kind: wanted[kind] for kind in OUTPUTS}
