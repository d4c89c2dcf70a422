"""The failures of Kafka's tools, and Java's order of what they list."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from featurewatch.admin.api_errors import ResponseError, exception_text
from featurewatch.cli.admin_target import lacking
from featurewatch.controller.kraft.map_order import hash_order, string_hash
from featurewatch.controller.partitions.assignment import TopicPartition

_BITS: Final = 1 << 32
_VALUE = TypeVar("_VALUE")


class KafkaToolError(Exception):
    """The tool prints this text and ends with 1; ``advice`` is a line of ours beside it."""

    def __init__(self, text: str, advice: str = "") -> None:
        super().__init__(text)
        self.advice = advice


def failure(text: str, advice: str = "") -> KafkaToolError:
    """An error whose text the tool puts behind ``Error:`` (its stack trace is left out)."""
    return KafkaToolError(f"Error: {text}", advice)


def api_failure(error: ResponseError, advice: str = "") -> KafkaToolError:
    """An error of Kafka's client, which the tool prints with the exception's name."""
    if error.right:
        advice = lacking(error.right)
    return failure(exception_text(error.code, error.text), advice)


def refusals(
    first_line: str, errors: Mapping[TopicPartition, ResponseError | None]
) -> KafkaToolError | None:
    """The failure that some partitions were refused, each with a line; None: none was."""
    refused = {one: error for one, error in sorted(errors.items()) if error}
    if not refused:
        return None
    lines = [first_line, *(f"{partition}: {error.text}" for partition, error in refused.items())]
    right = next((error.right for error in refused.values() if error.right), "")
    return KafkaToolError("\n".join(lines), lacking(right) if right else "")


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
    """The values that are there more than once, in an order of above, as Java joins them."""
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
