"""The JSON Schemas of the topics' values.

They follow from the events and outputs (`streams.events`, `streams.outputs`), the types of their
fields (`streams.fields`) and the registry of topics (`streams.topics`). Descriptions are the first
paragraphs of classes and the docstrings below fields.
"""

import ast
import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import StrEnum
from itertools import pairwise
from types import UnionType
from typing import (
    Any,
    Final,
    Literal,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from featurewatch.common.text import MAX_NAME_CHARS
from featurewatch.streams.codec.outputs import TOPICS
from featurewatch.streams.codec.shapes import KINDS
from featurewatch.streams.fields import (
    INT64_BOUNDS,
    Bounds,
    Pattern,
    Published,
    Rule,
    unwrap,
)
from featurewatch.streams.topics import ALL, EPOCHS, STATE, Topic
from featurewatch.streams.types import SupportedRange
from scripts.generators import ROOT, Texts

Schema = dict[str, Any]

SCHEMAS: Final = ROOT / "src/featurewatch/streams/schemas"

_MAX_LINE: Final = 88
_BASE64: Final = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_SIMPLE: Final[Mapping[Any, Schema]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    bytes: {"type": "string", "contentEncoding": "base64", "pattern": _BASE64},
    str | int | float: {"type": ["string", "number"]},
}


def schema_of(topic: Topic) -> Schema:
    """Returns the schema of a topic's values. That of ``state`` refers to that of ``epochs``."""
    schema: Schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": topic.schema_id,
        "title": topic.name(),
        "description": f"{_capitalized(topic.about)}. The message's key is the {topic.key}.",
    }
    if topic == STATE:
        return {**schema, "$ref": EPOCHS.schema_id}
    definitions = _Definitions(topic)
    if topic.short_name in KINDS:
        schema["oneOf"] = [definitions.reference(cls) for cls in _kinds(topic)]
    else:
        classes = [cls for cls, its_topic in TOPICS.items() if its_topic == topic]
        if not classes:
            raise ValueError(
                f"the topic {topic.short_name} has no messages: add an output's class to TOPICS in "
                "streams/codec/outputs.py, or the union of its events to KINDS in "
                "streams/codec/shapes.py"
            )
        (cls,) = classes
        schema.update(definitions.object_of(cls), description=schema["description"])
    return {**schema, "$defs": definitions.by_name} if definitions.by_name else schema


