"""The lake of each version before this one is read, and continued by its pipeline."""

import json
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from featurewatch.pipeline.history.moments import parse_moment
from featurewatch.pipeline.history.point_in_time import HistoricalState, state_at
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.reader import LakeReader
from tests.formats import DIRECTORY, LAKE, LAKE_BUILT_AT, bronze_of
from tests.pipeline.gold.parity import fill_tables
from tests.simulation import records as r
from tests.simulation.records import CLUSTER, MV

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VERSIONS = sorted(path.name for path in DIRECTORY.iterdir())
NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> Path:
    """The files of a version."""
    return DIRECTORY / str(request.param)


@pytest.fixture
def root(version: Path, tmp_path: Path) -> Path:
    """The lake of a version, at a new place."""
    with tarfile.open(version / LAKE) as archive:
        archive.extractall(tmp_path, filter="data")
    # Spark looks for the schema of its state where it was written.
    for path in (tmp_path / "lake" / "checkpoints").glob("*/state/*/_metadata/*/[!.]*"):
        path.write_text(path.read_text().replace(str(LAKE_BUILT_AT), str(tmp_path / "lake")))
        (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
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


@pytest.mark.stack
def test_the_pipeline_continues_it(spark: "SparkSession", version: Path, root: Path) -> None:
    """It continues from its checkpoints: the next change has the next revision."""
    messages = bronze_of(version)
    messages.forget()
    known = expected(version)
    level = known["levels"][MV] + 1
    messages.add_events([r.commit(1000, r.level(MV, level))])
    lake = Lake(spark, str(root))
    messages.into(lake)
    fill_tables(lake)
    lake.unlock()
    state = newest(root)
    assert (state.levels[MV], state.revision) == (level, known["revision"] + 1)
