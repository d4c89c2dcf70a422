"""Kafka's errors: numbers, names, and the exceptions and texts of its Java clients.

The table is that of the class ``Errors`` of the newest release, which no release takes from.
"""

import os
from functools import cache
from typing import NamedTuple


class KafkaError(NamedTuple):
    """An error by its number on the wire."""

    name: str
    exception: str
    """The class that Kafka's tools print, without its package."""
    text: str


def kafka_error(code: int) -> KafkaError | None:
    """The error of a number; None if it is unknown."""
    row = _table().get(str(code))
    return None if row is None else KafkaError(*row)


def error_name(code: int) -> str:
    """Kafka's name of an error, or its number if it is unknown."""
    error = kafka_error(code)
    return str(code) if error is None else error.name


@cache
def _table() -> dict[str, list[str]]:
    # Here, because few responses have an error.
    import json

    with open(os.path.join(os.path.dirname(__file__), "errors.json")) as file:
        table: dict[str, list[str]] = json.load(file)
        return table
