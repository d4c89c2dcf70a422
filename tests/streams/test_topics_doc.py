"""``topics.md``: its headers and its examples are checked; its tables are generated."""

import re
from pathlib import Path

import orjson
import pytest
from jsonschema_rs import Draft202012Validator

from featurewatch.streams.codec.events import decode, encode
from featurewatch.streams.codec.outputs import TOPICS, Output
from featurewatch.streams.codec.shapes import KINDS
from featurewatch.streams.outputs import Snapshot
from featurewatch.streams.schemas import schema_of
from featurewatch.streams.topics import ALL, METADATA_LOG, STATE
from tests.streams.encoded import DECODERS, value_of

DOC = (Path(__file__).parents[2] / "docs" / "reference" / "topics.md").read_text()

CLASSES: dict[str, type[Output]] = {
    **{topic.short_name: cls for cls, topic in TOPICS.items()},
    STATE.short_name: Snapshot,
}
"""The output on each topic."""


def section(topic) -> str:
    """The part of the document on a topic."""
    return DOC.partition(f"## {topic.name()}\n")[2].partition("\n## ")[0]


def example(topic) -> bytes:
    """The one example value of a topic."""
    blocks = re.findall(r"```json\n(.*?)```", section(topic), re.S)
    assert len(blocks) == 1, f"{topic.name()} has {len(blocks)} examples in topics.md: write one"
    (block,) = blocks
    return orjson.dumps(orjson.loads(block))


@pytest.mark.parametrize("topic", ALL, ids=lambda topic: topic.short_name)
def test_the_example_of_each_topic_is_one(topic):
    """It is what the decoder takes, and it has every field."""
    if topic.short_name in KINDS:
        event = decode(topic, example(topic))
        assert orjson.loads(value_of(topic, event)) == orjson.loads(example(topic))
    else:
        output = DECODERS[CLASSES[topic.short_name]](example(topic))
        assert set(orjson.loads(example(topic))) == set(output.__slots__)


@pytest.mark.parametrize("topic", ALL, ids=lambda topic: topic.short_name)
def test_the_example_of_each_topic_is_valid(topic):
    """It is what the topic's JSON Schema accepts."""
    Draft202012Validator(schema_of(topic)).validate(orjson.loads(example(topic)))


def test_the_tables_are_there():
    """Of the topics, and of the kinds of each topic with several; the generator fills them."""
    listed = re.findall(r"^\| `([\w.-]+)` \| .+? \| .+? \| \w+ \|$", DOC, re.M)
    assert listed == [topic.name() for topic in ALL], "run `make generate`"
    for topic in ALL:
        kinds = KINDS.get(topic.short_name, {})
        first_cells = "".join(re.findall(r"^\|([^|]*)\|", section(topic), re.M))
        named = set(re.findall(r"`([\w-]+)`", first_cells)) - {"kind"}
        assert named == (kinds.keys() if len(kinds) > 1 else set())


def test_the_headers_are_those_of_the_example():
    """The block shows exactly what the example's message has."""
    (block,) = re.findall(r"```text\n(.*?)```", DOC, re.S)
    message = encode(METADATA_LOG, decode(METADATA_LOG, example(METADATA_LOG)))
    assert block == "".join(f"{name}: {value.decode()}\n" for name, value in message.headers)
