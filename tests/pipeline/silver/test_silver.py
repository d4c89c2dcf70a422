"""Silver: typed rows, each cause once, and unreadable input in quarantine."""

import shutil
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import EXPIRED, MESSAGES, Table
from featurewatch.pipeline.silver import tables
from featurewatch.pipeline.spark.checkpoints import FOLD
from featurewatch.streams.codec.events import MalformedEventError, decode
from featurewatch.streams.events import ZnodeChange, ZnodeSnapshot
from featurewatch.streams.topics import API_VERSIONS, METADATA_LOG, ZOOKEEPER
from featurewatch.streams.types import NodeId
from featurewatch.streams.znodes import ControllerZnode, UnreadableZnode, Znode
from tests.pipeline.filling import EPOCH, Messages, rows
from tests.pipeline.gold.parity import fill_tables
from tests.simulation import records as r
from tests.simulation.records import CLUSTER, KV, MV

pytestmark = pytest.mark.stack

CONTROLLER = Znode("/controller", 7, 8, 0, 9, ControllerZnode(NodeId(3), -1, 500))
UNREADABLE = Znode("/feature", 5, 6, 1, 0, UnreadableZnode("no JSON"))


def fill_again(lake: Lake) -> None:
    """Runs it as another process, which has no cached tables."""
    lake.unlock()
    other = Lake(lake.session, lake.root)
    fill_tables(other)
    other.unlock()


def test_each_kind_of_event_has_its_table(lake: Lake) -> None:
    """Records, responses, znodes and states become rows with their values."""
    messages = Messages()
    messages.add_events(
        [
            r.commit(
                14,
                r.leader_change(3, [1, 2, 3]),
                r.register(1, {MV: (1, 21), KV: (0, 1)}, epoch=9),
                r.register_controller(2, {MV: (7, 25)}),
                r.change(1, fenced=-1, shutdown=1),
                r.level(MV, 19),
            ),
            r.chunk(20, 0, r.kraft_version(1), r.unregister(4), r.fence(5), last=True),
            r.commit(21, r.unregister_controller(2)),
            r.gap(30, 39, reset=True),
            r.following(40),
        ]
    )
    messages.add_events(
        [
            r.answer(1, {MV: (1, 21)}, {MV: 19}, 50, 6000, complete=False),
            r.silent(2, 7000, gone=True),
            r.disagreement(MV, 2, 8000),
        ],
        API_VERSIONS,
    )
    messages.add_events(
        [
            ZnodeChange(CLUSTER, "/controller", CONTROLLER, 2, True, 8, 9000),
            ZnodeChange(CLUSTER, "/controller", None, 0, False, 10, 9500),
            ZnodeSnapshot(CLUSTER, "s-1", 0, True, (CONTROLLER, UNREADABLE), "start", 12, 9900),
        ],
        ZOOKEEPER,
    )
    messages.into(lake)
    fill_tables(lake)

    def indexed_rows(table: Any, *columns: str) -> list[tuple[Any, ...]]:
        return [(index, *rest) for index, *rest in rows(lake, table, "index", *columns)]

    assert indexed_rows(
        tables.REGISTRATIONS, "role", "node_id", "registered", "node_epoch", "fenced", "features"
    ) == [
        (0, "controller", 2, False, None, None, None),
        (1, "broker", 1, True, 9, True, {MV: (1, 21), KV: (0, 1)}),
        (1, "broker", 4, False, 1, None, None),
        (2, "controller", 2, True, None, None, {MV: (7, 25)}),
    ]
    assert indexed_rows(tables.FENCING, "node_id", "fenced", "shutting_down", "from_snapshot") == [
        (2, 5, True, None, True),
        (3, 1, False, True, False),
    ]
    assert indexed_rows(tables.LEVELS, "feature", "level", "leader_epoch") == [(4, MV, 19, 1)]
    assert indexed_rows(tables.CONTROL_RECORDS, "type", "leader_id", "voters", "kraft_version") == [
        (0, "KRAFT_VERSION", None, None, 1),
        (0, "LEADER_CHANGE", 3, [1, 2, 3], None),
    ]
    assert indexed_rows(tables.LOG_GAPS, "from_offset", "to_offset", "reset", "detail") == [
        (0, 30, 39, True, "lost")
    ]
    assert indexed_rows(
        tables.ANSWERS, "node_id", "answered", "gone", "supported", "finalized"
    ) == [
        (0, 1, True, False, {MV: (1, 21)}, {MV: 19}),
        (0, 2, False, True, None, None),
    ]
    assert indexed_rows(tables.DISAGREEMENTS, "feature", "views") == [
        (0, MV, [(0, ["broker-0"]), (1, ["broker-1"])])
    ]
    assert indexed_rows(
        tables.SOURCE_STATES, "source", "state", "log_offset", "high_watermark"
    ) == [(0, "kraft", "following", 40, 41)]
    assert indexed_rows(
        tables.ZNODE_CHANGES, "path", "gone", "type", "czxid", "missed", "resync"
    ) == [
        (0, "/controller", False, "controller", 7, 0, "s-1"),
        (0, "/controller", False, "controller", 7, 2, None),
        (0, "/controller", True, None, None, 0, None),
        (1, "/feature", False, "unreadable", 5, 0, "s-1"),
    ]
    at = EPOCH.replace(tzinfo=None) + timedelta(milliseconds=140)
    (row,) = rows(lake, tables.LEVELS, "cluster", "id", "at", "seen_at", "day", "topic", "offset")
    assert row == (CLUSTER, f"{CLUSTER}/kraft/10-14", at, at, at.date(), METADATA_LOG.name(), 0)


