"""Maintenance: tables need it, and nobody who reads them notices."""

import shutil
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner

from featurewatch.cli.commands.pipeline import pipeline as app
from featurewatch.pipeline.errors import LakeError
from featurewatch.pipeline.gold.query import GoldQuery
from featurewatch.pipeline.gold.tables import EPOCHS, FEATURE_CHANGES
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import MESSAGES
from featurewatch.pipeline.maintain import MaintenanceResult, maintain
from featurewatch.pipeline.run import run_once
from featurewatch.pipeline.silver import tables
from featurewatch.pipeline.silver.query import SilverQuery
from featurewatch.streams.topics import METADATA_LOG
from tests.pipeline.filling import Messages, rows
from tests.simulation import records as r
from tests.simulation.records import MV

pytestmark = pytest.mark.stack

NOW_MS = 4_000_000_000_000
"""A time that is after today's, whenever this runs: no day of it is too old."""


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables that are looked at: each of the others would take its seconds."""
    few = (MESSAGES, tables.LEVELS, tables.QUARANTINE, FEATURE_CHANGES)
    monkeypatch.setattr("featurewatch.pipeline.maintain.TABLES", few)


def make(lake: Lake) -> None:
    """Silver and gold of what bronze has."""
    run_once(lake, [SilverQuery(lake).writer, GoldQuery(lake).writer])


def kept(
    lake: Lake, keep_days: int | None = None, vacuum_h: float = 168
) -> dict[str, MaintenanceResult]:
    """Maintains, by table."""
    return {done.table.name: done for done in maintain(lake, keep_days, vacuum_h)}


def test_files_become_fewer_and_queries_go_on(lake: Lake) -> None:
    """After compaction and vacuum every row is there once, old files are gone, and the queries go
    on behind it as if it had not been."""
    messages = Messages()
    for level in range(1, 4):
        messages.add_events([r.commit(level, r.level(MV, level)), r.following(level)])
        messages.into(lake)
    make(lake)
    before = rows(lake, MESSAGES)
    done = kept(lake, vacuum_h=0)
    assert (done["messages"].files_before, done["messages"].files_after) == (3, 1)
    assert done["messages"].rows_deleted == 0
    assert rows(lake, MESSAGES) == before
    messages.add_events([r.commit(9, r.level(MV, 9))])
    messages.into(lake)
    make(lake)
    assert rows(lake, tables.LEVELS, "level") == [(1,), (2,), (3,), (9,)]
    changes = rows(lake, FEATURE_CHANGES, "revision", "before", "after")
    assert changes == [(1, 0, 1), (2, 1, 2), (3, 2, 3), (4, 3, 9)]


def test_what_is_too_old_is_deleted_and_gold_stays(lake: Lake) -> None:
    """Rows of earlier days go, the newest message of a partition stays, and so does gold; that gold
    cannot be made anew from the rest is said, and not tried."""
    messages = Messages()
    old = [r.commit(1, r.level(MV, 1)), r.following(1), r.commit(2, r.level(MV, 2))]
    messages.add_events(old)
    messages.add(METADATA_LOG, None, b"poison of today", NOW_MS)
    messages.into(lake)
    run_once(lake, [SilverQuery(lake).writer])
    GoldQuery(lake).rebuild()
    gold = rows(lake, FEATURE_CHANGES)
    assert len(gold) == 2
    done = kept(lake, keep_days=30)
    assert done["messages"].rows_deleted == 3
    assert done["levels"].rows_deleted == 2
    assert (done["levels"].files_before, done["levels"].files_after) == (1, 0)
    assert rows(lake, tables.LEVELS) == []
    assert rows(lake, MESSAGES, "offset", "value") == [(3, b"poison of today")]
    assert [day > date(2026, 1, 1) for (day,) in rows(lake, tables.QUARANTINE, "day")] == [True]
    assert rows(lake, FEATURE_CHANGES) == gold
    messages.add_events([r.commit(3, r.level(MV, 3))])
    messages.into(lake)
    run_once(lake, [SilverQuery(lake).writer])
    assert rows(lake, tables.LEVELS, "level") == [(3,)]
    kept(lake, keep_days=30)
    assert rows(lake, MESSAGES, "offset") == [(3,), (4,)]
    with pytest.raises(LakeError, match="no longer has the messages since the beginning"):
        GoldQuery(lake).writer()


def test_a_place_without_tables_is_no_lake(lake: Lake) -> None:
    """A mistyped path: it is said, and nothing is made there."""
    with pytest.raises(LakeError, match=r"^the lake \S+ holds no tables: name another"):
        kept(lake)
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
    """Before Spark is started."""
    lake = str(tmp_path / "lake")
    result = CliRunner().invoke(app, ["maintain", "--lake", lake, option, value])
    assert (result.exit_code, option in result.output) == (2, True)


def test_the_longest_times_are_taken(lake: Lake) -> None:
    """Nothing is too old for them."""
    messages = Messages()
    messages.add_events([r.commit(1, r.level(MV, 1))])
    messages.into(lake)
    assert kept(lake, 36_500, 876_000)["messages"].rows_deleted == 0


def test_gold_that_cannot_be_folded_anew_is_not_lost_unsaid(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    """Where bronze no longer has all, a deleted table is said once, and the others stay."""
    messages = Messages()
    messages.add_events([r.commit(1, r.level(MV, 1)), r.following(1)])
    messages.into(lake)
    run_once(lake, [GoldQuery(lake).writer])
    gold = rows(lake, FEATURE_CHANGES)
    kept(lake, keep_days=30)
    shutil.rmtree(lake.path(EPOCHS))
    for _ in range(2):
        GoldQuery(Lake(lake.session, lake.root)).writer()
    assert caplog.text.count("the lake had no gold/epochs, and bronze no longer has") == 1
    assert lake.exists(EPOCHS)
    assert rows(lake, FEATURE_CHANGES) == gold != []


def test_a_table_of_an_older_release_gets_its_new_columns(lake: Lake) -> None:
    """Until then a run says what to do; after it old rows have nulls there."""
    columns = {name: kind for name, kind in tables.LEVELS.columns.items() if name != "leader_epoch"}
    old = replace(tables.LEVELS, columns=columns)
    made = Lake(lake.session, lake.root)
    made.ensure_table(old)
    with pytest.raises(LakeError, match=r"no column leader_epoch: .* featurewatch pipeline main"):
        lake.ensure_table(tables.LEVELS)
    assert kept(lake)["levels"].columns_added == ("leader_epoch",)
    assert lake.read(tables.LEVELS).schema["leader_epoch"].dataType.simpleString() == "int"
