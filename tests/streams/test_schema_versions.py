"""A field is never removed or retyped without a new version of its topic's schema.

``tests/data/schemas`` has the schemas of the last release. After a release, copy those of
``streams/schemas`` there.
"""

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson
import pytest

from featurewatch.streams.topics import ALL, Topic
from scripts.generators.schemas import schema_of
from tests.paths import ROOT

RELEASED: Final = ROOT / "tests" / "data" / "schemas"

Schema = Mapping[str, Any]

_NAMED: Final = ("type", "const", "contentEncoding", "$ref")
"""Keywords that say what a value is: another value of one is another type."""


def differences(old: Any, new: Any, place: str = "") -> Iterator[str]:
    """What a reader of the old schema may rely on and the new one does not have.

    New fields, kinds and values are allowed, and other texts and bounds.
    """
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return
    for name in _NAMED:
        if old.get(name) != new.get(name) and name in old.keys() | new.keys():
            yield f"{place}: {name} was {old.get(name)} and is {new.get(name)}"
    for name in old.get("required", ()):
        if name not in new.get("required", ()):
            yield f"{place}.{name}: is not required any more"
    yield from _parts(old, new, place)
    if ("enum" in old) != ("enum" in new):
        yield f"{place}: enum was {old.get('enum')} and is {new.get('enum')}"
    elif {type(value) for value in new.get("enum", ())} - {type(v) for v in old.get("enum", ())}:
        yield f"{place}: enum has values of another type"
    for choice in old.get("oneOf", ()):
        if not any(not [*differences(choice, each)] for each in new.get("oneOf", ())):
            yield f"{place}: the choice {choice} was removed"


def _parts(old: Schema, new: Schema, place: str) -> Iterator[str]:
    for group in ("properties", "$defs"):
        for name, schema in old.get(group, {}).items():
            if name not in new.get(group, {}):
                yield f"{place}.{name}: was removed"
            else:
                yield from differences(schema, new[group][name], f"{place}.{name}")
    for name in ("items", "additionalProperties", "propertyNames"):
        if name in old and name not in new:
            yield f"{place}: {name} was removed"
        yield from differences(old.get(name), new.get(name), f"{place}[]")


def released(topic: Topic) -> Schema | None:
    """The schema of the last release; None: the topic is new."""
    file = RELEASED / f"{topic.short_name}.json"
    return orjson.loads(file.read_bytes()) if file.exists() else None


@pytest.mark.parametrize("topic", ALL, ids=lambda topic: topic.short_name)
def test_a_schema_of_the_same_version_has_what_the_released_one_has(topic):
    """Else `Topic.version` must be raised, and readers are told by ``ce_dataschema``."""
    old, new = released(topic), schema_of(topic)
    if old is None or old["$id"] != new["$id"]:
        return
    assert [*differences(old, new)] == []


def test_every_released_topic_is_there():
    """A topic is not removed either; and its version does not go back."""
    assert {file.stem for file in RELEASED.iterdir()} <= {topic.short_name for topic in ALL}
    for topic in ALL:
        old = released(topic)
        version = int((old or {"$id": ""})["$id"].partition(f"{topic.short_name}:")[2] or 1)
        assert topic.version >= version


def _without(schema: Any, *path: str) -> None:
    for name in path[:-1]:
        schema = schema[name]
    del schema[path[-1]]


def _with(value: Any, schema: Any, *path: str) -> None:
    for name in path[:-1]:
        schema = schema[name]
    schema[path[-1]] = value


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda new: _without(new, "properties", "after"), ".after: was removed"),
        (lambda new: _with("string", new, "properties", "after", "type"), "type was integer"),
        (lambda new: new["required"].remove("after"), "is not required any more"),
        (lambda new: _without(new, "properties", "kind", "enum"), "enum was"),
        (lambda new: _with([1], new, "properties", "kind", "enum"), "values of another type"),
        (lambda new: _without(new, "$defs", "log-provenance"), ".log-provenance: was removed"),
        (lambda new: new["properties"]["provenance"]["oneOf"].pop(), "the choice"),
    ],
)
def test_what_breaks_a_reader_is_found(change, found):
    """Each kind of difference, in a schema that has it."""
    topic = next(topic for topic in ALL if topic.short_name == "feature-changes")
    old = schema_of(topic)
    new = copy.deepcopy(old)
    change(new)
    assert found in "\n".join(differences(old, new))
    assert not [*differences(old, old)]


def test_new_fields_kinds_and_bounds_are_allowed():
    """As the documents say of fields."""
    topic = next(topic for topic in ALL if topic.short_name == "feature-changes")
    old = schema_of(topic)
    new = copy.deepcopy(old)
    new["properties"]["more"] = {"type": "string"}
    new["properties"]["kind"]["enum"].append("another")
    new["properties"]["after"]["maximum"] = 7
    new["description"] = "Another text."
    assert [*differences(old, new)] == []
