"""The pass over messages, without Spark: each is decoded once for both layers."""

import gc
from collections import Counter
from itertools import chain
from typing import Any

import pyarrow as pa
import pytest

from featurewatch.monitor import input_messages
from featurewatch.monitor.readiness.state_timers import DEFAULT_LIMITS
from featurewatch.pipeline.derived.packed_rows import pack
from featurewatch.pipeline.derived.spark_fold import _fold_sorted
from featurewatch.pipeline.derived.table_pass import TablePass
from featurewatch.pipeline.errors import LakeError
from featurewatch.pipeline.gold.output_rows import TABLES
from featurewatch.pipeline.gold.tables import FEATURE_CHANGES, GOLD
from featurewatch.pipeline.lake.block_writer import newest_rows
from featurewatch.pipeline.lake.row_blocks import RANK, rows_of
from featurewatch.pipeline.silver.tables import LEVELS, SILVER
from featurewatch.streams.types import ClusterId
from featurewatch.tables.rows import row_key
from tests.pipeline.gold.parity import folded, history, line, placed
from tests.simulation import records as r
from tests.simulation.records import CLUSTER, MV

BY_PATH = {table.path: table for table in (*SILVER, *GOLD)}


def passed(work: TablePass, cluster: str, messages: list[Any]) -> dict[str, list[dict[str, Any]]]:
    """The rows of a cluster's messages by the path of their table, after a way through blocks."""
    work.begin(cluster, {})
    found = [*work.apply(messages)]
    work.end()
    found.append([*work.take_blocks()])
    contents: dict[str, list[bytes]] = {}
    for block in chain(*found):
        contents.setdefault(block.path, []).append(block.content)
    return {
        path: rows_of(blocks, BY_PATH[path]).to_pylist(maps_as_pydicts="strict")
        for path, blocks in contents.items()
    }


def test_gold_has_a_row_for_each_output_of_the_fold() -> None:
    """Of each kind as many as plain calls yield."""
    lines = [*map(line, history(3, 60))]
    expected = Counter(output.kind for output in folded(lines))
    messages = [message for _, message in placed(lines)]
    found = passed(TablePass(), "cluster-3", messages)
    kinds = {spec.table.path: spec.kind for spec in TABLES}
    assert {kinds[path]: len(rows) for path, rows in found.items() if path in kinds} == expected


def test_a_cause_that_came_twice_has_rows_once() -> None:
    """In silver; the fold skips it too."""
    twice = [line(r.commit(14, r.level(MV, 19))), line(r.commit(14, r.level(MV, 19)))]
    found = passed(TablePass(), CLUSTER, [message for _, message in placed(twice)])
    assert [row["level"] for row in found[LEVELS.path]] == [19]
    assert [row["after"] for row in found[FEATURE_CHANGES.path]] == [19]


def test_each_message_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readable or not."""
    counts: Counter[bytes | None] = Counter()
    real = input_messages.decode_input

    def counted(topic: Any, key: bytes | None, value: bytes | None) -> Any:
        counts[value] += 1
        return real(topic, key, value)

    monkeypatch.setattr(input_messages, "decode_input", counted)
    lines = [*map(line, history(4, 30))]
    broken = line(r.following(5))[0], b"cluster-4", b"not an event"
    messages = [message for _, message in placed([*lines, broken])]
    passed(TablePass(), "cluster-4", messages)
    assert counts == Counter(message.value for message in messages)


def test_rows_of_another_version_are_refused_by_name() -> None:
    """The line tells what to do."""
    rows = {row_key(ClusterId("c"), "unheard of"): b"{}"}
    for wrong in (rows, pack(rows), b"no rows"):
        with pytest.raises(LakeError, match=r"the state of c in the rows of another featurewatch"):
            TablePass().begin("c", wrong)


def test_the_collector_of_sparks_python_processes_runs_rarely() -> None:
    """As that of the live worker."""
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    try:
        assert [batch.num_rows for batch in _fold_sorted([], DEFAULT_LIMITS)]
        assert gc.get_threshold()[0] > 7_000
    finally:
        gc.set_threshold(*before)


def test_of_several_rows_that_of_the_highest_rank_counts() -> None:
    """Of equal ranks the first; without a key all rows stay."""
    ids = ["a", "b", "a", "c", "b"]
    rows = pa.table({"id": ids, "n": [1, 2, 3, 4, 5], RANK: [0, 1, 1, 0, 1]})
    assert newest_rows(rows, ["id"]).sort_by("id").to_pydict() == {
        "id": ["a", "b", "c"],
        "n": [3, 2, 4],
    }
    assert newest_rows(rows, []).num_rows == len(ids)
