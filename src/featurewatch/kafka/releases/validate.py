"""Checks the file of a release that is not part of the package: it is input like any other.

Its names become part of generated code (`streams.kraft.records.compiler`), so they are bounded to
what Kafka's names look like. A file that contradicts the releases that are known is refused too.
Pure.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from featurewatch.kafka.releases import ReleaseFile, release_number
from featurewatch.kafka.releases.merge import METADATA_VERSION, Row, production_levels, records
from featurewatch.kafka.releases.shape import (
    Check,
    ShapeError,
    an_object,
    boolean,
    list_of,
    map_of,
    null,
    one_of,
    pair_of,
    text,
    whole,
)

MAX_LEVEL: Final = 32767
MAX_NESTING: Final = 5
"""Deepest nesting of structs in a record; Kafka's records have two levels."""

MAX_FIELDS: Final = 2_000
"""Largest number of fields of all records together; Kafka 4.4 has 200."""

DECODED: Final = (
    *("bool", "int8", "int16", "uint16", "int32", "int64", "float64", "uuid", "string"),
    *("[]string", "[]int32", "[]uuid", "struct", "[]struct"),
)
"""The types of fields that records can be decoded with."""

_level: Final = whole(0, MAX_LEVEL)
_release: Final = text(r"[1-9]\d?\.\d{1,2}", 5)
_feature: Final = text(r"[a-z][a-z0-9.]*\.version", 60)
_method: Final = text(r"[a-zA-Z]\w*", 80)
_level_number: Final = text(r"[1-9]\d{0,4}", 5)
_versions: Final = text(r"\d{1,3}(-\d{1,3})?", 7)
_level_name: Final = text(r"\d{1,2}\.\d{1,2}-IV\d{1,3}", 20)
_ranges: Final = map_of(_feature, pair_of(_level), 50)
_default: Final = one_of(
    null,
    boolean,
    whole(-(1 << 63), (1 << 63) - 1),
    text("[A-Za-z0-9_. -]*", 100),
    list_of(null, 0),
    otherwise="null, true, false, a number, a short text or []",
)


def _field(value: Any, place: str) -> None:
    _FIELD(value, place)


