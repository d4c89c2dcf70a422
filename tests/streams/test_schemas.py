"""Code and JSON Schemas say the same."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator, Registry, meta, validator_cls_for

from featurewatch.streams.codec.events import MalformedEventError, decode
from featurewatch.streams.codec.outputs import encode_state
from featurewatch.streams.codec.shapes import KINDS
from featurewatch.streams.outputs import Snapshot
from featurewatch.streams.schemas import described, schema_of
from featurewatch.streams.topics import (
    ALL,
    API_VERSIONS,
    DEAD_LETTERS,
    EPOCHS,
    INPUTS,
    METADATA_LOG,
    RESYNC_REQUESTS,
    STATE,
    ZOOKEEPER,
)
from scripts.generators.schemas import SCHEMAS
from tests.simulation.engine import simulated_outputs
from tests.streams import events_strategies as some
from tests.streams.encoded import value_of

EVENTS = {  # by short name
    METADATA_LOG.short_name: some.log_events,
    API_VERSIONS.short_name: some.api_versions_events,
    ZOOKEEPER.short_name: some.zookeeper_events,
    DEAD_LETTERS.short_name: some.dead_letters,
    RESYNC_REQUESTS.short_name: some.resync_requests,
}
TOPICS = [topic for topic in ALL if topic.short_name in KINDS]
VALIDATORS = {topic.short_name: Draft202012Validator(schema_of(topic)) for topic in TOPICS}


def test_every_schema_belongs_to_a_topic():
    """There is no schema without a topic, and each topic has one."""
    assert described() == {topic.short_name for topic in ALL}


def test_the_file_of_the_state_refers_to_that_of_epochs():
    """As files, with a registry of both, they accept what the complete schema accepts."""
    epochs, state = (
        orjson.loads((SCHEMAS / f"{topic.short_name}.json").read_bytes())
        for topic in (EPOCHS, STATE)
    )
    referring = Draft202012Validator(state, registry=Registry([(epochs["$id"], epochs)]))
    complete = Draft202012Validator(schema_of(STATE))
    snapshots = [output for output in simulated_outputs(range(3)) if isinstance(output, Snapshot)]
    assert snapshots
    for snapshot in snapshots:
        content = orjson.loads(encode_state(snapshot).value or b"")
        for validator in (referring, complete):
            assert validator.is_valid(content)
            assert not validator.is_valid({**content, "classes": None})


def test_each_input_has_kinds():
    """Events and requests have shapes, outputs have none; an unreadable event is kept as one."""
    assert KINDS.keys() == {topic.short_name for topic in (*INPUTS, DEAD_LETTERS, RESYNC_REQUESTS)}


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.short_name)
def test_schemas_are_schemas(topic):
    """Each file is a valid JSON Schema of draft 2020-12, named after its topic."""
    assert validator_cls_for(schema_of(topic)) is Draft202012Validator
    meta.validate(schema_of(topic))
    assert schema_of(topic)["title"] == topic.name()


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.short_name)
@given(data=st.data())
def test_what_is_encoded_is_valid(topic, data):
    """Every event encodes to a document that the schema accepts."""
    content = orjson.loads(value_of(topic, data.draw(EVENTS[topic.short_name])))
    VALIDATORS[topic.short_name].validate(content)


@pytest.mark.fuzz
@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.short_name)
@given(data=st.data())
def test_what_the_schema_refuses_the_decoder_refuses(topic, data):
    """With any field changed to anything, the decoder takes nothing that the schema refuses."""
    content = orjson.loads(value_of(topic, data.draw(EVENTS[topic.short_name])))
    field = data.draw(st.sampled_from(sorted(content)))
    changed = data.draw(some.json_values | st.sampled_from(near_misses(content[field])))
    content[field] = orjson.loads(orjson.dumps(changed))
    try:
        decode(topic, orjson.dumps(content))
    except MalformedEventError:
        return
    VALIDATORS[topic.short_name].validate(content)


def near_misses(value: Any) -> list[Any]:
    """Values that are almost right: such are what checks forget."""
    match value:
        case bool():
            return [int(value), str(value)]
        case int():
            return [-1, -2, 2**15, 2**31, 2**63 - 1, value + 0.5, str(value), True]
        case str():
            return ["", value + "=", [value], None]
        case list():
            return [[*value, 1], [None], value * 2, {}]
        case dict():
            return [{**value, "": 1}, {**value, "x": None}, {**value, "x": [2, 1]}, [], None]
        case _:
            return [None]
