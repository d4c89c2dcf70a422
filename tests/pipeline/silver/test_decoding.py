"""Decoded messages: Spark's columns have the values that the live decoder reads."""

import json
import re
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from featurewatch.pipeline.lake.tables import MESSAGES
from featurewatch.pipeline.silver.decoding import decode_message, read_events
from featurewatch.pipeline.silver.event_schema import EVENT
from featurewatch.pipeline.silver.from_records import WANTED
from featurewatch.streams.codec import checks
from featurewatch.streams.codec.event_shapes import KINDS
from featurewatch.streams.codec.events import encode
from featurewatch.streams.events import Event
from featurewatch.streams.topics import API_VERSIONS, INPUTS, METADATA_LOG, ZOOKEEPER, Topic
from tests.pipeline.filling import EPOCH
from tests.simulation import records as r
from tests.simulation.records import MV
from tests.streams import events_strategies as some

TYPES: dict[Any, str] = {
    checks.OFFSET: "bigint",
    checks.OFFSET_OR_NONE: "bigint",
    checks.TIME: "bigint",
    checks.TIME_OR_NONE: "bigint",
    checks.CHECKSUM_OR_NONE: "bigint",
    checks.INT32: "int",
    checks.INT32_OR_NONE: "int",
    checks.a_name: "string",
    checks.a_text: "string",
    checks.a_detail: "string",
    checks.a_flag: "boolean",
}
BY_MAKER = {"one_of": "string", "map_of": "map", "list_of": "array"}
BY_NAME = {"records": "array", "views": "array", "znode": "struct"}


def test_the_columns_are_the_fields_of_events() -> None:
    """Every field of every event of the input topics has a column of its type, and there are no
    others."""
    types: dict[str, str] = {"kind": "string"}
    for topic in INPUTS:
        for shape in KINDS[topic.short_name].values():
            for name, check in shape.checks.items():
                maker = re.match(r"(\w+)\.<locals>", check.__qualname__)
                expected = (
                    TYPES.get(check) or BY_NAME.get(name) or BY_MAKER[maker[1] if maker else ""]
                )
                assert types.setdefault(name, expected) == expected, name
    assert {name: re.split("[<:]", kind)[0] for name, kind in EVENT.items()} == types


def plain(value: Any) -> Any:
    """A value of a row, or of JSON, in one comparable form."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def parsed(row: Any) -> dict[str, Any]:
    """A row's event with its records and inner JSON parsed, so that order does not count."""
    fields: dict[str, Any] = row["event"].asDict(recursive=True)
    if row["records"] is not None:
        fields["records"] = [
            (record["index"], record["offset"], record["type"], json.loads(record["data"]))
            for record in row["records"]
        ]
    for znode in (*(fields.get("znodes") or ()), fields.get("znode")):
        if znode is not None:
            znode["content"] = json.loads(znode["content"])
    return fields


def expected_fields(topic: Topic, event: Event) -> dict[str, Any]:
    """An event as its source encodes it, with only the records that tables hold."""
    fields: dict[str, Any] = json.loads(encode(topic, event).value or b"")
    if "records" in fields:
        fields["records"] = [
            (index, record["offset"], record["type"], record["data"])
            for index, record in enumerate(fields["records"])
            if record["type"] in WANTED
        ]
    return fields


def table(events: Iterable[tuple[Topic, Event]]) -> list[tuple[Any, ...]]:
    """Rows of bronze."""
    rows = []
    for offset, (topic, event) in enumerate(events):
        message = encode(topic, event)
        position = (topic.name(), 0, offset, EPOCH, message.key, message.value, list[Any]())
        rows.append((*position, EPOCH, 1, EPOCH.date()))
    return rows


events = st.one_of(
    st.tuples(st.just(METADATA_LOG), some.log_events),
    st.tuples(st.just(API_VERSIONS), some.api_versions_events),
    st.tuples(st.just(ZOOKEEPER), some.zookeeper_events),
)


@pytest.mark.stack
@settings(max_examples=4, deadline=None, suppress_health_check=[*HealthCheck], derandomize=True)
@given(st.lists(events, min_size=30, max_size=60))
def test_columns_hold_what_the_event_holds(spark: Any, drawn: list[tuple[Topic, Event]]) -> None:
    """Any encoded event comes out with the value of each field and its own id."""
    messages = spark.createDataFrame(table(drawn), MESSAGES.ddl)
    for row in read_events(messages).drop("at", "day").collect():
        topic, event = drawn[row["offset"]]
        assert (row["id"], row["reason"], row["value"]) == (event.id, None, None)
        assert plain(parsed(row)) == plain(expected_fields(topic, event))


def test_what_is_nested_too_deep_to_be_written_is_told() -> None:
    """A record whose data cannot be encoded again is unreadable; its neighbours are not."""
    deep: Any = {}
    for _ in range(300):
        deep = {"d": deep}
    valid = r.level(MV, 19)
    event = r.commit(1, r.record("FEATURE_LEVEL_RECORD", {"name": "x"}), valid)
    text = (encode(METADATA_LOG, event).value or b"").replace(
        b'"name":"x"', b'"name":' + json.dumps(deep).encode()
    )
    decoded = decode_message("metadata-log", event.cluster.encode(), text)
    assert decoded.reason is None
    records = json.loads(decoded.content or b"")["records"]
    assert [(record["index"], record["type"]) for record in records] == [
        (0, "UNREADABLE"),
        (1, "FEATURE_LEVEL_RECORD"),
    ]
    assert records[1]["data"] == valid["data"]
