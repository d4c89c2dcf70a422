"""Requests by chance of any API, in the JSON form of Kafka's own converters."""

from functools import cache
from random import Random
from typing import Any

from featurewatch.kafka.releases.schemas import MESSAGES, Schema, camel_case, schemas
from featurewatch.stack.java.jars import Cache, default_cache
from scripts.java_source import jar

RELEASE = "3.9.1"
NAMES = ("t", "u", "orders", "ä€", "")
IDS = ("A" * 21 + "Q", "A" * 21 + "g", "AAAAAAAAAAAAAAAAAAAAAA")


@cache
def requests_by_key() -> dict[int, Schema]:
    """The schemas of all requests of the release."""
    found = schemas(
        jar(f"org.apache.kafka:kafka-clients:{RELEASE}", Cache(default_cache())), MESSAGES
    ).values()
    return {schema["apiKey"]: schema for schema in found if schema.get("type") == "request"}


def has_version(versions: str, version: int) -> bool:
    """Whether ``0-4``, ``2+``, ``0`` or ``none`` has a version."""
    if versions == "none":
        return False
    first, _, last = versions.rstrip("+").partition("-")
    newest = 99 if versions.endswith("+") else int(last or first)
    return int(first) <= version <= newest


def random_content(key: int, version: int, chance: Random) -> dict[str, Any]:
    """A request of an API in a version."""
    schema = requests_by_key()[key]
    structs = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", ())}
    return _content(schema["fields"], structs, version, chance)


def _content(
    fields: list[Schema], structs: dict[str, list[Schema]], version: int, chance: Random
) -> dict[str, Any]:
    return {
        camel_case(field["name"]): _value(field, structs, version, chance)
        for field in fields
        if has_version(field["versions"], version) and "tag" not in field
    }


def _value(field: Schema, structs: dict[str, list[Schema]], version: int, chance: Random) -> Any:
    if has_version(field.get("nullableVersions", "none"), version) and chance.random() < 0.3:
        return None
    kind = field["type"]
    element = kind.removeprefix("[]")
    if kind.startswith("[]"):
        count = chance.choice([0, 1, 2, 5])
        item = {**field, "type": element, "nullableVersions": "none"}
        items = [_value(item, structs, version, chance) for _ in range(count)]
        # Kafka's collections of items with a key hold each once.
        return [*{_key_of(field, structs, value): value for value in items}.values()]
    inner = field.get("fields") or structs.get(element)
    if inner is not None:
        return _content(inner, structs, version, chance)
    match element:
        case "bool":
            return chance.random() < 0.5
        case "string":
            return chance.choice(NAMES)
        case "uuid":
            return chance.choice(IDS)
        case "int8":
            return chance.choice([0, 1, 2, 3, 4, 7])
        case _:
            return chance.choice([-1, 0, 1, 2, 3, chance.randrange(1 << 15)])


def _key_of(field: Schema, structs: dict[str, list[Schema]], value: Any) -> Any:
    inner = field.get("fields") or structs.get(field["type"].removeprefix("[]")) or ()
    keys = [camel_case(child["name"]) for child in inner if child.get("mapKey")]
    if not keys:
        return object()
    return tuple(value.get(key) for key in keys)
