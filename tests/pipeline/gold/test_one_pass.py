"""One query fills silver and gold, and continues lakes whose layers were filled apart."""

import shutil
from pathlib import Path

import pytest

from featurewatch.pipeline.derived.query import FoldQuery
from featurewatch.pipeline.gold.tables import FEATURE_CHANGES
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import EXPIRED, MESSAGES
from featurewatch.pipeline.silver.tables import LEVELS, SOURCE_STATES
from featurewatch.pipeline.spark.checkpoints import FOLD
from featurewatch.pipeline.spark.queries import wait_for_end, with_settings
from tests.pipeline.filling import Messages, rows
from tests.pipeline.gold.parity import (
    differences,
    fill_tables,
    folded,
    gold,
    into,
    lines,
    tables_of,
)
from tests.simulation import records as r
from tests.simulation.records import MV

pytestmark = pytest.mark.stack


@pytest.mark.nightly
def test_both_follow_whatever_happened_to_either(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    """A deleted table of silver, one of gold, and a deleted checkpoint: each row is there once
    afterwards. Without the beginning of bronze, silver has what bronze still has, also if the
    process is killed while it is refilled."""
    caplog.set_level("INFO", "featurewatch.pipeline")
    messages, number = Messages(), 0

    def add() -> None:
        nonlocal number
        number += 1
        messages.add_events([r.commit(number, r.level(MV, number)), r.following(number)])
        messages.into(lake)

    def fill() -> None:
        """Fills the tables as another process would."""
        lake.unlock()
        other = Lake(lake.session, lake.root)
        fill_tables(other)
        other.unlock()

    def check(changes: int) -> None:
        levels = [*range(1, number + 1)]
        assert [level for (level,) in rows(lake, LEVELS, "level")] == levels
        assert len(rows(lake, SOURCE_STATES, "id")) == number
        assert [level for (level,) in rows(lake, FEATURE_CHANGES, "after")] == levels[-changes:]

    add()
    fill()
    add()
    fill()
    check(2)
    assert "folded again" not in caplog.text
    for path in (lake.path(LEVELS), lake.path(FEATURE_CHANGES), lake.checkpoint(FOLD)):
        shutil.rmtree(path)
        add()
        fill()
        check(number)
    assert "the lake lacks rows of silver/levels: all of bronze is folded again" in caplog.text
    expired = f"ALTER TABLE delta.`{lake.path(MESSAGES)}` SET TBLPROPERTIES ('{EXPIRED}' = 'true')"
    lake.session.sql(expired)
    shutil.rmtree(lake.path(LEVELS))
    lake.files().create(lake.checkpoint("refill"))
    Lake(lake.session, lake.root).ensure_table(LEVELS)  # as a process that was killed leaves it
    add()
    fill()
    check(number)
    assert not Path(lake.checkpoint("refill")).exists()
    assert caplog.text.count("bronze no longer has the messages since the beginning") == 1
    shutil.rmtree(lake.path(FEATURE_CHANGES))
    add()
    fill()
    check(1)


def test_a_cluster_comes_whole_however_few_rows_spark_passes_at_once(lake: Lake) -> None:
    """In the first batch of a stream, which has the state to begin with, and in later ones, a
    cluster has many times the rows of an Arrow batch: it is folded in the lake's order."""
    with with_settings(lake.session, {"spark.sql.execution.arrow.maxRecordsPerBatch": "7"}):
        messages = lines(range(2))
        rounds = into(lake, messages, rounds=(40, len(messages) - 30))
        next(rounds)
        query = FoldQuery(lake).writer()
        next(rounds)
        wait_for_end(query.trigger(availableNow=True).start())
        next(rounds)
        fill_tables(lake)
        assert differences(gold(lake), tables_of(folded(messages))) == []
