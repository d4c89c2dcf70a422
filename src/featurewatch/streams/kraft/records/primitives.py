"""Functions that generated decoders call for the parts of a record that are rare, long or odd.

``buffer`` is the whole read, ``end`` the end of the record in it. Nothing here trusts a length: a
count is checked against the remaining bytes before it is used.
"""

from binascii import b2a_base64
from collections.abc import Callable
from math import isfinite
from struct import Struct
from typing import Any

from featurewatch.streams.kraft.errors import RecordDecodeError
from featurewatch.streams.kraft.records.varint import uvarint

NULL = -1


class UuidTexts(dict[bytes, str]):
    """The text of each UUID met, as Kafka prints it: URL-safe base64 without padding.

    Topic and directory ids come again and again, so a lookup replaces the conversion. Bounded: it
    starts over when full.
    """

    LIMIT = 1 << 16

    def __missing__(self, raw: bytes) -> str:
        if len(raw) != 16:
            raise RecordDecodeError("it is cut off")
        if len(self) >= self.LIMIT:
            self.clear()
        text = b2a_base64(raw, newline=False)[:22].translate(_URL_SAFE).decode()
        self[raw] = text
        return text


_URL_SAFE = bytes.maketrans(b"+/", b"-_")


class UuidLists(dict[bytes, tuple[str, ...]]):
    """The texts of UUIDs in a row: the log directories of a partition are those of many others."""

    LIMIT = 1 << 10

    def __missing__(self, raw: bytes) -> tuple[str, ...]:
        if len(self) >= self.LIMIT:
            self.clear()
        texts = tuple(UUIDS[raw[at : at + 16]] for at in range(0, len(raw), 16))
        self[raw] = texts
        return texts


UUIDS = UuidTexts()
UUID_LISTS = UuidLists()

INTS: list[Callable[..., tuple[int, ...]]] = [Struct(f">{n}i").unpack_from for n in range(127)]
"""Readers of that many int32 in a row."""


def count(buffer: bytes, at: int, first: int, end: int, width: int) -> tuple[int, int]:
    """A compact length whose first byte was ``first``: the number (`NULL`: null), where it ends.

    Raises `RecordDecodeError` when so many elements of at least ``width`` bytes do not fit.
    """
    if first > 0x7F:
        first, at = uvarint(buffer, at - 1)
    if (first - 1) * width > end - at:
        raise RecordDecodeError("a field is longer than the record")
    return first - 1, at


def required(number: int) -> int:
    """The number, if it is not `NULL`; otherwise raises `RecordDecodeError`."""
    if number == NULL:
        raise RecordDecodeError("a field that cannot be null is null")
    return number


def string(buffer: bytes, at: int, first: int, end: int, nullable: bool) -> tuple[str | None, int]:
    """A compact string whose first length byte was ``first``, and the position after it."""
    size, at = count(buffer, at, first, end, 1)
    if size == NULL and nullable:
        return None, at
    after = at + required(size)
    return buffer[at:after].decode(), after


def strings(
    buffer: bytes, at: int, first: int, end: int, nullable: bool
) -> tuple[list[str] | None, int]:
    """A compact array of strings, and the position after it."""
    size, at = count(buffer, at, first, end, 1)
    if size == NULL and nullable:
        return None, at
    texts = []
    for _ in range(required(size)):
        text, at = string(buffer, at + 1, buffer[at], end, nullable=False)
        texts.append(text or "")
    return texts, at


def ints(
    buffer: bytes, at: int, first: int, end: int, nullable: bool
) -> tuple[list[int] | None, int]:
    """A compact array of int32, and the position after it."""
    size, at = count(buffer, at, first, end, 4)
    if size == NULL and nullable:
        return None, at
    return list(Struct(f">{required(size)}i").unpack_from(buffer, at)), at + 4 * size


def uuids(
    buffer: bytes, at: int, first: int, end: int, nullable: bool
) -> tuple[list[str] | None, int]:
    """A compact array of UUIDs as text, and the position after it."""
    size, at = count(buffer, at, first, end, 16)
    if size == NULL and nullable:
        return None, at
    after = at + 16 * required(size)
    return [UUIDS[buffer[i : i + 16]] for i in range(at, after, 16)], after


def number(value: float) -> float | str:
    """A float as Kafka's JSON has it: values that JSON cannot represent are text."""
    if isfinite(value):
        return value
    if value != value:
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def tag_head(buffer: bytes, at: int) -> tuple[int, int, int]:
    """A tag, the size of its value, and where the value begins."""
    tag, at = uvarint(buffer, at)
    size, at = uvarint(buffer, at)
    return tag, size, at


def skip_tags(buffer: bytes, at: int, first: int, end: int) -> int:
    """The position after a tagged section of which no field is known (KIP-482)."""
    remaining = first
    if first > 0x7F:
        remaining, at = uvarint(buffer, at - 1)
    while remaining:
        _, size, at = tag_head(buffer, at)
        at += size
        if at > end:
            raise RecordDecodeError("a tagged field is longer than the record")
        remaining -= 1
    return at


def misfit(at: int, end: int) -> RecordDecodeError:
    """The error for a record whose fields do not end where the record ends."""
    if at > end:
        return RecordDecodeError("it is cut off")
    return RecordDecodeError(f"{end - at} bytes are left after its last field")


NAMES: dict[str, Any] = {
    each.__name__: each
    for each in (count, required, string, strings, ints, uuids, number, tag_head, skip_tags, misfit)
} | {"UUIDS": UUIDS, "UUID_LISTS": UUID_LISTS, "INTS": INTS, "Unreadable": RecordDecodeError}
"""The names that the source of a generated decoder may use."""
