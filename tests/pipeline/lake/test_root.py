"""Where a lake may be."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from featurewatch.cli.app import app
from featurewatch.pipeline.audit.audit import audit
from featurewatch.pipeline.errors import LakeError
from featurewatch.pipeline.idle import is_up_to_date
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.reader import EPOCHS, LakeReader
from featurewatch.pipeline.lake.root import absolute_root, local_directory
from featurewatch.pipeline.maintain import maintain
from featurewatch.pipeline.run import run_once, stages
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from tests.agents.events import levels
from tests.pipeline.filling import put


def test_only_a_directory_is_of_this_machine() -> None:
    """Spark has the credentials of other stores."""
    assert local_directory("a lake") == Path.cwd() / "a lake"
    assert local_directory("file:///data/lake") == Path("/data/lake")
    assert local_directory("s3a://bucket/lake") is None
    assert local_directory(" ") is None
    assert absolute_root("s3a://bucket/[lake]") == "s3a://bucket/[lake]"


@pytest.mark.parametrize("character", [*"%[]{}\\^|*?`", "\n", "\x7f"])
def test_a_directory_that_can_have_no_tables_is_refused(tmp_path: Path, character: str) -> None:
    """In one line, whoever opens the lake."""
    root = str(tmp_path / f"lake{character}1")
    for refuses in (absolute_root, local_directory, LakeReader):
        with pytest.raises(LakeError, match="no table's path may have") as refusal:
            refuses(root)
        assert "\n" not in str(refusal.value)
    for command in (["pipeline", "audit"], ["pipeline", "maintain"], ["history", "upgrades"]):
        result = CliRunner().invoke(app, [*command, "--lake", root])
        assert isinstance(result.exception, LakeError)


@pytest.mark.stack
@pytest.mark.usefixtures("few_tables")
@pytest.mark.nightly
def test_any_other_directory_holds_a_lake(
    spark: SparkSession, own_bus: Callable[[], BusSettings], tmp_path: Path
) -> None:
    """Whatever has a meaning in URLs, in SQL, in shells or in Java's properties."""
    bus = own_bus()
    ensure_topics(bus)
    put(bus, [levels(10, {"metadata.version": 20})])
    root = str(tmp_path / "é #x;y:'z'&=+,~$(1)!@<>\"")
    lake = Lake(spark, absolute_root(root))
    run_once(lake, stages(lake, bus))
    [*maintain(lake, vacuum_h=0)]
    (epochs,) = (counts for counts in audit(lake).counts if counts.table == "epochs")
    assert sum(epochs.verdicts.values()) == 1
    lake.unlock()
    assert is_up_to_date(Path(root), bus)
    query = "SELECT finalized FROM epochs"
    assert LakeReader(root).query(query, EPOCHS) == [{"finalized": {"metadata.version": 20}}]
