"""Reads the JSON files of Kafka's tools, with the errors that they print (``DecodeJson``)."""

import json
from pathlib import Path
from typing import Any, Final, NoReturn

from featurewatch.cli.kafka_tools.errors import failure

_MAX_BYTES: Final = 64 << 20
"""Largest file in bytes, some 500,000 partitions; Kafka is made for fewer."""
_INT32: Final = range(-(1 << 31), 1 << 31)
_MISSING: Final = object()


def read_json_file(path: Path) -> str:
    """The content of a file; raises `KafkaToolError`."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        why = f"it cannot be read: {error.strerror}"
        raise failure(f"Unable to read file {path}", why) from None
    if len(content) > _MAX_BYTES:
        raise failure(f"{path} is larger than {_MAX_BYTES >> 20} MiB: split the reassignment")
    return content.decode("utf-8", "replace")


def parse_json(text: str) -> Any:
    """The document of a text, `_MISSING` for blanks; raises ValueError with the reason."""
    if not text.strip():
        return _MISSING
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def as_object(value: Any) -> dict[str, Any]:
    """An object of JSON; raises `KafkaToolError`, as all of the following do."""
    if isinstance(value, dict):
        return value
    raise failure(f"Expected JSON object, received {_shown(value)}")


def as_array(value: Any) -> list[Any]:
    """An array of JSON."""
    if isinstance(value, list):
        return value
    raise failure(f"Expected JSON array, received {_shown(value)}")


def field(entry: dict[str, Any], name: str) -> Any:
    """A field that must be there."""
    if name not in entry:
        raise failure(f"No such field exists: `{name}`")
    return entry[name]


def as_text(value: Any) -> str:
    """A text."""
    if isinstance(value, str):
        return value
    raise failure(f"Expected `String` value, received {_shown(value)}")


def as_integer(value: Any) -> int:
    """A number of 32 bits."""
    if isinstance(value, int) and not isinstance(value, bool) and value in _INT32:
        return value
    raise failure(f"Expected `Integer` value, received {_shown(value)}")


def as_list(value: Any) -> list[Any]:
    """A list of values."""
    if isinstance(value, list):
        return value
    raise failure(f"Expected `JSON array` value, received {_shown(value)}")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _shown(value: Any) -> str:
    """A value as Jackson prints it."""
    if value is _MISSING:
        return ""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
