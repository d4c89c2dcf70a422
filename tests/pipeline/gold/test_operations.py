"""Operations in the lake: the steps that the worker publishes, as rows of gold."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain, pairwise
from typing import Any

import orjson
import pytest

from featurewatch.monitor.input_messages import InputMessage
from featurewatch.pipeline.audit.audit import audit
from featurewatch.pipeline.audit.report import BAD, DIFFERENT, EQUAL, EXTRA, MISSING, UNKNOWN
from featurewatch.pipeline.derived.query import FoldQuery
from featurewatch.pipeline.derived.table_pass import TablePass
from featurewatch.pipeline.fold.messages import state_rows
from featurewatch.pipeline.gold.tables import OPERATIONS
from featurewatch.pipeline.history.operations import operations
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.reader import LakeReader
from featurewatch.pipeline.lake.row_blocks import rows_of
from featurewatch.pipeline.run import run_once
from featurewatch.streams.events import Event
from featurewatch.streams.outputs import Operation
from featurewatch.streams.topics import METADATA_LOG
from featurewatch.streams.types import ClusterId
from tests.pipeline.audit.lakes import SourceEvent, Topics, heartbeat, work
from tests.pipeline.filling import rows
from tests.pipeline.gold.parity import line, placed
from tests.simulation import records as r
from tests.simulation.controller_log import LIMITS, ControllerLog


def events_of(seed: int, steps: int) -> list[Event]:
    """The log of a controller that does everything, of a cluster named ``cluster-<seed>``."""
    log = ControllerLog(seed)
    first = log.start()
    events: list[Event] = [first, r.following(first.last_offset, seen_ms=log.now_ms)]
    events += [commit for commit in (log.step() for _ in range(steps)) if commit is not None]
    return [replace(event, cluster=ClusterId(f"cluster-{seed}")) for event in events]


def passed(cluster: str, messages: list[InputMessage], ends: Iterable[int]) -> list[dict[str, Any]]:
    """The rows of operations of a cluster's messages in batches, the state in rows between them."""
    table_pass, blocks, state = TablePass(LIMITS), [], dict[str, bytes]()
    for begin, end in pairwise([0, *ends, len(messages)]):
        table_pass.begin(cluster, state)
        found = [*table_pass.apply(messages[begin:end])]
        ended = table_pass.end()
        assert ended is not None
        state = state_rows(ended)
        found.append([*table_pass.take_blocks()])
        blocks += [block.content for block in chain(*found) if block.path == OPERATIONS.path]
    return rows_of(blocks, OPERATIONS).to_pylist() if blocks else []


@pytest.mark.parametrize("ends", [(), (1, 2, 30, 31)])
def test_each_step_is_a_row_however_the_log_is_cut(ends: tuple[int, ...]) -> None:
    """The rows are what a worker publishes, in its order; without the limit there are no rows."""
    events = events_of(5, 120)
    published = [step for step, _ in worked(source_events(events)) if isinstance(step, Operation)]
    messages = [message for _, message in placed(map(line, events))]
    found = passed("cluster-5", messages, ends)
    assert len(found) > 30
    assert [row["id"] for row in found] == [step.id for step in published]
    assert [row["summary"] for row in found] == [step.summary for step in published]
    plain = TablePass()
    plain.begin("cluster-5", {})
    found_in_plain = [*plain.apply(messages)]
    plain.end()
    found_in_plain.append([*plain.take_blocks()])
    assert OPERATIONS.path not in {block.path for block in chain(*found_in_plain)}


def source_events(events: Iterable[Event]) -> list[SourceEvent]:
    """The events as a source publishes them."""
    return [(event.seen_ms, METADATA_LOG, event) for event in events]


def worked(events: list[SourceEvent], topics: Topics | None = None) -> list[tuple[Any, int]]:
    """The outputs of a worker that follows operations, with their times (ms)."""
    return [*work((topics or Topics()).publish(events), LIMITS)]


@pytest.mark.stack
def test_the_lake_has_what_the_worker_published(lake: Lake) -> None:
    """In rounds, each step once, equal to the live topic. The history shows them without Spark."""
    published = filled(lake)
    expected = sorted(step.id for step, _ in published)
    assert len(expected) > 30
    assert sorted(row[0] for row in rows(lake, OPERATIONS, "id")) == expected

    reader = LakeReader(lake.root)
    shown = operations(reader, "", None, None)
    assert [*map(in_json, shown)] == [
        *map(in_json, sorted((step for step, _ in published), key=_when))
    ]
    middle = datetime.fromtimestamp(shown[10].append_ms / 1000, UTC)
    late = operations(reader, shown[10].cluster, middle, middle)
    assert shown[10] in late
    assert {step.append_ms for step in late} == {shown[10].append_ms}


def filled(lake: Lake) -> list[tuple[Operation, int]]:
    """Fills a lake in rounds; returns the steps that a worker published, but for the faults of the
    third, the fourth and the fifth one, with their times (ms)."""
    topics = Topics()
    last_ms = 0
    published: list[tuple[Operation, int]] = []
    for seed in (5, 6):
        events = source_events(events_of(seed, 40))
        half = len(events) // 2
        reads = [*topics.publish(events[:half])]
        topics.into(lake)
        run_once(lake, [FoldQuery(lake, LIMITS).writer])
        reads += topics.publish(events[half:])
        outputs = [*work(reads, LIMITS)]
        for output, at_ms in outputs:
            last_ms = max(last_ms, at_ms)
            if isinstance(output, Operation):
                published.append((output, at_ms))
            match len(published), output:
                case 3, Operation():
                    continue
                case 4, Operation():
                    topics.publish_output(replace(output, details={"isr": [7]}), at_ms)
                    continue
                case 5, Operation():
                    topics.publish_output(replace(output, id=f"{output.id}0"), at_ms)
            topics.publish_output(output, at_ms)
    topics.publish([heartbeat(last_ms + 60_000)])
    topics.into(lake)
    run_once(lake, [FoldQuery(lake, LIMITS).writer])
    return published


@pytest.mark.stack
@pytest.mark.nightly
def test_the_audit_finds_what_was_not_published(lake: Lake) -> None:
    """A step that is missing, one of another content and one that follows from nothing; a table
    that was deleted is filled again with the same."""
    published = filled(lake)
    report = audit(lake, limits=LIMITS)
    counts = {table.table: table.verdicts for table in report.counts}
    assert {name: counts["operations"][name] for name in (MISSING, DIFFERENT, EXTRA, UNKNOWN)} == {
        MISSING: 1,
        DIFFERENT: 1,
        EXTRA: 1,
        UNKNOWN: 0,
    }
    assert counts["operations"][EQUAL] == len(published) - 2
    assert not any(counts["alerts"][verdict] for verdict in BAD)
    assert [d.fields for d in report.differences if d.verdict == DIFFERENT] == [("details",)]

    again = Lake(lake.session, lake.root)
    stored = rows(lake, OPERATIONS)
    lake.unlock()
    again.files().remove(again.path(OPERATIONS))
    FoldQuery(again, LIMITS).writer()
    assert rows(again, OPERATIONS) == stored


def in_json(step: Operation) -> bytes:
    """A step as the commands print it."""
    return orjson.dumps(step, default=list)


def _when(step: Operation) -> tuple[int, str, int, str]:
    return step.append_ms, step.cluster, step.offset, step.id
