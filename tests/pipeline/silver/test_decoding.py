"""Messages as columns: what the live decoder reads, Spark's columns say, too."""

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
    checks.INT32: "int",
    checks.INT32_OR_NONE: "int",
    checks.a_name: "string",
    checks.a_text: "string",
    checks.a_flag: "boolean",
}
BY_MAKER = {"one_of": "string", "map_of": "map", "list_of": "array"}
BY_NAME = {"records": "array", "views": "array", "znode": "struct"}


def test_the_columns_are_the_fields_of_events() -> None:
    """Every field of every event of the input topics has a column of its type, and no other."""
    found: dict[str, str] = {"kind": "string"}
    for topic in INPUTS:
        for shape in KINDS[topic.short_name].values():
            for name, check in shape.checks.items():
                maker = re.match(r"(\w+)\.<locals>", check.__qualname__)
                wanted = (
                    TYPES.get(check) or BY_NAME.get(name) or BY_MAKER[maker[1] if maker else ""]
                )
                assert found.setdefault(name, wanted) == wanted, name
    assert {name: re.split("[<:]", kind)[0] for name, kind in EVENT.items()} == found


def plain(value: Any) -> Any:
    """A value of a row, or of JSON, in one form."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def parsed(row: Any) -> dict[str, Any]:
    """A row's event with its records and its inner JSON read, so that order does not count."""
    fields: dict[str, Any] = row["event"].asDict(recursive=True)
    if row["records"] is not None:
        fields["records"] = [
            (one["index"], one["offset"], one["type"], json.loads(one["data"]))
            for one in row["records"]
        ]
    for znode in (*(fields.get("znodes") or ()), fields.get("znode")):
        if znode is not None:
            znode["content"] = json.loads(znode["content"])
    return fields


def wanted(topic: Topic, event: Event) -> dict[str, Any]:
    """An event as its source writes it, with the records that tables hold and their places."""
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
    found = []
    for offset, (topic, event) in enumerate(events):
        message = encode(topic, event)
        row = (topic.name(), 0, offset, EPOCH, message.key, message.value, list[Any]())
        found.append((*row, EPOCH, 1, EPOCH.date()))
    return found


events = st.one_of(
    st.tuples(st.just(METADATA_LOG), some.log_events),
    st.tuples(st.just(API_VERSIONS), some.api_versions_events),
    st.tuples(st.just(ZOOKEEPER), some.zookeeper_events),
)


@pytest.mark.stack
@settings(max_examples=4, deadline=None, suppress_health_check=[*HealthCheck], derandomize=True)
@given(st.lists(events, min_size=30, max_size=60))
def test_columns_hold_what_the_event_holds(spark: Any, drawn: list[tuple[Topic, Event]]) -> None:
    """Any event, encoded as its source does, comes out with each field's value and its own id."""
    messages = spark.createDataFrame(table(drawn), MESSAGES.ddl)
    for row in read_events(messages).drop("at", "day").collect():
        topic, event = drawn[row["offset"]]
        assert (row["id"], row["reason"], row["value"]) == (event.id, None, None)
        assert plain(parsed(row)) == plain(wanted(topic, event))


def test_what_is_nested_too_deep_to_be_written_is_told() -> None:
    """A record whose data cannot be written again is unreadable, and those beside it are not."""
    deep: Any = {}
    for _ in range(300):
        deep = {"d": deep}
    fine = r.level(MV, 19)
    event = r.commit(1, r.record("FEATURE_LEVEL_RECORD", {"name": "x"}), fine)
    text = (encode(METADATA_LOG, event).value or b"").replace(
        b'"name":"x"', b'"name":' + json.dumps(deep).encode()
    )
    found = decode_message("metadata-log", None, text)
    assert found.reason is None
    records = json.loads(found.content or b"")["records"]
    assert [(record["index"], record["type"]) for record in records] == [
        (0, "UNREADABLE"),
        (1, "FEATURE_LEVEL_RECORD"),
    ]
    assert records[1]["data"] == fine["data"]
