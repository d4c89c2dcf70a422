"""Maintenance changes no result of a query."""

import os
import shutil
import threading
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from featurewatch.cli.commands.pipeline import pipeline
from featurewatch.pipeline.derived.query import FoldQuery
from featurewatch.pipeline.errors import LakeError
from featurewatch.pipeline.gold.tables import EPOCHS, FEATURE_CHANGES
from featurewatch.pipeline.idle import is_processed
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import EXPIRED, MESSAGES, Table
from featurewatch.pipeline.maintain import MaintenanceResult, maintain
from featurewatch.pipeline.run import run_on, stages
from featurewatch.pipeline.silver import tables
from featurewatch.pipeline.spark.checkpoints import FOLD
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.events import Event, LogCommit
from featurewatch.streams.topics import METADATA_LOG
from tests.pipeline.filling import Messages, put, rows
from tests.pipeline.gold.parity import fill_tables
from tests.simulation import records as r
from tests.simulation.records import MV
from tests.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.stack, pytest.mark.usefixtures("few_tables")]

NOW_MS = 4_000_000_000_000
"""A time in the future, whenever this runs: no day of it is too old."""


def maintained(
    lake: Lake, keep_days: int | None = None, vacuum_h: float = 168
) -> dict[str, MaintenanceResult]:
    """Maintains the lake; returns the results by table."""
    return {result.table.name: result for result in maintain(lake, keep_days, vacuum_h)}


@pytest.fixture(scope="module")
def origin(
    spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Messages]:
    """A lake with three changes of a level, each from a separate round, and their messages."""
    lake = Lake(spark, str(tmp_path_factory.mktemp("origin") / "lake"))
    messages = Messages()
    for level in range(1, 4):
        messages.add_events([r.commit(level, r.level(MV, level)), r.following(level)])
        messages.into(lake)
    fill_tables(lake)
    lake.unlock()
    return Path(lake.root), messages


@pytest.fixture
def filled(origin: tuple[Path, Messages], lake: Lake) -> tuple[Lake, Messages]:
    """A copy of that lake, and what adds messages to it."""
    root, messages = origin
    shutil.copytree(root, lake.root)
    return lake, deepcopy(messages)


def test_files_become_fewer_and_queries_continue(filled: tuple[Lake, Messages]) -> None:
    """After compaction and vacuum every row is there once, old files are removed, and the queries
    continue."""
    lake, messages = filled
    before = rows(lake, MESSAGES)
    results = maintained(lake, vacuum_h=0)
    assert (results["messages"].files_before, results["messages"].files_after) == (3, 1)
    assert results["messages"].rows_deleted == 0
    assert rows(lake, MESSAGES) == before
    messages.add_events([r.commit(9, r.level(MV, 9))])
    messages.into(lake)
    fill_tables(lake)
    assert rows(lake, tables.LEVELS, "level") == [(1,), (2,), (3,), (9,)]
    changes = rows(lake, FEATURE_CHANGES, "revision", "before", "after")
    assert changes == [(1, 0, 1), (2, 1, 2), (3, 2, 3), (4, 3, 9)]


@pytest.mark.nightly
def test_what_is_too_old_is_deleted_and_gold_stays(lake: Lake) -> None:
    """Rows of earlier days are deleted, except the newest message of a partition; gold is kept.
    Rebuilding gold from the rest is refused."""
    messages = Messages()
    old: list[Event] = [r.commit(1, r.level(MV, 1)), r.following(1), r.commit(2, r.level(MV, 2))]
    messages.add_events(old)
    messages.add(METADATA_LOG, None, b"poison of today", NOW_MS)
    messages.into(lake)
    fill_tables(lake)
    gold = rows(lake, FEATURE_CHANGES)
    assert len(gold) == 2
    results = maintained(lake, keep_days=30)
    assert results["messages"].rows_deleted == 3
    assert results["levels"].rows_deleted == 2
    assert (results["levels"].files_before, results["levels"].files_after) == (1, 0)
    assert rows(lake, tables.LEVELS) == []
    assert rows(lake, MESSAGES, "offset", "value") == [(3, b"poison of today")]
    assert [day > date(2026, 1, 1) for (day,) in rows(lake, tables.QUARANTINE, "day")] == [True]
    assert rows(lake, FEATURE_CHANGES) == gold
    messages.add_events([r.commit(3, r.level(MV, 3))])
    messages.into(lake)
    fill_tables(lake)
    assert rows(lake, tables.LEVELS, "level") == [(3,)]
    maintained(lake, keep_days=30)
    assert rows(lake, MESSAGES, "offset") == [(3,), (4,)]
    shutil.rmtree(lake.checkpoint(FOLD))
    with pytest.raises(LakeError, match="no longer has the messages since the beginning"):
        FoldQuery(lake).writer()