def test_a_cause_that_comes_twice_is_one_row(lake: Lake) -> None:
    """A message published again adds no row, in the same batch or a later one, or after the
    checkpoint was lost."""
    messages = Messages()
    event = r.commit(14, r.level(MV, 19), r.level(MV, 20))
    messages.add_events([event, event])
    messages.into(lake)
    fill_tables(lake)
    messages.add_events([event, r.commit(15, r.level(MV, 21))])
    messages.into(lake)
    fill_tables(lake)
    expected = [(19, 0), (20, 1), (21, 0)]
    assert rows(lake, tables.LEVELS, "level", "index") == expected
    shutil.rmtree(lake.checkpoint(FOLD))
    fill_tables(lake)
    assert rows(lake, tables.LEVELS, "level", "index") == expected


@pytest.mark.nightly
def test_tables_that_were_deleted_are_recreated(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    """One deleted table, or all, are rebuilt from bronze without duplicates; a table without rows
    does not count as deleted. If bronze is incomplete, there is one warning."""
    caplog.set_level("INFO", "featurewatch.pipeline")
    messages = Messages()
    messages.add_events([r.commit(14, r.level(MV, 19)), r.following(15)])
    messages.into(lake)
    fill_tables(lake)
    expected = rows(lake, tables.LEVELS), rows(lake, tables.SOURCE_STATES)
    fill_tables(lake)
    assert "folded again" not in caplog.text
    for path in (tables.LEVELS.path, "silver"):
        shutil.rmtree(f"{lake.root}/{path}")
        fill_again(lake)
        assert (rows(lake, tables.LEVELS), rows(lake, tables.SOURCE_STATES)) == expected
        assert all(lake.exists(table) for table in tables.SILVER)
    assert "the lake lacks rows of silver/levels: all of bronze is folded again" in caplog.text
    assert "no longer has" not in caplog.text
    expired = f"ALTER TABLE delta.`{lake.path(MESSAGES)}` SET TBLPROPERTIES ('{EXPIRED}' = 'true')"
    lake.session.sql(expired)
    shutil.rmtree(lake.path(tables.LEVELS))
    for _ in range(2):
        fill_again(lake)
    assert rows(lake, tables.LEVELS) == expected[0]
    assert caplog.text.count("the lake lacks rows of silver/levels, and bronze no longer has") == 1


def test_what_cannot_be_read_is_kept_with_its_reason(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    """Messages that the live decoder rejects, and records and znodes that the source could not
    read, are in quarantine once, with their bytes, and are counted; their neighbours are read."""
    poison = {
        0: (CLUSTER.encode(), b"\xff not JSON"),
        1: (CLUSTER.encode(), None),
        2: (b"another", b'{"kind": "gap", "cluster": "one"}'),
        3: (CLUSTER.encode(), b'{"kind": "from the future"}'),
    }
    messages = Messages()
    for key, value in poison.values():
        messages.add(METADATA_LOG, key, value)
    incomplete = r.record("REGISTER_BROKER_RECORD", {"features": []})
    nameless = r.record("FEATURE_LEVEL_RECORD", {"featureLevel": 3})
    messages.add_events(
        [r.commit(13, r.unreadable("cut off"), incomplete, nameless, r.level(MV, 19))]
    )
    messages.add_events(
        [ZnodeSnapshot(CLUSTER, "s-1", 0, True, (UNREADABLE,), "start", 12, 9900)], ZOOKEEPER
    )
    messages.into(lake)
    fill_tables(lake)
    quarantined = rows(lake, tables.QUARANTINE, "offset", "index", "type", "reason", "payload")
    messages_by_offset = {
        offset: (reason, load) for offset, index, _, reason, load in quarantined if index == -1
    }
    assert messages_by_offset.keys() == poison.keys()
    for offset, (key, value) in poison.items():
        with pytest.raises(MalformedEventError) as error:
            decode(METADATA_LOG, value, key)
        assert messages_by_offset[offset] == (str(error.value), value)
    reason_ = "lacks what it must have, or has it with another type"
    assert [(index, type_, reason) for _, index, type_, reason, _ in quarantined if index >= 0] == [
        (0, "znode /feature", "no JSON"),
        (0, "UNREADABLE", "cut off"),
        (1, "REGISTER_BROKER_RECORD", f"a REGISTER_BROKER_RECORD {reason_}"),
        (2, "FEATURE_LEVEL_RECORD", f"a FEATURE_LEVEL_RECORD {reason_}"),
    ]
    assert rows(lake, tables.LEVELS, "level") == [(19,)]
    assert "8 messages or records could not be read" in caplog.text
    shutil.rmtree(lake.checkpoint(FOLD))
    fill_tables(lake)
    assert len(rows(lake, tables.QUARANTINE)) == 8


def test_a_table_that_fails_is_raised_when_the_others_are_there(lake: Lake) -> None:
    """Tables are written in parallel, and the first failure is raised; a repetition adds the
    missing rows only."""
    cause = {"cluster": CLUSTER, "id": "x", "index": 0, "day": EPOCH.date()}

    def row(table: Table) -> DataFrame:
        values = tuple(cause.get(name) for name in table.columns)
        return lake.session.createDataFrame([values], table.ddl)

    def write(levels: DataFrame) -> None:
        written = [(table, row(table)) for table in (tables.FENCING, tables.SOURCE_STATES)]
        written.append((tables.LEVELS, levels))
        for table, _ in written:
            lake.ensure_table(table)  # in sequence: it updates a cache
        lake.in_parallel([partial(lake.merge_new, *one) for one in written])

    failing = row(tables.LEVELS).withColumn("level", fn.raise_error(fn.lit("boom")).cast("int"))
    with pytest.raises(Exception, match="boom"):
        write(failing)
    write(row(tables.LEVELS))
    for table in (tables.FENCING, tables.SOURCE_STATES, tables.LEVELS):
        assert rows(lake, table, "id") == [("x",)]
