"""Checks of parsed JSON: each takes a value and returns the event's field, or raises ValueError.

The text of the error is the end of a sentence that begins with the field's name.
"""

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Final

from featurewatch.common.text import MAX_NAME_CHARS, shortened
from featurewatch.streams.codec.cloudevents import LATEST_MS
from featurewatch.streams.types import SupportedRange

Check = Callable[[Any], Any]


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
    """What people call a cluster: a string, cut to `MAX_NAME_CHARS` characters."""
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


def an_object(value: Any) -> dict[str, Any]:
    """An object, with values of any kind."""
    if type(value) is dict:
        return value
    raise ValueError(f"is not an object: {brief(value)}")


INT64: Final = integer(-(2**63), 2**63 - 1)
OFFSET: Final = integer(0, 2**63 - 1)
OFFSET_OR_NONE: Final = integer(-1, 2**63 - 1)
INT32: Final = integer(0, 2**31 - 1)
INT32_OR_NONE: Final = integer(-1, 2**31 - 1)
LEVEL: Final = integer(0, 2**15 - 1)
CHECKSUM_OR_NONE: Final = integer(-1, 2**32 - 1)
TIME: Final = integer(0, LATEST_MS)
TIME_OR_NONE: Final = integer(-1, LATEST_MS)


@dataclass(frozen=True, slots=True)
class Shape:
    """A dataclass, the check of each of its fields, and a pair that must not be reversed.

    ``optional`` are fields that older versions do not publish: they have the class's defaults.
    """

    cls: type
    checks: Mapping[str, Check]
    ordered: tuple[str, str] | None = None
    optional: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        declared = {field.name for field in fields(self.cls) if field.init}
        if declared != set(self.checks):
            raise TypeError(f"{self.cls.__name__}: {declared ^ set(self.checks)} without a match")

    def decode(self, kind: str, content: Mapping[str, Any]) -> Any:
        """The object; raises `ValueError` with a sentence that names the field."""
        values = {}
        name = ""
        try:
            for name, check in self.checks.items():
                if name in content or name not in self.optional:
                    values[name] = check(content[name])
        except KeyError:
            raise ValueError(f"{kind} has no field {name}") from None
        except ValueError as error:
            raise ValueError(f"{name} of {kind} {error}") from None
        if self.ordered and values[self.ordered[0]] > values[self.ordered[1]]:
            raise ValueError(f"{self.ordered[0]} of {kind} is above {self.ordered[1]}")
        return self.cls(**values)
