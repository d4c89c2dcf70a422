"""The peer of the pipeline: one plain Python process that fills silver and gold from bronze.

It is what a user would write without Spark: bronze is read by ``deltalake``, the messages are
sorted by cluster, decoded once, folded, and the rows written by ``deltalake``. Decoder, fold and
tables are the product's, so both sides make the same rows. ``python -m tests.bench.single_process
LAKE`` prints a JSON object with the seconds and the number of messages; the tables must exist and
be empty.
"""

import sys
import time
from collections.abc import Iterable
from pathlib import Path

import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from featurewatch.monitor.input_messages import INPUT_TOPICS, InputMessage
from featurewatch.pipeline.derived.spark_fold import in_order
from featurewatch.pipeline.derived.table_pass import TablePass
from featurewatch.pipeline.gold.output_rows import TABLES
from featurewatch.pipeline.lake import local_writer
from featurewatch.pipeline.lake.block_writer import newest_rows
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.row_blocks import RowBlock, rows_of
from featurewatch.pipeline.lake.tables import MESSAGES
from featurewatch.pipeline.silver.tables import SILVER
from featurewatch.tables.garbage import collect_rarely

_COLUMNS = ("topic", "partition", "offset", "kafka_time", "key", "value", "round")


def read_messages(lake: Path) -> pd.DataFrame:
    """The messages of the input topics, with the cluster that each key names."""
    rows = DeltaTable(lake / MESSAGES.path).to_pyarrow_table(columns=[*_COLUMNS])
    short = pc.replace_substring_regex(rows.column("topic"), r".*\.", "")
    rows = rows.filter(pc.is_in(short, pa.array([*INPUT_TOPICS])))
    time_ms = pc.cast(rows.column("kafka_time"), pa.timestamp("ms", "UTC")).cast(pa.int64())
    rows = rows.append_column("time_ms", time_ms)
    rows = rows.append_column("cluster", pc.cast(rows.column("key"), pa.string()))
    return rows.drop_columns(["kafka_time"]).to_pandas()


def fill(lake: Path) -> int:
    """Fills the tables; returns the number of messages."""
    collect_rarely()
    messages = read_messages(lake)
    work, blocks = TablePass(), dict[str, list[bytes]]()

    def keep(found: Iterable[RowBlock]) -> None:
        for block in found:
            blocks.setdefault(block.path, []).append(block.content)

    for cluster, of_cluster in messages.groupby("cluster"):
        work.begin(str(cluster), {})
        for found in work.apply(_ordered(of_cluster)):
            keep(found)
        work.end()
    keep(work.take_blocks())
    replaced = {spec.table.path: spec.replace_when for spec in TABLES}
    for table in (*SILVER, *(spec.table for spec in TABLES)):
        if contents := blocks.get(table.path):
            rows = newest_rows(rows_of(contents, table), table.key)
            same = Lake.same_key(table)
            local_writer.merge_rows(
                lake / table.path, rows, table.key, same, replaced.get(table.path, "")
            )
    return len(messages)


def _ordered(messages: pd.DataFrame) -> list[InputMessage]:
    columns = messages[["round", *InputMessage._fields]]
    rows = columns.itertuples(index=False, name=None)
    return in_order((round_, InputMessage(*fields)) for round_, *fields in rows)


def main(root: str) -> None:
    """Fills a lake and prints how long it took; importing is left out, as Spark's start is."""
    began, began_cpu = time.perf_counter(), time.process_time()
    count = fill(Path(root))
    took = {"wall": time.perf_counter() - began, "cpu": time.process_time() - began_cpu}
    print(orjson.dumps({"messages": count, **took}).decode())


if __name__ == "__main__":
    main(sys.argv[1])
