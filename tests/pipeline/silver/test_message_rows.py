"""Rows of one message: they hold what the live decoder reads, in the types of the tables."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from featurewatch.monitor.input_messages import InputMessage, decode_input
from featurewatch.pipeline.gold.tables import AUDIT, GOLD
from featurewatch.pipeline.lake.row_blocks import RANK, RowBuilder, arrow_schema, rows_of
from featurewatch.pipeline.lake.tables import BRONZE
from featurewatch.pipeline.silver import tables
from featurewatch.pipeline.silver.message_rows import message_rows
from featurewatch.pipeline.silver.record_rows import RECORD_ROWS
from featurewatch.streams.codec.events import MalformedEventError, encode
from featurewatch.streams.events import Event
from featurewatch.streams.topics import API_VERSIONS, METADATA_LOG, ZOOKEEPER, Topic
from tests.simulation import records as r
from tests.simulation.records import CLUSTER, MV
from tests.streams import events_strategies as some

TIME_MS = 86_400_000 * 3 + 5

events = st.one_of(
    st.tuples(st.just(METADATA_LOG), some.log_events),
    st.tuples(st.just(API_VERSIONS), some.api_versions_events),
    st.tuples(st.just(ZOOKEEPER), some.zookeeper_events),
)
LISTED = {"records", "znode", "znodes"}
"""Fields of events that are separate rows, or columns of them."""
RENAMED = {
    ("gap", "reason"): "detail",
    ("status", "offset"): "log_offset",
}
NOT_IN_TABLES = {
    *("kind", "seen_ms", "append_ms", "checksum", "skipped", "first_offset", "last_offset"),
    *("end_offset", "last", "offset_checksum", "name", "addresses"),
}
"""Fields that no table has: times, the parts of an event's id, names of clusters, which a lake
takes from a file, and the configured addresses of a source."""
WITHOUT_ROWS = {"resync", "acknowledgement"}


def rows(topic: Topic, key: bytes | None, value: bytes | None) -> dict[str, list[dict[str, Any]]]:
    """The rows of a message by table, after a way through blocks."""
    message = InputMessage(topic.name(), 2, 7, TIME_MS, key, value)
    builder = RowBuilder(tables.SILVER)
    for table, row in message_rows(message, decode_input(topic, key, value)):
        builder.add(table, row)
    by_path = {table.path: table for table in tables.SILVER}
    return {
        by_path[block.path].name: rows_of([block.content], by_path[block.path])
        .drop_columns([RANK])
        .to_pylist(maps_as_pydicts="strict")
        for block in builder.take()
    }


def plain(value: Any) -> Any:
    """A value of a row, or of JSON, in one comparable form."""
    if isinstance(value, dict):
        if value.keys() == {"min", "max"}:
            return [value["min"], value["max"]]
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


@settings(max_examples=300)
@given(events)
def test_rows_hold_what_the_event_holds(drawn: tuple[Topic, Event]) -> None:
    """Any encoded event comes out with the value of each field, its own id and its place; of its
    records those that a table holds."""
    topic, event = drawn
    message = encode(topic, event)
    fields = json.loads(message.value or b"")
    found = rows(topic, message.key, message.value)
    quarantined = found.pop("quarantine", [])
    listed = [row for of_table in found.values() for row in of_table]
    for row in listed:
        assert (row["cluster"], row["id"]) == (event.cluster, event.id)
        assert (row["topic"], row["partition"], row["offset"]) == (topic.name(), 2, 7)
        at_ms = fields.get("append_ms", fields["seen_ms"])
        at = row["at"]
        assert (at is None) == (at_ms < 0)
        assert at is None or round(at.timestamp() * 1000) == at_ms
        assert round(row["seen_at"].timestamp() * 1000) == fields["seen_ms"]
    places = sorted(row["index"] for row in [*listed, *quarantined])
    if "records" in fields:
        kept = [n for n, one in enumerate(fields["records"]) if one["type"] in RECORD_ROWS]
        assert places == kept
        for row in listed:
            record = fields["records"][row["index"]]
            assert (row["log_offset"], row["leader_epoch"]) == (
                record["offset"],
                fields["leader_epoch"],
            )
    elif "znodes" in fields or "znode" in fields:
        znodes = fields.get("znodes", [fields.get("znode")])
        contents = [znode and znode["content"] for znode in znodes]
        assert [row["content"] and json.loads(row["content"]) for row in listed] == contents
        assert [row["type"] for row in listed] == [one and one["type"] for one in contents]
    elif fields["kind"] not in WITHOUT_ROWS:
        (row,) = listed
        for name, value in fields.items():
            if name not in NOT_IN_TABLES:
                column = RENAMED.get((fields["kind"], name), name)
                assert plain(row[column]) == plain(value), name


@pytest.mark.parametrize("key", [None, b"", b"\xff", b"another"])
@pytest.mark.parametrize("value", [None, b"", b"\xff", b"[]", b'{"kind":"status"}'])
def test_what_the_worker_refuses_is_in_quarantine(key: bytes | None, value: bytes | None) -> None:
    """Whole, with the worker's reason."""
    error = decode_input(METADATA_LOG, key, value)
    assert isinstance(error, MalformedEventError)
    (row,) = rows(METADATA_LOG, key, value)["quarantine"]
    assert (row["index"], row["reason"], row["payload"]) == (-1, str(error), value)
    assert row["cluster"] == ("unknown" if key is None else key.decode(errors="replace"))
    assert str(row["day"]) == "1970-01-04"


