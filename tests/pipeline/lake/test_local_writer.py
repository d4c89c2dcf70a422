"""Spark and this process write the same rows."""

from pathlib import Path

import deltalake
import orjson
import pyarrow as pa
import pytest
from delta.tables import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from featurewatch.pipeline.errors import LakeError
from featurewatch.pipeline.fold.messages import FoldOutput
from featurewatch.pipeline.gold.output_rows import TABLES, add_outputs
from featurewatch.pipeline.gold.tables import CAPABILITY_INTERVALS, GOLD, UPGRADES
from featurewatch.pipeline.lake import block_writer, local_writer
from featurewatch.pipeline.lake.block_writer import BLOCK_SCHEMA, BlockTarget, write_blocks
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.row_blocks import RowBuilder
from featurewatch.pipeline.lake.tables import MESSAGES, Table
from featurewatch.pipeline.lake.version_checksum import checksum
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


def registrations(lake: Lake, *ids: str | None, ranges: object = None) -> DataFrame:
    """One row for each id."""
    common = {"index": 0, "day": DAY, "ranges": ranges, "at": EPOCH}
    return frame(lake, REGISTRATIONS, *({"id": id_, **common} for id_ in ids))


def put_outputs(lake: Lake, *outputs: FoldOutput) -> None:
    """Writes rows of gold as blocks; some keys are in several of them."""
    blocks = []
    for output in outputs:
        builder = RowBuilder(GOLD)
        add_outputs(builder, [output])
        blocks += [block.labelled for block in builder.take()]
    targets = [BlockTarget(spec.table, spec.replace_when) for spec in TABLES]
    write_blocks(lake, lake.session.createDataFrame(blocks, BLOCK_SCHEMA), targets)


