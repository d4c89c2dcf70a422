"""The fields of the messages of the input topics, as Spark types: what a bare read parses.

They follow from the topics' JSON Schemas. One type covers all kinds of events: fields with the same
name have the same type. What has several shapes, or any fields, is left as its JSON.
"""

from typing import Any

from featurewatch.streams.fields import INT32_MAX
from featurewatch.streams.schemas import schema_of
from featurewatch.streams.topics import INPUTS


def event_ddl() -> str:
    """Returns the fields of all events as the DDL that `from_json` takes."""
    types: dict[str, str] = {}
    for topic in INPUTS:
        schema = schema_of(topic)
        for event in schema["oneOf"]:
            for name, type_ in _fields(_resolved(event, schema["$defs"]), schema["$defs"]).items():
                if types.setdefault(name, type_) != type_:
                    raise TypeError(f"{name} is {types[name]} in one event and {type_} in another")
    return ", ".join(f"`{name}` {type_}" for name, type_ in types.items())


def _resolved(schema: Any, definitions: Any) -> Any:
    reference = schema.get("$ref")
    return schema if reference is None else definitions[reference.removeprefix("#/$defs/")]


def _fields(schema: Any, definitions: Any) -> dict[str, str]:
    return {name: _type(value, definitions) for name, value in schema["properties"].items()}


def _type(schema: Any, definitions: Any) -> str:
    schema = _resolved(schema, definitions)
    choices = [choice for choice in schema.get("oneOf", ()) if choice.get("type") != "null"]
    match schema.get("type"):
        case "integer":
            return "int" if schema.get("maximum", INT32_MAX + 1) <= INT32_MAX else "bigint"
        case "array":
            return f"array<{_type(schema['items'], definitions)}>"
        case "object" if "properties" in schema:
            members = _fields(schema, definitions).items()
            return f"struct<{', '.join(f'{name}: {type_}' for name, type_ in members)}>"
        case "object" if "additionalProperties" in schema:
            return f"map<string, {_type(schema['additionalProperties'], definitions)}>"
        case None if len(choices) == 1:
            return _type(choices[0], definitions)
        case "boolean":
            return "boolean"
        case _:
            return "string"
