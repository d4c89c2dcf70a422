"""The outputs of one cluster are compared in several tasks, with the report of a single one."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import orjson
import pytest
from pyspark.sql import functions as fn

from featurewatch.pipeline.audit.audit import audit
from featurewatch.pipeline.audit.lake_view import pin_view
from featurewatch.pipeline.audit.live_outputs import lake_rows
from featurewatch.pipeline.audit.report import (
    DIFFERENT,
    EQUAL,
    EXTRA,
    MISSING,
    PENDING,
    REORDERED,
    UNKNOWN,
    AuditReport,
)
from featurewatch.pipeline.gold.tables import AUDIT, EPOCHS, FEATURE_CHANGES
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.streams.codec.outputs import Output
from featurewatch.streams.outputs import Alert, FeatureChange, Snapshot
from featurewatch.streams.topics import ALERTS
from featurewatch.streams.types import FeatureLevel
from tests.pipeline.audit.lakes import START_MS, Topics, history, in_another_order, work
from tests.pipeline.audit.one_task import in_one_task
from tests.pipeline.filling import rows
from tests.pipeline.gold.parity import fill_tables

FAULTY, REORDERED_ONE = 40, 13
"""The seeds of a cluster with a fault of each kind, and of one in another order."""


def with_faults(outputs: list[tuple[Output, int]]) -> Iterator[tuple[Output | None, int]]:
    """What is published instead of some outputs, a fault of each kind; None: it was lost."""
    seen = Counter[type[Output]]()
    for output, at_ms in outputs[:-1]:  # the last one is pending
        kind = type(output)
        seen[kind] += 1
        match output, seen[kind]:
            case (FeatureChange(), 1) | (Snapshot(), 1):
                continue  # missing; the cause of the snapshot is that of its change
            case FeatureChange(), 2:
                yield replace(output, after=FeatureLevel(output.after + 1), epoch=77), at_ms
            case FeatureChange(), 3:
                yield from [(output, at_ms), (output, at_ms + 5)]  # more than once
            case FeatureChange(), 4:
                yield from [(output, at_ms), (replace(output, epoch=77), at_ms)]
            case Snapshot(), 2:
                yield output, at_ms + 10_001  # late
            case Alert(), 2:
                yield from [(output, at_ms), (replace(output, cause="no such"), at_ms)]  # extra
            case Alert(), 3:
                yield None, at_ms
            case _:
                yield output, at_ms


def fill(lake: Lake) -> None:
    """Fills a lake with both clusters and the live outputs of both."""
    topics = Topics()
    published: list[tuple[Output | None, int]] = [
        *work(in_another_order(topics.publish(history(REORDERED_ONE)), REORDERED_ONE))
    ]
    reads = topics.publish(history(FAULTY, steps=60, start_ms=START_MS + 1_000_000))
    published += with_faults([*work(reads)])
    for output, at_ms in sorted(published, key=lambda timed: timed[1]):
        if output is None:
            topics.skip(ALERTS)
        else:
            topics.publish_output(output, at_ms)
    topics.into(lake)
    fill_tables(lake)


def audited(lake: Lake) -> tuple[AuditReport, list[tuple[object, ...]]]:
    """The report of an audit, with all differences, and what it saves."""
    report = audit(lake, limit=1000, save=True, clock_ms=lambda: START_MS)
    return report, rows(lake, AUDIT)


@pytest.mark.stack
@pytest.mark.nightly
def test_several_tasks_report_what_one_reports(lake: Lake) -> None:
    """With a difference of each kind, the report and the saved rows are the same to the byte, and
    no task has all rows of a cluster."""
    fill(lake)
    report, saved = audited(lake)
    view = pin_view(lake)
    assert view is not None
    of_faulty = lake_rows(view.gold).where(f"cluster = 'cluster-{FAULTY}'")
    tasks = of_faulty.groupBy(fn.spark_partition_id().alias("task")).count().collect()
    counts = [row["count"] for row in tasks]
    assert len(counts) > 4
    assert max(counts) < sum(counts) / 2

    with in_one_task(lake):
        in_one, saved_in_one = audited(lake)
    assert orjson.dumps(report.document()) == orjson.dumps(in_one.document())
    assert saved == saved_in_one

    assert all(report.count(verdict) for verdict in (EQUAL, REORDERED, UNKNOWN, PENDING))
    by_table = {table.table: table for table in report.counts}
    changes, snapshots = by_table[FEATURE_CHANGES.name], by_table[EPOCHS.name]
    assert [changes.verdicts[verdict] for verdict in (MISSING, DIFFERENT)] == [1, 2]
    assert changes.duplicates == 1
    assert (snapshots.verdicts[MISSING], snapshots.late) == (1, 1)
    assert report.count(EXTRA) == 1
    assert {difference.cluster for difference in report.differences} == {f"cluster-{FAULTY}"}