@pytest.mark.nightly
def test_it_runs_beside_a_stream(lake: Lake, own_bus: Callable[[], BusSettings]) -> None:
    """While a stream adds messages, tables are compacted and old rows deleted again and again: the
    stream continues, and each row is there once. The rows of one batch are replaced by both."""
    bus = own_bus()
    ensure_topics(bus)
    now_ms, stop = int(time.time() * 1000), threading.Event()
    failed: list[BaseException] = []

    def follow() -> None:
        try:
            run_on(lake, stages(lake, bus), 0.1, stop)
        except BaseException as error:
            failed.append(error)

    def put_levels(numbers: range, at_ms: int) -> None:
        put(bus, [_seen(r.commit(n, r.level(MV, 1 + n % 9)), at_ms) for n in numbers])

    def changes() -> int:
        return len(rows(reader, FEATURE_CHANGES, "id"))

    reader = Lake(lake.session, lake.root)
    following = threading.Thread(target=follow)
    following.start()
    try:
        put_levels(range(1, 4), now_ms - 40 * 86_400_000)
        assert eventually(lambda: bool(failed) or changes() == 3)
        for begin in range(4, 40, 6):
            for number in range(begin, begin + 6):
                put_levels(range(number, number + 1), now_ms + number)
            results = maintained(reader, keep_days=30)
            wanted = begin + 5
            assert eventually(lambda: bool(failed) or changes() == wanted)  # noqa: B023 - called here
        assert not failed
        assert results["levels"].files_after < 6
    finally:
        stop.set()
        following.join()
    levels = rows(lake, tables.LEVELS, "id")
    assert len(levels) == len({*levels}) == 36
    messages = rows(lake, MESSAGES, "offset")
    assert len(messages) == len({*messages}) in (36, 39)
    ids = rows(lake, FEATURE_CHANGES, "id")
    assert len(ids) == len({*ids}) == 39
    lake.unlock()
    assert is_processed(Path(lake.root))


def _commits(lake: Lake, table: Table) -> list[Path]:
    return sorted(Path(lake.path(table), "_delta_log").glob("0*[0-9].json"))


def _age(files: list[Path]) -> None:
    """Makes files as old as those of another year."""
    for file in files:
        os.utime(file, (1e9, 1e9))


def test_old_commits_are_removed_once_they_were_followed(filled: tuple[Lake, Messages]) -> None:
    """From a table's log, an hour after they were made. Those of bronze stay as long as silver and
    gold lack their messages, and the queries continue."""
    lake, messages = filled
    messages.add_events([r.commit(9, r.level(MV, 9))])
    messages.into(lake)
    for table in (MESSAGES, tables.LEVELS):
        _age(_commits(lake, table))
    maintained(lake)
    assert len(_commits(lake, tables.LEVELS)) <= 2
    assert len(_commits(lake, MESSAGES)) > 4
    fill_tables(lake)
    maintained(lake)
    assert len(_commits(lake, MESSAGES)) > 4  # where a query that starts again looks first
    for number in (10, 11, 12):
        _age(_commits(lake, MESSAGES)[:-1])
        messages.add_events([r.commit(number, r.level(MV, 18 - number))])
        messages.into(lake)
        fill_tables(lake)
        maintained(lake)
    first, *_ = _commits(lake, MESSAGES)
    assert int(first.stem) > 4
    assert rows(lake, tables.LEVELS, "level") == [(1,), (2,), (3,), (6,), (7,), (8,), (9,)]
    assert rows(lake, FEATURE_CHANGES, "revision")[-1] == (7,)


def _seen(commit: LogCommit, at_ms: int) -> LogCommit:
    return replace(commit, append_ms=at_ms, seen_ms=at_ms)


def test_files_that_a_stream_may_still_need_are_kept(filled: tuple[Lake, Messages]) -> None:
    """Beside another process, files younger than a day cannot be removed; only one process
    maintains a lake."""
    lake, _ = filled
    lake.lock()
    other = Lake(lake.session, lake.root)
    with pytest.raises(LakeError, match=r"younger than --vacuum-hours 3: give at least 24, or st"):
        maintained(other, vacuum_h=3)
    other.unlock()
    assert maintained(other, vacuum_h=24)["messages"].files_after == 1


@pytest.mark.nightly
def test_spark_maintains_a_lake_of_a_store(filled: tuple[Lake, Messages]) -> None:
    """With the same results, if the lake is no directory of this machine."""
    filling, messages = filled

    class Store(Lake):
        directory = None

    lake = Store(filling.session, filling.root)
    results = maintained(lake, keep_days=30, vacuum_h=0)
    assert results["messages"].rows_deleted == 5
    assert (results["messages"].files_before, results["messages"].files_after) == (3, 1)
    assert EXPIRED in lake.newest(MESSAGES).properties
    messages.add_events([r.commit(9, r.level(MV, 9))])
    messages.into(filling)
    fill_tables(filling)
    assert rows(lake, tables.LEVELS, "level") == [(9,)]


