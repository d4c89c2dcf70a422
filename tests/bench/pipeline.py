"""``silver_gold_vs_bare_spark``: rows of bronze a second into all tables of silver and gold.

Bronze holds the commits of eight clusters of a hundred brokers, a hundred records each in the
proportions of ``worker_vs_raw_consumer``, and a heartbeat after each. The baseline is a bare Spark
read of the same rows: the same ``from_json``, and a count by kind. Start-up is left out: both have
run once before, on a small lake.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from pyspark.sql import functions as fn

from cli.spark_jars import spark_jars
from deploy.artifacts import Cache, default_cache
from pipeline.gold import Telling
from pipeline.lake import Lake
from pipeline.reading import of_inputs
from pipeline.registry import MESSAGES
from pipeline.session import spark_session
from pipeline.shapes import EVENT, ddl
from pipeline.silver import Typing
from streams.events import CommitKind, Event, LogCommit, SourceState, SourceStatus
from streams.types import ClusterId
from tests.bench.worker import records
from tests.pipeline.filling import Messages

CLUSTERS: Final = 8
RECORDS: Final = 50_000
"""Of each cluster."""
NODES: Final = 100
IN_A_COMMIT: Final = 100
NOW_MS: Final = 1_750_000_000_000


def history(cluster: ClusterId, total: int) -> Iterator[Event]:
    """The commits of a cluster, and a heartbeat after each."""
    source = records(total, NODES)
    for first in range(0, total, IN_A_COMMIT):
        last, at_ms = first + IN_A_COMMIT - 1, NOW_MS + first
        found = [next(source) for _ in range(IN_A_COMMIT)]
        yield LogCommit(cluster, CommitKind.BATCH, first, last, 1, at_ms, found, {}, at_ms)
        state = (last, 1, last + 1, 1, 1)
        yield SourceStatus(cluster, "kraft", SourceState.FOLLOWING, *state, "", at_ms)


def fill(lake: Lake, clusters: int, total: int) -> int:
    """Bronze with so many records of each cluster; the number of its rows."""
    messages = Messages()
    for number in range(clusters):
        messages.add_events(history(ClusterId(f"bench-cluster-{number}"), total))
        messages.into(lake)
    return lake.read(MESSAGES).count()


def bare(lake: Lake) -> None:
    """What Spark needs at least to look into each message."""
    event = fn.from_json(fn.col("value").cast("string"), ddl(EVENT)).alias("event")
    of_inputs(lake.read(MESSAGES)).select(event).groupBy("event.kind").count().collect()


def silver(lake: Lake) -> None:
    """Every table of silver."""
    Typing(lake).take(of_inputs(lake.read(MESSAGES)))


def gold(lake: Lake) -> None:
    """Every table of gold."""
    Telling(lake).rebuild()


def seconds(work: Callable[[Lake], None], lake: Lake) -> float:
    """How long something takes."""
    began = time.perf_counter()
    work(lake)
    return time.perf_counter() - began


def run() -> Iterator[dict[str, Any]]:
    """The measure, with its parts."""
    with tempfile.TemporaryDirectory(prefix="featurewatch-") as name:
        root = Path(name)
        jars = spark_jars(Cache(default_cache()))
        session = spark_session(root / "spark", "local[2]", jars, {"spark.driver.memory": "3g"})
        try:
            small = Lake(session, str(root / "small"))
            fill(small, 2, 10 * IN_A_COMMIT)
            for work in (bare, silver, gold):
                work(small)
            lake = Lake(session, str(root / "lake"))
            rows = fill(lake, CLUSTERS, RECORDS)
            # Before and after, since the machine may be busier at one time than at another.
            bare_s = seconds(bare, lake)
            silver_s, gold_s = seconds(silver, lake), seconds(gold, lake)
            bare_s = min(bare_s, seconds(bare, lake))
        finally:
            session.stop()
    yield {
        "measure": "silver_gold_vs_bare_spark",
        "value": round(rows / (silver_s + gold_s)),
        "baseline": round(rows / bare_s),
        "ratio": round(bare_s / (silver_s + gold_s), 3),
        "rows": rows,
        "records": CLUSTERS * RECORDS,
        "silver_s": round(silver_s, 2),
        "gold_s": round(gold_s, 2),
        "bare_s": round(bare_s, 2),
    }
