"""Decodes JSON objects in znodes: a field has its type, or an error is one sentence."""

import re
from typing import Any, Final

import orjson

from featurewatch.streams.codec.checks import Check, brief, integer
from featurewatch.streams.types import LATEST_MS

INT64: Final = integer(-(2**63), 2**63 - 1)
_DIGITS: Final = re.compile(r"[0-9]{1,19}")


class ZnodeFormatError(ValueError):
    """A znode's content is invalid: one sentence."""


def json_object(data: bytes) -> dict[str, Any]:
    """The JSON object that the bytes are, UTF-8. Of a name that occurs twice the last one counts.

    Raises `ZnodeFormatError`; nesting deeper than 1,024 levels is refused too.
    """
    if not data:
        raise ZnodeFormatError("it is empty")
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise ZnodeFormatError(f"it is not JSON: {error}") from None
    return an_object(value, "it")


def an_object(value: Any, name: str, of: str | None = None) -> dict[str, Any]:
    """``value``, if it is a JSON object; ``name`` begins the sentence of the `ZnodeFormatError`."""
    if type(value) is not dict:
        raise ZnodeFormatError(f"{name}{_of(of)} is not an object: {brief(value)}")
    return value


def a_list(value: Any, name: str) -> list[Any]:
    """``value``, if it is a JSON array; raises `ZnodeFormatError`."""
    if type(value) is not list:
        raise ZnodeFormatError(f"{name} is not a list: {brief(value)}")
    return value


def required(content: dict[str, Any], name: str, check: Check, of: str | None = None) -> Any:
    """The checked field ``name``; ``of`` names what it is a field of. Raises `ZnodeFormatError`."""
    try:
        return check(content[name])
    except KeyError:
        raise ZnodeFormatError(f"{name}{_of(of)} is missing") from None
    except ValueError as error:
        raise ZnodeFormatError(f"{name}{_of(of)} {error}") from None


def _of(name: str | None) -> str:
    return "" if name is None else f" of {brief(name)}"


def optional(content: dict[str, Any], name: str, check: Check, default: Any) -> Any:
    """The checked field ``name``, or the default where it is absent or null; raises
    `ZnodeFormatError`.

    Kafka's own decoder takes null for absent as well.
    """
    return default if content.get(name) is None else required(content, name, check)


def schema(content: dict[str, Any], low: int, high: int) -> int:
    """The ``version`` of the JSON, from ``low`` to ``high``; raises `ZnodeFormatError`."""
    version: int = required(content, "version", INT64)
    if not low <= version <= high:
        supported = f"{low}" if low == high else f"{low} to {high}"
        raise ZnodeFormatError(f"its version is {version}; known is {supported}")
    return version


def time_ms(value: Any) -> int:
    """Kafka's times, milliseconds in a string; -1: it is not one."""
    if type(value) is str and _DIGITS.fullmatch(value):
        value = int(value)
    return value if type(value) is int and 0 <= value <= LATEST_MS else -1
