"""One query fills silver and gold, and each can be made again without the other."""

import shutil
from pathlib import Path

import pytest

from featurewatch.pipeline.gold.tables import FEATURE_CHANGES
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.run import run_once
from featurewatch.pipeline.silver.query import SilverQuery
from featurewatch.pipeline.silver.tables import JOINED, LEVELS, SOURCE_STATES
from tests.pipeline.filling import Messages, rows
from tests.pipeline.gold.parity import fill_tables, fold_gold
from tests.simulation import records as r
from tests.simulation.records import MV

pytestmark = pytest.mark.stack


@pytest.mark.nightly
def test_silver_follows_whatever_happened_to_either(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    """A lake whose two layers were filled apart, a deleted table of silver, gold ahead of silver,
    and a deleted checkpoint: each row is there once afterwards, and one query serves both."""
    caplog.set_level("INFO", "featurewatch.pipeline")
    messages, number = Messages(), 0

    def add() -> None:
        nonlocal number
        number += 1
        messages.add_events([r.commit(number, r.level(MV, number)), r.following(number)])
        messages.into(lake)

    def check() -> None:
        """Fills the tables as another process would."""
        lake.unlock()
        other = Lake(lake.session, lake.root)
        fill_tables(other)
        other.unlock()
        levels = [*range(1, number + 1)]
        assert [level for (level,) in rows(lake, LEVELS, "level")] == levels
        assert len(rows(lake, SOURCE_STATES, "id")) == number
        assert [level for (level,) in rows(lake, FEATURE_CHANGES, "after")] == levels
        assert Path(lake.checkpoint("gold"), JOINED).exists()
        assert not Path(lake.checkpoint("silver")).exists()

    add()
    run_once(lake, [SilverQuery(lake).writer])
    fold_gold(lake)
    assert not Path(lake.checkpoint("gold"), JOINED).exists()
    add()
    check()
    add()
    fold_gold(lake)
    check()
    assert "typed again" not in caplog.text
    shutil.rmtree(lake.path(LEVELS))
    add()
    check()
    assert "the lake has no silver/levels: silver is typed again" in caplog.text
    shutil.rmtree(lake.checkpoint("gold"))
    add()
    check()