def nested(depth: int) -> Any:
    """An object in an object, and so on."""
    deep: Any = {}
    for _ in range(depth):
        deep = {"d": deep}
    return deep


def test_a_record_of_another_type_leaves_its_neighbours() -> None:
    """Wrong types, numbers out of range and deep nesting make one record unreadable."""
    wrong: list[dict[str, Any]] = [
        {"name": "x", "featureLevel": True},
        {"name": "x", "featureLevel": 2**31},
        {"name": "x", "featureLevel": 1.0},
        {"name": None, "featureLevel": 1},
        {"name": nested(20), "featureLevel": 1},
    ]
    records = [r.record("FEATURE_LEVEL_RECORD", data) for data in wrong]
    event = r.commit(1, *records, r.level(MV, 19))
    message = encode(METADATA_LOG, event)
    text = (message.value or b"").replace(
        json.dumps(nested(20), separators=(",", ":")).encode(), json.dumps(nested(300)).encode()
    )
    found = rows(METADATA_LOG, CLUSTER.encode(), text)
    assert [(row["index"], row["level"]) for row in found["levels"]] == [(len(wrong), 19)]
    assert [row["index"] for row in found["quarantine"]] == [*range(len(wrong))]
    assert {row["reason"] for row in found["quarantine"]} == {
        "a FEATURE_LEVEL_RECORD lacks what it must have, or has it with another type"
    }
    assert [row["payload"] is None for row in found["quarantine"]] == [*[False] * 4, True]


def test_fields_of_another_type_are_null() -> None:
    """A registration needs its node only; the rest is null if it is not what Kafka writes."""
    data = {
        "brokerId": 3,
        "brokerEpoch": "x",
        "fenced": 1,
        "incarnationId": 5,
        "features": [{"name": MV, "minSupportedVersion": 1}, {"name": 3}, "x"],
    }
    message = encode(METADATA_LOG, r.commit(1, r.record("REGISTER_BROKER_RECORD", data)))
    (row,) = rows(METADATA_LOG, message.key, message.value)["registrations"]
    assert (row["node_id"], row["role"], row["registered"]) == (3, "broker", True)
    assert (row["node_epoch"], row["fenced"], row["incarnation"]) == (None, None, None)
    assert row["features"] == {MV: {"min": 1, "max": None}}


@pytest.mark.stack
def test_blocks_have_the_types_of_the_tables(spark: Any) -> None:
    """Spark reads the types of every table as the blocks have them."""
    assert spark is not None  # it parses the DDL
    for table in (*BRONZE, *tables.SILVER, *GOLD, AUDIT):
        schema = StructType.fromDDL(table.ddl)
        assert isinstance(schema, StructType)
        expected = to_arrow_schema(schema, timezone="UTC")
        actual = arrow_schema(table)
        assert actual.names == [*expected.names, RANK]
        for field in expected:
            assert _without_names(actual.field(field.name).type) == _without_names(field.type)


def _without_names(type_: pa.DataType) -> str:
    """A type as text, without what Spark adds: names of items, and whether they may be null."""
    text = str(type_).replace(" not null", "")
    return text.replace("element: ", "item: ").replace("key: ", "").replace("value: ", "")