def filled(lake: Lake, size: int | None) -> dict[str, list[tuple[object, ...]]]:
    """The tables after writes of all kinds: first rows, duplicates within a write and of existing
    rows, nulls in a key, empty maps and lists, replacements, and no rows."""
    added = []
    for ids, of in ((("a", "a", "b"), RANGES), (("b", "c"), {}), ((), None)):
        rows_ = registrations(lake, *ids, ranges=of)
        added.append(lake.merge_new(REGISTRATIONS, rows_, (str(DAY),), size=size))
    assert added in ([2, 1, 0], [None, 1, 0])
    without_id = frame(lake, FENCING, {"id": None, "index": 3, "day": DAY})
    for _ in range(2):
        lake.merge_new(FENCING, without_id, (str(DAY),), distinct=True, size=size)
    steps = (
        (
            history_row("capability", "a"),
            history_row("capability", "b", until_ms=5),
            history_row("capability", "b"),
            history_row("roll", "r", number=1, state="rolled"),
            history_row("roll", "r", number=0),
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
        put_outputs(lake, *step)
    headers = [("h", b"\x00"), ("h", None)]
    message = {"topic": "a b/ä", "partition": 0, "offset": 1, "kafka_time": EPOCH, "round": 1}
    full = {**message, "key": b"k", "headers": headers, "ingested_at": EPOCH, "day": DAY}
    lake.append(MESSAGES, frame(lake, MESSAGES, full, {**full, "offset": 2, "headers": []}), size)
    tables = (REGISTRATIONS, FENCING, CAPABILITY_INTERVALS, UPGRADES, MESSAGES)
    return {table.name: sorted(rows(lake, table), key=repr) for table in tables}


def test_both_ways_leave_the_same_rows(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either writer can continue after the other."""
    with monkeypatch.context() as patch:
        patch.setattr(local_writer, "SMALL_BYTES", -1)
        by_spark = filled(lake, size=None)
    assert len(by_spark["registrations"]) == 3
    assert len(by_spark["capability_intervals"]) == 3
    assert len(by_spark["upgrades"]) == 1
    assert len(by_spark["fencing"]) == 1
    other = Lake(lake.session, str(tmp_path / "other"))
    assert filled(other, size=0) == by_spark
    with monkeypatch.context() as patch:
        # The blocks of a larger batch are not read with their labels.
        patch.setattr(block_writer, "_FIRST_BLOCKS", 0)
        assert filled(Lake(lake.session, str(tmp_path / "large")), size=0) == by_spark
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
        lake.merge_new(REGISTRATIONS, registrations(lake, "a"), (str(DAY),), size=0)


def test_files_without_the_keys_of_a_write_are_not_opened(lake: Lake) -> None:
    """A few keys are looked up by the files' statistics, whatever characters they have; where a
    key has no value, or there are many keys, all files of the days are read."""
    days = (str(DAY),)
    for id_ in ("a", "it's", "m"):
        lake.merge_new(REGISTRATIONS, registrations(lake, id_), days, size=0)
    add_actions = pa.table(deltalake.DeltaTable(lake.path(REGISTRATIONS)).get_add_actions())
    (file,) = (row["path"] for row in add_actions.to_pylist() if row["min"]["id"] == "m")
    whole = Path(lake.path(REGISTRATIONS), file)
    moved = whole.rename(whole.with_suffix(".moved"))
    assert lake.merge_new(REGISTRATIONS, registrations(lake, "a", "it's", "z"), days, size=0) == 1
    many = [f"b{number}" for number in range(local_writer._FEW_VALUES)]
    for others in (("m",), (None,), (*many, "m")):
        with pytest.raises(LakeError, match="cannot be written"):
            lake.merge_new(REGISTRATIONS, registrations(lake, *others), days, size=0)
    moved.rename(whole)
    assert lake.merge_new(REGISTRATIONS, registrations(lake, *many, "m", None), days, size=0) == 501
    assert lake.merge_new(REGISTRATIONS, registrations(lake, None), days, size=0) == 0


def test_a_checksum_of_ours_is_that_of_spark(lake: Lake) -> None:
    """Whoever commits, the next reader finds the schema beside the commit."""
    path = Path(lake.path(MESSAGES))
    message = {"topic": "t", "partition": 0, "kafka_time": EPOCH, "day": DAY}
    for offset in range(3):
        lake.append(MESSAGES, frame(lake, MESSAGES, {**message, "offset": offset}), size=0)
    ours = orjson.loads(path.joinpath("_delta_log", f"{3:020}.crc").read_bytes())
    table = deltalake.DeltaTable(path)
    assert ours == checksum(table)
    assert ours["numFiles"] == 3
    assert ours["tableSizeBytes"] == sum(file.stat().st_size for file in path.rglob("*.parquet"))
    lake.append(MESSAGES, frame(lake, MESSAGES, {**message, "offset": 3}))
    of_spark = orjson.loads(path.joinpath("_delta_log", f"{4:020}.crc").read_bytes())
    table.update_incremental()
    assert table.version() == 4
    computed = checksum(table)
    for found in (of_spark, computed):
        metadata = found["metadata"]
        metadata["schemaString"] = orjson.loads(metadata["schemaString"])
        # Spark leaves out what has no value.
        found["metadata"] = {name: value for name, value in metadata.items() if value is not None}
    assert {name: of_spark[name] for name in computed} == computed


def test_readers_do_without_a_damaged_checksum(lake: Lake) -> None:
    """Of Spark and of this process, which then write the next one."""
    path = Path(lake.path(MESSAGES))
    message = {"topic": "t", "partition": 0, "kafka_time": EPOCH, "day": DAY}
    for offset, size in enumerate((0, 0, None, None, 0)):
        lake.append(MESSAGES, frame(lake, MESSAGES, {**message, "offset": offset}), size)
        newest = path / "_delta_log" / f"{offset + 1:020}.crc"
        assert orjson.loads(newest.read_bytes())["numFiles"] == offset + 1
        newest.write_text('{"numFiles":')
    assert sorted(rows(lake, MESSAGES, "offset")) == [(offset,) for offset in range(5)]


def test_a_table_that_cannot_be_read_is_one_clear_line(lake: Lake) -> None:
    """The error names the table, without a backtrace of Rust."""
    lake.ensure_table(REGISTRATIONS)
    Path(lake.path(REGISTRATIONS), "_delta_log", f"{1:020}.json").write_text("garbage{")
    with pytest.raises(LakeError, match=r"the table .*silver/registrations cannot be read: "):
        lake.newest(REGISTRATIONS)


@pytest.mark.nightly
def test_a_version_is_read_without_the_log_of_delta(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are Delta's, whatever is written later; the values by which a table is partitioned
    are in the log alone."""
    filled(lake, size=0)
    newest = lake.newest(UPGRADES).version
    put_outputs(lake, history_row("roll", "later", number=0))
    for version in (0, 1, newest, newest + 1):
        plain = lake.read_version(UPGRADES, version)
        assert "delta" not in plain._jdf.queryExecution().toString()
        with monkeypatch.context() as patch:
            patch.setattr(local_writer, "_FEW_FILES", -1)
            by_delta = lake.read_version(UPGRADES, version)
        assert "delta" in by_delta._jdf.queryExecution().toString()
        assert plain.columns == by_delta.columns
        found = sorted(map(repr, plain.collect()))
        assert found == sorted(map(repr, by_delta.collect()))
        assert len(found) == (version > 0) + (version > newest)
    (topic,) = {row["topic"] for row in lake.read_version(MESSAGES, 1).collect()}
    assert topic == "a b/ä"


def test_rows_that_were_deleted_in_a_file_stay_deleted(lake: Lake) -> None:
    """Somebody may turn deletion vectors on; the files of such a table have other rows."""
    put_outputs(lake, *(history_row("roll", name, number=0) for name in "ab"))
    table = f"delta.`{lake.path(UPGRADES)}`"
    properties = "('delta.enableDeletionVectors' = 'true')"
    lake.session.sql(f"ALTER TABLE {table} SET TBLPROPERTIES {properties}")
    DeltaTable.forPath(lake.session, lake.path(UPGRADES)).delete("id = 'a'")
    version = lake.newest(UPGRADES).version
    assert local_writer.plain_files(Path(lake.path(UPGRADES)), version) is None
    assert [row["id"] for row in lake.read_version(UPGRADES, version).collect()] == ["b"]
