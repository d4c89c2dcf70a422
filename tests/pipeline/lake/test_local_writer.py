"""Spark and this process write the same rows."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from featurewatch.pipeline.errors import LakeError
from featurewatch.pipeline.gold.query import CLOSES, capability_intervals, upgrades
from featurewatch.pipeline.gold.spark_fold import OUTPUT_SCHEMA
from featurewatch.pipeline.gold.tables import CAPABILITY_INTERVALS, UPGRADES
from featurewatch.pipeline.lake.lake import Lake, TableWrite
from featurewatch.pipeline.lake.tables import MESSAGES, Table
from featurewatch.pipeline.silver.tables import FENCING, REGISTRATIONS
from tests.pipeline.filling import EPOCH, rows
from tests.pipeline.gold.fold_outputs import history_row

pytestmark = pytest.mark.stack

DAY = EPOCH.date()
RANGES = {"metadata.version": [1, 25], 'quo"ted': [0, 2**62]}


def frame(lake: Lake, table: Table, *given: dict[str, object]) -> DataFrame:
    """Rows with some columns; the others are null."""
    values = [tuple(row.get(name) for name in table.columns) for row in given]
    return lake.session.createDataFrame(values, table.ddl)


def registrations(lake: Lake, *ids: str, ranges: object = None) -> DataFrame:
    """One row for each id."""
    common = {"index": 0, "day": DAY, "ranges": ranges, "at": EPOCH}
    return frame(lake, REGISTRATIONS, *({"id": id_, **common} for id_ in ids))


def filled(lake: Lake, size: int | None) -> dict[str, list[tuple[object, ...]]]:
    """The tables after writes of all kinds: first rows, duplicates within a write and of existing
    rows, nulls in a key, empty maps and lists, replacements, and no rows."""
    for ids, of in ((("a", "a", "b"), RANGES), (("b", "c"), {}), ((), None)):
        rows_ = registrations(lake, *ids, ranges=of)
        lake.merge_new(REGISTRATIONS, rows_, (str(DAY),), size=size)
    without_id = frame(lake, FENCING, {"id": None, "index": 3, "day": DAY})
    for _ in range(2):
        lake.merge_all([TableWrite(FENCING, without_id, (str(DAY),), distinct=True, size=size)])
    steps = (
        (
            history_row("capability", "a"),
            history_row("capability", "b", until_ms=5),
            history_row("roll", "r", number=1),
        ),
        (
            *(
                history_row("capability", id_, until_ms=end)
                for id_, end in (("a", 7), ("b", 6), ("c", 8))
            ),
            history_row("roll", "r", number=2, state="finalized"),
        ),
    )
    for step in steps:
        outputs = lake.session.createDataFrame([*step], OUTPUT_SCHEMA)
        intervals = capability_intervals(outputs)
        lake.merge_new(CAPABILITY_INTERVALS, intervals, (), True, CLOSES, size=size)
        lake.merge_new(UPGRADES, upgrades(outputs), (), True, "TRUE", size=size)
    headers = [("h", b"\x00"), ("h", None)]
    message = {"topic": "a b/ä", "partition": 0, "offset": 1, "kafka_time": EPOCH, "round": 1}
    full = {**message, "key": b"k", "headers": headers, "ingested_at": EPOCH, "day": DAY}
    lake.append(MESSAGES, frame(lake, MESSAGES, full, {**full, "offset": 2, "headers": []}), size)
    tables = (REGISTRATIONS, FENCING, CAPABILITY_INTERVALS, UPGRADES, MESSAGES)
    return {table.name: sorted(rows(lake, table), key=repr) for table in tables}


def test_both_ways_leave_the_same_rows(lake: Lake, tmp_path: Path) -> None:
    """Either writer can continue after the other."""
    by_spark = filled(lake, size=None)
    assert len(by_spark["registrations"]) == 3
    assert len(by_spark["fencing"]) == 1
    other = Lake(lake.session, str(tmp_path / "other"))
    assert filled(other, size=0) == by_spark
    for lake_, size in ((lake, 0), (other, None)):
        ours = registrations(lake_, "a", "e", "e")
        lake_.merge_new(REGISTRATIONS, ours, (str(DAY),), size=size)
        assert rows(lake_, REGISTRATIONS, "id") == [("a",), ("b",), ("c",), ("e",)]


def test_a_day_that_is_not_asked_for_is_not_looked_through(lake: Lake) -> None:
    """Only files of the days of a write are opened."""
    later = fn.date_add(fn.lit(DAY), 1)
    lake.merge_new(REGISTRATIONS, registrations(lake, "a"), (str(DAY),), size=0)
    first = next(Path(lake.path(REGISTRATIONS)).glob("day=*/*.parquet"))
    first.unlink()
    ours = registrations(lake, "b").withColumn("day", later)
    lake.merge_new(REGISTRATIONS, ours, ("1970-01-02",), size=0)
    with pytest.raises(LakeError, match=r"the table .*silver/registrations cannot be written: "):
        lake.merge_new(REGISTRATIONS, registrations(lake, "c"), (str(DAY),), size=0)


def test_a_table_that_cannot_be_read_is_one_clear_line(lake: Lake) -> None:
    """The error names the table, without a backtrace of Rust."""
    lake.ensure_table(REGISTRATIONS)
    Path(lake.path(REGISTRATIONS), "_delta_log", f"{1:020}.json").write_text("garbage{")
    with pytest.raises(LakeError, match=r"the table .*silver/registrations cannot be read: "):
        lake.newest(REGISTRATIONS)