def test_a_place_without_tables_is_no_lake(lake: Lake) -> None:
    """A mistyped path is an error, and nothing is created there."""
    with pytest.raises(LakeError, match=r"^the lake \S+ holds no tables: name another"):
        maintained(lake)
    assert not Path(lake.root).exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--keep-days", "99999999999"),
        ("--vacuum-hours", "inf"),
        ("--vacuum-hours", "nan"),
        ("--vacuum-hours", "1e300"),
    ],
)
def test_times_without_measure_are_wrong_usage(option: str, value: str, tmp_path: Path) -> None:
    """They are rejected before Spark is started."""
    lake = str(tmp_path / "lake")
    result = CliRunner().invoke(pipeline, ["maintain", "--lake", lake, option, value])
    assert (result.exit_code, option in result.output) == (2, True)


def test_the_longest_times_are_taken(lake: Lake) -> None:
    """The longest accepted times delete nothing."""
    messages = Messages()
    messages.add_events([r.commit(1, r.level(MV, 1))])
    messages.into(lake)
    assert maintained(lake, 36_500, 876_000)["messages"].rows_deleted == 0


@pytest.mark.nightly
def test_gold_that_cannot_be_folded_again_is_reported(
    filled: tuple[Lake, Messages], caplog: pytest.LogCaptureFixture
) -> None:
    """If bronze is incomplete, a deleted table gives one warning, and the others stay."""
    lake, _ = filled
    gold = rows(lake, FEATURE_CHANGES)
    maintained(lake, keep_days=30)
    shutil.rmtree(lake.path(EPOCHS))
    for _ in range(2):
        FoldQuery(Lake(lake.session, lake.root)).writer()
    assert caplog.text.count("the lake lacks rows of gold/epochs, and bronze no longer has") == 1
    assert lake.exists(EPOCHS)
    assert rows(lake, FEATURE_CHANGES) == gold != []


def test_a_table_of_an_older_release_gets_its_new_columns(lake: Lake) -> None:
    """Until then a run says what to do; afterwards old rows have nulls."""
    columns = {name: kind for name, kind in tables.LEVELS.columns.items() if name != "leader_epoch"}
    old = replace(tables.LEVELS, columns=columns)
    older = Lake(lake.session, lake.root)
    older.ensure_table(old)
    with pytest.raises(LakeError, match=r"no column leader_epoch: .* featurewatch pipeline main"):
        lake.ensure_table(tables.LEVELS)
    assert maintained(lake)["levels"].columns_added == ("leader_epoch",)
    assert lake.read(tables.LEVELS).schema["leader_epoch"].dataType.simpleString() == "int"


@pytest.mark.nightly
def test_tables_with_renamed_columns_are_filled_again(filled: tuple[Lake, Messages]) -> None:
    """A run says what to do; maintenance removes them, and the next run fills them again. Without
    the beginning of bronze they stay, with nulls in the new columns."""
    lake, _ = filled
    before = rows(lake, tables.LEVELS), rows(lake, FEATURE_CHANGES)
    lake.unlock()
    _rename(lake, tables.LEVELS)
    _rename(lake, FEATURE_CHANGES)
    renewed = Lake(lake.session, lake.root)
    with pytest.raises(LakeError, match=r"no column feature: .* featurewatch pipeline maintain$"):
        renewed.read(FEATURE_CHANGES)
    results = maintained(renewed)
    assert [name for name, result in results.items() if result.is_removed] == [
        *("levels", "feature_changes"),
    ]
    fill_tables(renewed)
    assert (rows(renewed, tables.LEVELS), rows(renewed, FEATURE_CHANGES)) == before
    renewed.unlock()
    _rename(lake, FEATURE_CHANGES)
    expired = f"ALTER TABLE delta.`{lake.path(MESSAGES)}` SET TBLPROPERTIES ('{EXPIRED}' = 'true')"
    lake.session.sql(expired)
    kept = maintained(Lake(lake.session, lake.root))["feature_changes"]
    assert (kept.is_removed, kept.columns_added) == (False, ("feature",))
    assert rows(Lake(lake.session, lake.root), FEATURE_CHANGES, "feature") == [(None,)] * 3


def _rename(lake: Lake, table: Table) -> None:
    """Gives a table's column ``feature`` the name that it had in an older featurewatch."""
    old = lake.read(table).withColumnRenamed("feature", "name_of_feature")
    old.localCheckpoint().write.format("delta").mode("overwrite").option(
        "overwriteSchema", "true"
    ).save(lake.path(table))
