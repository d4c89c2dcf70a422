"""Checks that a JSON value has a shape, with bounds; the error is one line that names the place.

A library for that would take longer to load than most commands take.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[Any, str], None]
"""Raises `ShapeError` if a value, at a place such as ``levels[3].name``, has another shape."""


class ShapeError(ValueError):
    """A value has another shape; the text says where, and what it must be."""


def text(pattern: str = "", longest: int = 200) -> Check:
    """A text of at most ``longest`` printable characters, that matches the pattern as a whole."""
    compiled = re.compile(pattern) if pattern else None

    def check(value: Any, place: str) -> None:
        if not isinstance(value, str) or len(value) > longest or not value.isprintable():
            raise ShapeError(f"{place} must be a text of at most {longest} printable characters")
        if compiled is not None and compiled.fullmatch(value) is None:
            raise ShapeError(f"{place} is {value[:50]!r}, which does not match {pattern}")

    return check


def whole(low: int, high: int) -> Check:
    """A whole number from ``low`` to ``high``."""

    def check(value: Any, place: str) -> None:
        if type(value) is not int or not low <= value <= high:
            raise ShapeError(f"{place} must be a whole number from {low} to {high}")

    return check


def boolean(value: Any, place: str) -> None:
    """True or false."""
    if not isinstance(value, bool):
        raise ShapeError(f"{place} must be true or false")


def list_of(item: Check, most: int) -> Check:
    """A list of at most ``most`` values."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, list) or len(value) > most:
            raise ShapeError(f"{place} must be a list of at most {most} values")
        for number, each in enumerate(value):
            item(each, f"{place}[{number}]")

    return check


def pair_of(item: Check) -> Check:
    """A list of two values."""
    pair = list_of(item, 2)

    def check(value: Any, place: str) -> None:
        pair(value, place)
        if len(value) != 2:
            raise ShapeError(f"{place} must be a list of two values")

    return check


def map_of(name: Check, item: Check, most: int) -> Check:
    """An object of at most ``most`` values, whose names have a shape too."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, dict) or len(value) > most:
            raise ShapeError(f"{place} must be an object of at most {most} values")
        for key, each in value.items():
            name(key, f"a name in {place}")
            item(each, f"{place}.{key}")

    return check


def an_object(required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """An object with these values and no others."""
    allowed = {**required, **(optional or {})}

    def check(value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise ShapeError(f"{place or 'the file'} must be an object")
        inside = f"{place}." if place else ""
        if missing := [key for key in required if key not in value]:
            raise ShapeError(f"{inside}{missing[0]} is missing")
        for key, each in value.items():
            if key not in allowed:
                raise ShapeError(f"{inside}{key[:50]} is not a value of this file")
            allowed[key](each, f"{inside}{key}")

    return check


def one_of(*checks: Check, otherwise: str) -> Check:
    """A value of any of the shapes; ``otherwise`` says what it must be."""

    def check(value: Any, place: str) -> None:
        for each in checks:
            try:
                each(value, place)
            except ShapeError:
                continue
            return
        raise ShapeError(f"{place} must be {otherwise}")

    return check


def null(value: Any, place: str) -> None:
    """Null."""
    if value is not None:
        raise ShapeError(f"{place} must be null")
