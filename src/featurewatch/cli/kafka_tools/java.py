"""Java semantics of Kafka's tools: the order of sets, the parsing of numbers and of ids; pure."""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar
from uuid import UUID

from featurewatch.controller.kraft.map_order import hash_order, string_hash
from featurewatch.controller.partitions.assignment import TopicPartition

_BITS: Final = 1 << 32
_MAX_INT: Final = 2**31 - 1
_VALUE = TypeVar("_VALUE")
_BASE64: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_LONGEST_UUID: Final = 24
_UUID_BYTES: Final = 16


class JavaError(ValueError):
    """A text that Java refuses; the message is Java's."""


def parse_int(text: str) -> int | None:
    """``Integer.parseInt``; None if the text is not such a number."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    # Python's int refuses thousands of digits with another error.
    if not digits.isdecimal() or len(digits.lstrip("0")) > len(str(_MAX_INT)):
        return None
    number = int(text)
    return number if -_MAX_INT - 1 <= number <= _MAX_INT else None


def parse_uuid(text: str) -> UUID:
    """Kafka's ``Uuid.fromString``; raises `JavaError` with its message."""
    if len(text) > _LONGEST_UUID:
        raise JavaError(
            f"Input string with prefix `{text[:_LONGEST_UUID]}` is too long to be decoded as a "
            "base64 UUID"
        )
    content = _decoded_base64(text)
    if len(content) != _UUID_BYTES:
        raise JavaError(
            f"Input string `{text}` decoded as {len(content)} bytes, which is not equal to the "
            f"expected {_UUID_BYTES} bytes of a base64-encoded UUID"
        )
    return UUID(bytes=content)


def _decoded_base64(text: str) -> bytes:
    """``Base64.getUrlDecoder().decode``: padding may be left out, and bits at the end are lost."""
    if len(text) == 1:
        raise JavaError("Input byte[] should at least have 2 bytes for base64 bytes")
    groups: list[int] = []
    for position, sign in enumerate(text):
        if sign == "=":
            used = position % 4
            if used == 0 or (used == 2 and text[position + 1 : position + 2] != "="):
                raise JavaError("Input byte array has wrong 4-byte ending unit")
            if used == 1:
                break
            after = position + (2 if used == 2 else 1)
            if after < len(text):
                raise JavaError(f"Input byte array has incorrect ending byte at {after}")
            break
        if sign not in _BASE64:
            raise JavaError(f"Illegal base64 character {_signed_hex(sign)}")
        groups.append(_BASE64.index(sign))
    if len(groups) % 4 == 1:
        raise JavaError("Last unit does not have enough valid bits")
    bits = sum(value << 6 * place for place, value in enumerate(reversed(groups)))
    spare = 6 * len(groups) % 8
    return (bits >> spare).to_bytes(6 * len(groups) // 8, "big")


def _signed_hex(sign: str) -> str:
    """A character as ``Integer.toString`` has its byte in ISO 8859-1, which is signed."""
    byte = (sign.encode("latin-1", "replace"))[0]
    return f"{byte:x}" if byte < 128 else f"-{256 - byte:x}"


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
