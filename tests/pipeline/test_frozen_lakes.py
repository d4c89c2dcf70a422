"""The lake of each version before this one is read, and continued by its pipeline."""

import json
import shutil
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from featurewatch.pipeline.gold.tables import GOLD
from featurewatch.pipeline.history.moments import parse_moment
from featurewatch.pipeline.history.point_in_time import HistoricalState, state_at
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.reader import LakeReader
from featurewatch.pipeline.lake.tables import MESSAGES
from featurewatch.pipeline.silver.tables import SILVER
from tests.formats import DIRECTORY, bronze_of
from tests.pipeline.filling import rows
from tests.pipeline.gold.parity import differences, fill_tables, gold
from tests.simulation import records as r
from tests.simulation.records import CLUSTER, MV

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAKES = sorted(str(path.relative_to(DIRECTORY)) for path in DIRECTORY.glob("*/lake*.tar.gz"))
NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture(params=LAKES)
def frozen(request: pytest.FixtureRequest) -> Path:
    """The archive of a lake."""
    return DIRECTORY / str(request.param)


@pytest.fixture
def version(frozen: Path) -> Path:
    """The files of the lake's version."""
    return frozen.parent


@pytest.fixture
def root(frozen: Path, tmp_path: Path) -> Path:
    """The lake, at a new place."""
    with tarfile.open(frozen) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "lake"


def expected(version: Path) -> Any:
    """What is known of the cluster."""
    return json.loads((version / "expected.json").read_text())


def newest(root: Path) -> HistoricalState:
    """The newest state in a lake."""
    return state_at(LakeReader(str(root)), CLUSTER, parse_moment("now", NOW), NOW)


def test_history_reads_it(version: Path, root: Path) -> None:
    """Without Spark: levels, revision and nodes."""
    state, known = newest(root), expected(version)
    assert (state.levels, state.revision) == (known["levels"], known["revision"])
    nodes = {f"{cls.role}-{node}" for cls in state.classes for node in cls.nodes}
    assert nodes == {*known["nodes"]}


def continue_it(spark: "SparkSession", version: Path, root: Path) -> tuple[Lake, int]:
    """Adds a change of a level to the lake and fills its tables; returns the level too."""
    messages = bronze_of(version)
    lake = Lake(spark, str(root))
    for _ in range(lake.read(MESSAGES).select("round").distinct().count()):
        messages.forget()
    level = expected(version)["levels"][MV] + 1
    messages.add_events([r.commit(1000, r.level(MV, level))])
    messages.into(lake)
    fill_tables(lake)
    lake.unlock()
    return lake, level


@pytest.mark.stack
def test_the_pipeline_continues_it(
    spark: "SparkSession", version: Path, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It takes over the state of the fold, or folds again what lacks a table of this version, and
    says so: the next change has the next revision."""
    caplog.set_level("INFO", "featurewatch.pipeline")
    is_complete = all((root / table.path).exists() for table in (*SILVER, *GOLD))
    _, level = continue_it(spark, version, root)
    state = newest(root)
    assert (state.levels[MV], state.revision) == (level, expected(version)["revision"] + 1)
    took_over = "took over the fold's state from the checkpoint of an older featurewatch"
    assert caplog.text.count(took_over) == int(is_complete)
    assert caplog.text.count("folded all of bronze again in") == int(not is_complete)


@pytest.mark.stack
@pytest.mark.nightly
def test_it_has_the_rows_that_a_rebuild_has(
    spark: "SparkSession", version: Path, root: Path
) -> None:
    """Without another take-over; and the older checkpoints are removed by the run after it."""
    lake, _ = continue_it(spark, version, root)
    fill_tables(lake)
    lake.unlock()
    assert sorted(path.name for path in (root / "checkpoints").iterdir()) == ["fold"]
    rebuilt = root.parent / "rebuilt"
    shutil.copytree(root / "bronze", rebuilt / "bronze")
    other = Lake(spark, str(rebuilt))
    fill_tables(other)
    other.unlock()
    assert differences(gold(lake), gold(other)) == []
    for table in SILVER:
        assert rows(lake, table) == rows(other, table), table.path
