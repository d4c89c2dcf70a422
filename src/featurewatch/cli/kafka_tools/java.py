"""Java semantics of Kafka's tools: the order of sets, and the parsing of numbers; pure."""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from featurewatch.controller.kraft.map_order import hash_order, string_hash
from featurewatch.controller.partitions.assignment import TopicPartition

_BITS: Final = 1 << 32
_MAX_INT: Final = 2**31 - 1
_VALUE = TypeVar("_VALUE")


def parse_int(text: str) -> int | None:
    """``Integer.parseInt``; None if the text is not such a number."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    # Python's int refuses thousands of digits with another error.
    if not digits.isdecimal() or len(digits.lstrip("0")) > len(str(_MAX_INT)):
        return None
    number = int(text)
    return number if -_MAX_INT - 1 <= number <= _MAX_INT else None


def split(text: str, separator: str) -> list[str]:
    """``String.split``: what is empty at the end does not count."""
    parts = text.split(separator)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts


def in_set_order(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Partitions in the order of a ``HashSet``."""
    return hash_order(partitions, _partition_hash)


def ids_in_set_order(broker_ids: Iterable[int]) -> list[int]:
    """Brokers in the order of a ``HashSet``."""
    return hash_order(broker_ids, _int_hash)


def names_in_set_order(names: Iterable[str]) -> list[str]:
    """Texts in the order of a ``HashSet``."""
    return hash_order(names, string_hash)


def repeated(values: Iterable[_VALUE], order: Callable[[Iterable[_VALUE]], list[_VALUE]]) -> str:
    """The values that occur more than once, in one of the orders above, as Java joins them."""
    seen: set[_VALUE] = set()
    twice: dict[_VALUE, None] = {}
    for value in values:
        if value in seen:
            twice[value] = None
        seen.add(value)
    return ",".join(map(str, order(twice)))


def _int_hash(number: int) -> int:
    return number


def _partition_hash(partition: TopicPartition) -> int:
    """``TopicPartition.hashCode``."""
    return (31 * (31 + partition.number) + string_hash(partition.topic)) % _BITS