_FIELD: Final[Check] = an_object(
    {"name": text(r"[a-zA-Z][a-zA-Z0-9]*", 60), "type": text(r"(\[\])?[a-z0-9]+", 12)},
    {
        "versions": text(r"\d{1,3}\+", 4),
        "nullable": boolean,
        "tag": whole(0, 1000),
        "default": _default,
        "fields": list_of(_field, 100),
    },
)
_records: Final = list_of(
    an_object(
        {
            "key": whole(0, 127),
            "type": text(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*", 60),
            "versions": _versions,
            "fields": list_of(_field, 100),
        }
    ),
    128,
)
_check: Final = an_object(
    {},
    {
        "cases": whole(0, 10_000_000),
        "mismatches": whole(0, 10_000_000),
        "first_seed": whole(0, 1 << 62),
        "first_mismatch": text(longest=4_000),
        "impossible": text(longest=400),
    },
)
_RECORDS: Final[Mapping[str, Check]] = {
    "release": _release,
    "kafka": text(r"[1-9]\d?\.\d{1,2}\.\d{1,3}", 10),
    "requests": map_of(
        text(r"[A-Za-z]+", 60),
        one_of(_versions, text("none"), otherwise="versions like 0-5, or none"),
        500,
    ),
    "records": _records,
    "controls": _records,
    "sources": map_of(text(r"[a-zA-Z0-9_.-]+\.jar", 100), text("[0-9a-f]{64}", 64), 50),
    "learned": an_object(
        {"from": text(longest=1_000), "at": text(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", 20)},
        {"left_out": list_of(text(longest=300), 200), "check": _check},
    ),
}
_LEVELS: Final[Mapping[str, Check]] = {
    "minimum": whole(1, MAX_LEVEL),
    "bootstrap": whole(1, MAX_LEVEL),
    "supported": _ranges,
    "unstable": _ranges,
    "floors": map_of(_level_number, whole(1, MAX_LEVEL), 1_000),
    "levels": list_of(
        an_object(
            {
                "level": whole(1, MAX_LEVEL),
                "name": _level_name,
                "release": _release,
                "changes_metadata": boolean,
            }
        ),
        1_000,
    ),
    "gates": map_of(
        _method,
        map_of(
            _level_number,
            one_of(null, boolean, _level, otherwise="null, true, false or a version"),
            1_000,
        ),
        300,
    ),
    "features": map_of(
        _feature,
        list_of(
            an_object(
                {
                    "level": _level,
                    "name": text(r"\w+", 60),
                    "bootstrap": _level,
                    "dependencies": map_of(_feature, _level, 20),
                }
            ),
            200,
        ),
        50,
    ),
}
_RECORDS_ALONE: Final = an_object(_RECORDS)
_WHOLE: Final = an_object({**_RECORDS, **_LEVELS})


def check_content(content: Any, known: Sequence[ReleaseFile]) -> None:
    """Checks the content of a file against its shape, itself and the releases that are known.

    A file may have records without levels: those of a release whose classes could not be run.

    Raises:
        ShapeError: it has another shape, or contradicts itself or what is known.
    """
    has_levels = isinstance(content, dict) and any(name in content for name in _LEVELS)
    (_WHOLE if has_levels else _RECORDS_ALONE)(content, "")
    if not content["kafka"].startswith(f"{content['release']}."):
        raise ShapeError(f"kafka is {content['kafka']}, and release is {content['release']}")
    before = [file for file in known if file.number < release_number(content["release"])]
    if not before:
        raise ShapeError(f"release {content['release']} is older than those that are known")
    for kind in ("records", "controls"):
        _check_records(content[kind], kind, records(known, kind))
    if has_levels:
        _check_ranges(content)
        _check_levels(content, production_levels(known))
        _check_order(content, before)


def _check_ranges(content: Mapping[str, Any]) -> None:
    supported, unstable = content["supported"], content["unstable"]
    for kind in ("supported", "unstable"):
        for feature, (low, high) in content[kind].items():
            if low > high:
                raise ShapeError(f"{kind}.{feature} has the range {low}-{high}, which is empty")
    for feature, (low, high) in supported.items():
        widest = unstable.get(feature, (0, 0))
        if not widest[0] <= low <= high <= widest[1]:
            raise ShapeError(f"supported.{feature} is not within unstable.{feature}")
    if METADATA_VERSION not in supported:
        raise ShapeError(f"supported has no {METADATA_VERSION}")
    newest = supported[METADATA_VERSION][1]
    if not content["minimum"] <= content["bootstrap"] <= newest:
        raise ShapeError(f"minimum, bootstrap and the newest level, {newest}, are not in order")
    for level, floor in content["floors"].items():
        if floor > int(level):
            raise ShapeError(f"floors.{level} is above {level}")
    for feature, versions in content["features"].items():
        numbers = [version["level"] for version in versions]
        if not numbers or numbers != sorted(set(numbers)):
            raise ShapeError(f"features.{feature} has no levels, or not in ascending order")


def _check_levels(content: Mapping[str, Any], production: Mapping[int, Row]) -> None:
    low, newest = content["supported"][METADATA_VERSION]
    stated: dict[int, Row] = {}
    names: set[str] = set()
    for entry in content["levels"]:
        if entry["level"] in stated or entry["name"] in names:
            raise ShapeError(f"levels has {entry['level']} or {entry['name']} twice")
        stated[entry["level"]] = entry
        names.add(entry["name"])
    for number, known in production.items():
        own = stated.get(number)
        if own is not None and any(own[key] != known[key] for key in own):
            raise ShapeError(
                f"levels says that {number} is {own['name']}, changing metadata: "
                f"{own['changes_metadata']}; it is {known['name']}, changing metadata: "
                f"{known['changes_metadata']} since Kafka {known['since']}"
            )
    for number in range(low, newest + 1):
        if number not in stated and number not in production:
            raise ShapeError(f"levels has no {number}, which is supported")


def _check_order(content: Mapping[str, Any], before: Sequence[ReleaseFile]) -> None:
    last = before[-1]
    newest = content["supported"][METADATA_VERSION][1]
    known = last.content["supported"][METADATA_VERSION][1]
    if newest < known:
        raise ShapeError(
            f"supported.{METADATA_VERSION} ends at {newest}, and in Kafka {last.release}, which "
            f"is older, at {known}"
        )


def _check_records(rows: Sequence[Row], kind: str, known: Mapping[int, Row]) -> None:
    keys = [row["key"] for row in rows]
    types = [row["type"] for row in rows]
    if len(set(keys)) < len(keys) or len(set(types)) < len(types):
        raise ShapeError(f"{kind} has a key or a type twice")
    key_of = {row["type"]: key for key, row in known.items()}
    for row in rows:
        name, previous = row["type"], known.get(row["key"])
        if previous is not None and previous["type"] != name:
            raise ShapeError(f"{kind}: {row['key']} is {previous['type']}, and not {name}")
        if key_of.get(name, row["key"]) != row["key"]:
            raise ShapeError(f"{kind}: {name} has the key {key_of[name]}, and not {row['key']}")
        if first := undecodable(row, previous):
            raise ShapeError(f"{kind}: {name}.{first}")
    if sum(_count(row["fields"]) for row in rows) > MAX_FIELDS:
        raise ShapeError(f"{kind} has more than {MAX_FIELDS} fields")


def undecodable(row: Row, known: Row | None) -> str:
    """The reason why a record cannot be decoded, as the end of a sentence; empty if it can.

    Versions that are ``known`` must be laid out as they were, under the same names. Fields of bytes
    are not decoded: known records that have them hold secrets, and a type that is not known is
    counted without a look at its fields.
    """
    if known is not None:
        version = _newest(known)
        if _newest(row) < version:
            return f"versions end at {_newest(row)}, and at {version} before"
        if _laid_out(row["fields"], version) != _laid_out(known["fields"], version):
            return f"fields are not those of version {version} before"
    rows = row["fields"] if known is None else known["fields"]
    return _undecodable(row["fields"], set(_names_of_bytes(rows)), 1)


def _newest(row: Row) -> int:
    return int(row["versions"].rpartition("-")[2])


def _laid_out(fields: Iterable[Row], newest: int) -> list[Any]:
    """The fields up to a version, in the order of their bytes."""
    rows = [field for field in fields if _since(field) <= newest]
    return [
        [
            *(field["name"], field["type"], _since(field), field.get("tag")),
            _laid_out(field.get("fields", ()), newest),
        ]
        for field in sorted(rows, key=lambda field: "tag" in field)
    ]


def _since(field: Row) -> int:
    return int(field.get("versions", "0+").rstrip("+"))


def _undecodable(fields: Iterable[Row], allowed: set[str], depth: int) -> str:
    names: set[str] = set()
    tags: set[int] = set()
    for field in fields:
        name, kind, tag = field["name"], field["type"], field.get("tag")
        if depth > MAX_NESTING:
            return f"{name} is nested too deep"
        if name in names or (tag is not None and tag in tags):
            return f"{name} has the name or the tag of another field"
        names.add(name)
        tags |= {tag} if tag is not None else set()
        if kind not in DECODED and not (kind == "bytes" and name in allowed):
            return f"{name} has the type {kind}, which is not decoded"
        if kind.endswith("struct") != bool(field.get("fields")):
            return f"{name} has the type {kind}, and not the fields of that"
        if deeper := _undecodable(field.get("fields", ()), allowed, depth + 1):
            return f"{name}.{deeper}"
    return ""


def _names_of_bytes(fields: Iterable[Row]) -> Iterator[str]:
    for field in fields:
        if field["type"] == "bytes":
            yield field["name"]
        yield from _names_of_bytes(field.get("fields", ()))


def _count(fields: Iterable[Row]) -> int:
    return sum(1 + _count(field.get("fields", ())) for field in fields)
