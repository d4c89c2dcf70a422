"""The fold as Spark's stream calls it: a cluster's messages in any order, its state as one value.

Spark's own tester calls the processor, so that no JVM is needed.
"""

from itertools import groupby
from random import Random
from typing import Any

import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from featurewatch.monitor.input_messages import InputMessage
from featurewatch.pipeline.derived.packed_rows import pack, unpack
from featurewatch.pipeline.derived.spark_fold import STATE, FoldProcessor
from featurewatch.pipeline.derived.table_pass import TablePass
from featurewatch.pipeline.fold.messages import FoldState, state_rows
from featurewatch.pipeline.gold.tables import ALERTS, CAPABILITY_INTERVALS, EPOCHS, FEATURE_CHANGES
from featurewatch.pipeline.lake.row_blocks import rows_of
from featurewatch.pipeline.lake.tables import Table
from featurewatch.pipeline.silver.tables import SILVER
from tests.pipeline.gold.parity import lines, placed

CLUSTER = "cluster-1"
EXACT = (*SILVER, EPOCHS, FEATURE_CHANGES, ALERTS, CAPABILITY_INTERVALS)
"""The tables whose rows do not depend on where a batch ends."""

_ROW = Row("cluster", "round", *InputMessage._fields)
Blocks = list[tuple[str, bytes]]


def messages_of_cluster() -> list[InputMessage]:
    """Its messages, of several topics, among them ones that cannot be read."""
    found = [message for cluster, message in placed(lines(range(3))) if cluster == CLUSTER]
    assert len(found) > 60
    return found


def at_once(messages: list[InputMessage]) -> tuple[Blocks, FoldState]:
    """The blocks and the state of one pass over all messages."""
    work = TablePass()
    work.begin(CLUSTER, {})
    blocks = [block for found in work.apply(messages) for block in found]
    state = work.end()
    assert state is not None
    return [(block.path, block.content) for block in (*blocks, *work.take_blocks())], state


def tables(blocks: Blocks) -> dict[str, list[Any]]:
    """The rows of the tables, in order."""

    def of(table: Table) -> list[Any]:
        contents = [content for path, content in blocks if path == table.path]
        found: list[Any] = rows_of(contents, table).to_pylist()
        return found

    return {table.path: of(table) for table in EXACT}


def streamed(batches: list[list[InputMessage]], start: dict[str, bytes]) -> tuple[Blocks, Any]:
    """The blocks of batches whose messages come in any order, and the state after them."""
    tester, blocks, random = TwsTester(FoldProcessor()), [], Random(7)
    states = [
        _ROW(CLUSTER, *[None] * 5, name.encode(), bytearray(value)) for name, value in start.items()
    ]
    for number, batch in enumerate(batches):
        rows = [_ROW(CLUSTER, number, *message) for message in batch]
        if number == 0:
            rows += states
        random.shuffle(rows)
        outputs = tester.test(CLUSTER, rows)
        assert {row.cluster for row in outputs} <= {""}
        blocks += [(row.kind, row.value) for row in outputs]
    return blocks, tester.peekValueState(STATE, CLUSTER)


@pytest.mark.parametrize("cuts", [(), (1,), (10, 11, 40), tuple(range(3, 60, 3))])
def test_a_batch_is_folded_in_the_lakes_order(cuts: tuple[int, ...]) -> None:
    """However the messages are cut into batches, and in whatever order each comes."""
    messages = messages_of_cluster()
    ends = [*cuts, len(messages)]
    batches = [messages[begin:end] for begin, end in zip([0, *cuts], ends, strict=True)]
    blocks, _ = streamed(batches, {})
    assert tables(blocks) == tables(at_once(messages)[0])


def test_the_first_batch_has_the_state_to_begin_with() -> None:
    """Its rows are among the messages; what was folded already has no second output."""
    messages = messages_of_cluster()
    half = len(messages) // 2
    before, state = at_once(messages[:half])
    start = state_rows(state)
    blocks, _ = streamed([messages[half - 5 :]], start)
    expected = tables(at_once(messages)[0])
    for path, rows in tables(before + blocks).items():
        # Rows of silver of the five messages come twice; the table has one for each key.
        distinct = [row for row, _ in groupby(sorted(rows, key=repr))]
        assert distinct == sorted(expected[path], key=repr)
    outputs = (EPOCHS, FEATURE_CHANGES, ALERTS, CAPABILITY_INTERVALS)
    assert any(tables(blocks)[table.path] for table in outputs)
    for table in outputs:
        assert len(tables(before + blocks)[table.path]) == len(expected[table.path])


def test_the_state_is_one_value() -> None:
    """All rows of the cluster, as the worker has them; no messages leave it as it is."""
    messages = messages_of_cluster()
    _, state = at_once(messages)
    _, stored = streamed([messages], {})
    assert unpack(*stored) == state_rows(state)
    _, kept = streamed([[]], state_rows(state))
    assert unpack(*kept) == state_rows(state)


@pytest.mark.parametrize(
    "rows", [{}, {"a": b""}, {"ä": b"\x00" * 300, "": b"{}"}, {"large": b"{}" * 600_000, "b": b""}]
)
def test_rows_are_packed_into_one_value(rows: dict[str, bytes]) -> None:
    """In order, a large value compressed; one that lacks bytes or has others is refused."""
    packed = pack(rows)
    assert [*unpack(packed).items()] == [*rows.items()]
    assert len(packed) < 100_000
    for wrong in (b"\x02" + packed, b"\x00" + packed[:-1] + b"\x01", b"\x01" + packed):
        with pytest.raises(ValueError, match="packed row"):
            unpack(wrong)