class _Definitions:
    """The definitions that a topic's schema refers to, made as they are needed."""

    def __init__(self, topic: Topic) -> None:
        self.by_name: dict[str, Schema] = {}
        self._topic = topic
        self._kinds = _kinds(topic)

    def reference(self, cls: type, *, closed: bool = False) -> Schema:
        """Returns a reference to the definition of a class."""
        name = re.sub(r"(?<!^)([A-Z])", r"-\1", cls.__name__).lower()
        if name not in self.by_name:
            self.by_name[name] = {}  # keeps the place before those that it refers to
            self.by_name[name] = self.object_of(cls, closed=closed)
        return {"$ref": f"#/$defs/{name}"}

    def object_of(self, cls: type, *, closed: bool = False) -> Schema:
        """Returns the schema of a class's objects; ``closed``: they have no other fields."""
        hints = get_type_hints(cls, include_extras=True)
        if is_dataclass(cls):
            constants = {field.name: field.default for field in fields(cls) if not field.init}
            names = [field.name for field in fields(cls)]
        else:
            constants, names = {}, [*hints]
        documented = _field_docs(cls)
        properties: Schema = {}
        if cls in self._kinds:
            properties["kind"] = {"const": self._kinds[cls][0]}
        for name in names:
            if name in constants:
                properties[name] = {"const": constants[name]}
            elif name == "source" and self._topic.source:
                properties[name] = {"const": self._topic.source}
            else:
                properties[name] = self.value_of(hints[name], documented.get(name))
        if is_typeddict(cls):
            absent = cls.__dict__["__optional_keys__"]
        else:
            absent = {name for name in names if Rule.OPTIONAL in unwrap(hints[name])[1]}
        return {
            "description": _text(cls.__doc__),
            "type": "object",
            "required": [name for name in properties if name not in absent],
            "properties": properties,
            **({"additionalProperties": False} if closed else {}),
        }

    def value_of(
        self, annotation: Any, description: str | None = None, *, closed: bool = False
    ) -> Schema:
        """Returns the schema of the values of a type."""
        base, metadata = unwrap(annotation)
        texts = [item for item in metadata if isinstance(item, str)]
        described = {"description": description or texts[-1]} if description or texts else {}
        published = [item for item in metadata if isinstance(item, Published)]
        if published:
            schema = self.value_of(published[-1].annotation, closed=published[-1].closed)
        else:
            schema = self._plain(base, closed=closed)
            bounds = [item for item in metadata if isinstance(item, Bounds)]
            if base is SupportedRange:
                items = {"type": "integer", **_limits((bounds or [INT64_BOUNDS])[-1])}
                schema = {"type": "array", "items": items, "minItems": 2, "maxItems": 2}
            elif bounds:
                schema = {**schema, **_limits(bounds[-1])}
            for item in metadata:
                if isinstance(item, Pattern):
                    schema = {**schema, "pattern": item.regex}
                elif item is Rule.NAME:
                    schema = {**schema, "minLength": 1}
                elif item is Rule.CLUSTER_NAME:
                    schema = {**schema, "maxLength": MAX_NAME_CHARS}
        return {**described, **schema}

    def _plain(self, base: Any, *, closed: bool) -> Schema:
        origin, arguments = get_origin(base), get_args(base)
        if base is SupportedRange:
            return {}
        if base in _SIMPLE:
            return _SIMPLE[base]
        if origin is Literal:
            return {"enum": [*arguments]}
        if origin is Mapping:
            schema: Schema = {"type": "object"}
            if arguments[1] is not Any:
                schema["propertyNames"] = {"minLength": 1}
                schema["additionalProperties"] = self.value_of(arguments[1])
            return schema
        if origin is tuple:
            return {"type": "array", "items": self.value_of(arguments[0])}
        if origin in (Union, UnionType):
            return self._union(arguments, closed=closed)
        if isinstance(base, type) and issubclass(base, StrEnum):
            return {"enum": [str(member) for member in base]}
        return self.reference(base, closed=closed)

    def _union(self, members: Sequence[Any], *, closed: bool) -> Schema:
        choices = [
            {"type": "null"} if member is type(None) else self.value_of(member, closed=closed)
            for member in members
        ]
        if all("enum" in choice for choice in choices):
            return {"enum": [value for choice in choices for value in choice["enum"]]}
        return {"oneOf": choices}


def _kinds(topic: Topic) -> dict[type, list[str]]:
    """Returns the kinds of each class of a topic's events."""
    kinds: dict[type, list[str]] = {}
    for kind, shape in KINDS.get(topic.short_name, {}).items():
        kinds.setdefault(shape.cls, []).append(kind)
    return kinds


def _limits(bounds: Bounds) -> Schema:
    return {"minimum": bounds.low, "maximum": bounds.high}


def _field_docs(cls: type) -> dict[str, str]:
    """Returns the docstrings below a class's fields, as plain text."""
    definition = cast("ast.ClassDef", ast.parse(inspect.getsource(cls)).body[0])
    docs = {}
    for statement, below in pairwise(definition.body):
        match statement, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                docs[name] = _text(text)
    return docs


def _text(docstring: str | None) -> str:
    """Returns the first paragraph of a docstring as plain text."""
    return " ".join((docstring or "").partition("\n\n")[0].replace("`", "").split())


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def kinds_and_meanings(topic: Topic) -> Iterator[tuple[str, str]]:
    """Yields the kinds of a topic's events as Markdown, those of one class together."""
    for cls, kinds in _kinds(topic).items():
        paragraph = " ".join((cls.__doc__ or "").partition("\n\n")[0].split())
        meaning = paragraph.replace("``", "`").removesuffix(".")
        yield ", ".join(f"`{kind}`" for kind in kinds), f"{meaning[0].lower()}{meaning[1:]}"


def _json(value: Any, indent: int = 0) -> str:
    """Returns a value as JSON, on one line if it fits."""
    line = json.dumps(value)
    if not isinstance(value, dict | list) or indent + len(line) <= _MAX_LINE:
        return line
    inner = indent + 2
    if isinstance(value, dict):
        items = [f"{json.dumps(key)}: {_json(item, inner)}" for key, item in value.items()]
    else:
        items = [_json(item, inner) for item in value]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    separator = ",\n" + " " * inner
    return f"{begin}\n{' ' * inner}{separator.join(items)}\n{' ' * indent}{end}"


def schemas() -> Texts:
    """Yields the schema of each topic's values."""
    for topic in ALL:
        yield SCHEMAS / f"{topic.short_name}.json", _json(schema_of(topic)) + "\n"
