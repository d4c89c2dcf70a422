"""Schemas of Kafka Connect in ``examples/connect``, from the JSON Schemas of the topics.

Connect's JsonConverter takes the schema of plain JSON from its setting ``schema.content``, from
Kafka 4.2 on (KIP-1054). Connect has no type for an object of any fields: such fields are left out,
and the converter ignores them in messages.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from featurewatch.streams.fields import INT32_MAX
from featurewatch.streams.schemas import schema_of
from featurewatch.streams.topics import ALERTS, FEATURE_CHANGES, Topic
from scripts.generators import ROOT, Texts

Json = dict[str, Any]

DIRECTORY: Final = ROOT / "examples" / "connect"
TOPICS: Final = (FEATURE_CHANGES, ALERTS)
"""Those whose values are rows of a table."""
_SETTING: Final = re.compile(r"^value\.converter\.schema\.content=.*$", re.MULTILINE)


def connect() -> Texts:
    """Yields the connectors' properties with the current schemas."""
    for topic in TOPICS:
        file = DIRECTORY / f"{topic.short_name}.properties"
        text = orjson.dumps(connect_schema(topic)).decode()
        setting = f"value.converter.schema.content={text}".replace("\\", "\\\\")
        yield file, _SETTING.sub(setting, file.read_text())


def connect_schema(topic: Topic) -> Json:
    """Returns the schema of a topic's values as JsonConverter reads it."""
    schema = schema_of(topic)
    converted = _converted(schema, schema["$defs"])
    assert converted is not None  # noqa: S101 - the values of these topics have fixed fields
    return {**converted, "optional": False, "name": topic.name()}


def _converted(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Json | None:
    """A type of Connect for a JSON Schema (None: Connect has none)."""
    if reference := schema.get("$ref"):
        return _converted(definitions[reference.rpartition("/")[2]], definitions)
    if "enum" in schema or schema.get("type") == "string":
        return {"type": "string"}
    match schema.get("type"):
        case "boolean":
            return {"type": "boolean"}
        case "integer":
            return {
                "type": "int32" if schema.get("maximum", INT32_MAX + 1) <= INT32_MAX else "int64"
            }
    members = _members(schema, definitions)
    if not members:
        return None
    required = set.intersection(*(set(one.get("required", ())) for one in members))
    properties = {name: of for one in members for name, of in one.get("properties", {}).items()}
    fields = [
        {"field": name, **converted, "optional": name not in required}
        for name, of in properties.items()
        if (converted := _converted(of, definitions)) is not None
    ]
    return {"type": "struct", "fields": fields} if fields else None


def _members(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The objects that a value may be."""
    found = []
    for one in schema.get("oneOf", [schema]):
        name = one.get("$ref", "").rpartition("/")[2]
        found.append(definitions[name] if name else one)
    return found if all(one.get("type") == "object" for one in found) else []
