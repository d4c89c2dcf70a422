"""Checks of parsed JSON: each takes a value and returns the event's field, or raises ValueError.

The text of the error is the end of a sentence that begins with the field's name.
"""

import base64
import binascii
import reprlib
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, cast

from featurewatch.common.text import MAX_NAME_CHARS, shortened
from featurewatch.streams.fields import INT32_MAX, INT64_BOUNDS, INT64_MAX, LEVEL_BOUNDS
from featurewatch.streams.types import SupportedRange, SupportedRanges

Check = Callable[[Any], Any]

MAX_DEPTH: Final = 100
"""Of an object whose values may be anything: orjson reads 1,024 levels, and writes 254."""


def brief(value: object) -> str:
    """A value for an error message: one line, at most 60 characters."""
    # reprlib stays shallow: a plain repr of deeply nested JSON ends in a RecursionError.
    text = reprlib.repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def integer(low: int, high: int) -> Check:
    """An integer from ``low`` to ``high``."""

    def check(value: Any) -> int:
        # Not isinstance: JSON's true is not 1.
        if type(value) is int and low <= value <= high:
            return value
        raise ValueError(f"is not an integer from {low} to {high}: {brief(value)}")

    return check


def a_text(value: Any) -> str:
    """A string."""
    if type(value) is str:
        return value
    raise ValueError(f"is not a string: {brief(value)}")


def a_detail(value: Any) -> str:
    """A string for people to read, cut to `text.MAX_DETAIL_CHARS` characters."""
    return shortened(a_text(value))


def a_name(value: Any) -> str:
    """A string that is not empty."""
    if type(value) is str and value:
        return value
    raise ValueError(f"is not a string with at least one character: {brief(value)}")


def a_cluster_name(value: Any) -> str:
    """The configured name of a cluster: a string, cut to `MAX_NAME_CHARS` characters."""
    return a_text(value)[:MAX_NAME_CHARS]


def a_flag(value: Any) -> bool:
    """True or false."""
    if type(value) is bool:
        return value
    raise ValueError(f"is neither true nor false: {brief(value)}")


def one_of(enum: type[StrEnum]) -> Check:
    """The member of an enumeration that a string names."""
    members = {str(member): member for member in enum}

    def check(value: Any) -> StrEnum:
        member = members.get(value) if type(value) is str else None
        if member is not None:
            return member
        raise ValueError(f"is none of {', '.join(members)}: {brief(value)}")

    return check


def map_of(check_item: Check) -> Check:
    """An object whose names are not empty and whose values pass a check."""

    def check(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise ValueError(f"is not an object: {brief(value)}")
        return {a_name(key): check_item(item) for key, item in value.items()}

    return check


def list_of(check_item: Check) -> Check:
    """A list whose items pass a check."""

    def check(value: Any) -> tuple[Any, ...]:
        if type(value) is not list:
            raise ValueError(f"is not a list: {brief(value)}")
        return tuple(map(check_item, value))

    return check


def supported_range(value: Any) -> SupportedRange:
    """``[min, max]``, min not above max."""
    if type(value) is not list or len(value) != 2:
        raise ValueError(f"is not a range [min, max]: {brief(value)}")
    low, high = LEVEL(value[0]), LEVEL(value[1])
    if low > high:
        raise ValueError(f"is a range whose minimum is above its maximum: {brief(value)}")
    return SupportedRange(low, high)


def registered_range(value: Any) -> SupportedRange:
    """``[min, max]`` as a node registered it: min may be above max."""
    if type(value) is not list or len(value) != 2:
        raise ValueError(f"is not a range [min, max]: {brief(value)}")
    return SupportedRange(INT64(value[0]), INT64(value[1]))


def registered_ranges(value: Any) -> SupportedRanges:
    """An object of `registered_range`."""
    return SupportedRanges(map_of(registered_range)(value))


def text_or_integer(value: Any) -> str | int:
    """A string or an integer."""
    return value if type(value) is str else int(INT64(value))


def text_or_number(value: Any) -> str | int | float:
    """A string or a number."""
    if type(value) in (str, int, float):
        return cast("str | int | float", value)
    raise ValueError(f"is neither a string nor a number: {brief(value)}")


def base64_bytes(value: Any) -> bytes:
    """The bytes of a string in base64."""
    text = a_text(value)
    try:
        # Python's decoder takes surplus padding.
        if len(text) % 4 == 0:
            return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        pass
    raise ValueError(f"is not base64: {brief(value)}")


def metadata_records(value: Any) -> list[dict[str, Any]]:
    """A list of objects with offset, type, version and data; they are returned as they came."""
    if type(value) is not list:
        raise ValueError(f"is not a list: {brief(value)}")
    # The hot path of the worker: a thousand records in a message. One flat loop of type checks is
    # the cheapest full check there is, at a fifth of what orjson.loads takes.
    try:
        for record in value:
            if (
                type(record["offset"]) is int
                and type(record["type"]) is str
                and type(record["version"]) is int
                and type(record["data"]) is dict
            ):
                continue
            raise ValueError(f"holds a record with a wrong type: {brief(record)}")
    except (KeyError, TypeError, IndexError):
        raise ValueError(
            f"has an entry that is no record with offset, type, version and data: {brief(record)}"
        ) from None
    return value


def an_object(value: Any) -> dict[str, Any]:
    """An object, with values of any kind."""
    if type(value) is dict:
        return value
    raise ValueError(f"is not an object: {brief(value)}")


def a_tree(value: Any) -> dict[str, Any]:
    """An object, with values of any kind that are nested at most `MAX_DEPTH` deep."""
    tree, level = an_object(value), [value]
    for _ in range(MAX_DEPTH):
        parts = (part.values() if type(part) is dict else part for part in level)
        level = [item for part in parts for item in part if type(item) in (dict, list)]
        if not level:
            return tree
    raise ValueError(f"is nested more than {MAX_DEPTH} deep")


INT64: Final = integer(*INT64_BOUNDS)
OFFSET: Final = integer(0, INT64_MAX)
OFFSET_OR_NONE: Final = integer(-1, INT64_MAX)
INT32: Final = integer(0, INT32_MAX)
INT32_OR_NONE: Final = integer(-1, INT32_MAX)
LEVEL: Final = integer(*LEVEL_BOUNDS)
