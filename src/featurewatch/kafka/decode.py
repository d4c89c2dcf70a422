"""Reads a message of the table of messages, whatever the bytes are; pure.

Every length is checked against the bytes present, and fields of a newer Kafka are skipped, as
KIP-482 says. For what comes by the ten thousands, a class with a function ``__read__`` reads itself
from a `ByteReader`, and so does the reader of a field.
"""

import struct
from collections.abc import Callable
from functools import cache, partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, cast

from featurewatch.kafka.field import Field
from featurewatch.kafka.limits import MAX_STRING_BYTES

if TYPE_CHECKING:
    from uuid import UUID


_ANY_NUMBER: Final = 2**31


class DecodeError(ValueError):
    """The bytes do not have the layout of the message."""


class ByteReader:
    """A position in the bytes of a message, whose arrays hold ``max_items`` items in all."""

    def __init__(
        self, data: bytes | memoryview, start: int = 0, max_items: int = _ANY_NUMBER
    ) -> None:
        self.data = memoryview(data)
        self.at = start
        self.items_left = max_items
        self.memo: Any = None
        """State that a special reader keeps from one item of the message to the next."""

    def take(self, size: int) -> memoryview:
        """The next ``size`` bytes."""
        end = self.at + size
        if size < 0 or end > len(self.data):
            raise DecodeError(f"{size} bytes should follow, but only {self.left} do")
        content = self.data[self.at : end]
        self.at = end
        return content

    @property
    def left(self) -> int:
        """How many bytes follow."""
        return len(self.data) - self.at


FieldReader = Callable[[ByteReader], Any]


def read_entity(
    kind: Any, data: bytes | memoryview, start: int = 0, max_items: int = _ANY_NUMBER
) -> tuple[Any, int]:
    """The message of a class of the table that begins at ``start``, and where it ends.

    Raises:
        DecodeError: if it is invalid, or its arrays hold more than ``max_items`` items.
    """
    cursor = ByteReader(data, start, max_items)
    return _entity(kind)(cursor), cursor.at


def skip_header(data: bytes | memoryview, start: int, *, flexible: bool) -> int:
    """Where a request's header ends, after its key, version and correlation id.

    The client id is of the old form in every version (KIP-482).

    Raises:
        DecodeError: if it does not end.
    """
    cursor = ByteReader(data, start)
    _string(False, True, cursor)
    if flexible:
        _tags(cursor, {})
    return cursor.at


def skip_tags(data: bytes | memoryview, start: int) -> int:
    """Where a section of tagged fields ends, all of which are skipped.

    Raises:
        DecodeError: if it does not end.
    """
    cursor = ByteReader(data, start)
    _tags(cursor, {})
    return cursor.at


@cache
def _entity(kind: Any) -> FieldReader:
    if (own := getattr(kind, "__read__", None)) is not None:
        return cast("FieldReader", own)
    flexible = bool(kind.__flexible__)
    fields: tuple[Field, ...] = kind.__fields__
    plain = [(field.name, _field(field, flexible)) for field in fields if field.tag is None]
    tagged = {
        field.tag: (field.name, _field(field, flexible))
        for field in fields
        if field.tag is not None
    }
    readers = [read for _, read in plain]
    # The constructor takes fields with a default last.
    order = sorted(range(len(fields)), key=lambda index: fields[index].has_default)
    arranged = None if order == [*range(len(fields))] else itemgetter(*order)

    def read_all(cursor: ByteReader) -> Any:
        values: dict[str, Any] = {name: read(cursor) for name, read in plain}
        return kind(**(values | _tags(cursor, tagged)))

    def read_in_order(cursor: ByteReader) -> Any:
        values: Any = [read(cursor) for read in readers]
        message = kind(*(values if arranged is None else arranged(values)))
        if flexible:
            _tags(cursor, {})
        return message

    # Most messages have no tagged fields; this path takes them two thirds of the time.
    return read_all if tagged else read_in_order


def _marked(read: FieldReader, cursor: ByteReader) -> Any:
    """An optional field of KIP-4: a byte comes first, and the field is absent if it is 0."""
    return read(cursor) if cursor.take(1)[0] else None


def _tags(cursor: ByteReader, by_tag: dict[int, tuple[str, FieldReader]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for _ in range(_bounded(cursor, _varint(cursor))):
        tag, size = _varint(cursor), _varint(cursor)
        content = cursor.take(size)
        if tag in by_tag:
            name, read = by_tag[tag]
            inner = ByteReader(content, max_items=cursor.items_left)
            values[name] = read(inner)
            cursor.items_left = inner.items_left
    return values


def _field(field: Field, flexible: bool) -> FieldReader:
    if field.reader is not None:
        return field.reader
    nullable = field.is_nullable and not field.is_array
    if field.struct is not None:
        entity = _entity(field.struct)
        read = partial(_nullable_entity, entity) if nullable else entity
    elif field.kind == "string":
        read = partial(_string, flexible, nullable)
    elif field.kind in ("bytes", "records"):
        read = partial(_bytes, flexible, nullable)
    else:
        read = _FIXED[field.kind]
    if field.is_array:
        read = partial(_array, read, flexible, field.is_nullable)
    return partial(_marked, read) if field.is_optional else read


def _nullable_entity(entity: FieldReader, cursor: ByteReader) -> Any:
    """A structure that may be missing, as the byte before it shows (KIP-893)."""
    return None if _int8(cursor) < 0 else entity(cursor)


def compact_count(cursor: ByteReader) -> int:
    """The number of items of a flexible array; -1 is a missing one. Raises `DecodeError`."""
    count = _varint(cursor) - 1
    return count if count < 0 else _bounded(cursor, count)


def _array(item: FieldReader, flexible: bool, nullable: bool, cursor: ByteReader) -> Any:
    count = _varint(cursor) - 1 if flexible else _int32(cursor)
    if count < 0:
        _check_null(nullable, "a list")
        return None
    return tuple(item(cursor) for _ in range(_bounded(cursor, count)))


def _string(flexible: bool, nullable: bool, cursor: ByteReader) -> str | None:
    size = _varint(cursor) - 1 if flexible else _int16(cursor)
    if size < 0:
        _check_null(nullable, "a string")
        return None
    if size > MAX_STRING_BYTES:
        raise DecodeError(f"a string of {size} bytes is longer than {MAX_STRING_BYTES}")
    try:
        return str(cursor.take(size), "utf-8")
    except UnicodeDecodeError:
        raise DecodeError("a string is not UTF-8") from None


def _bytes(flexible: bool, nullable: bool, cursor: ByteReader) -> bytes | None:
    size = _varint(cursor) - 1 if flexible else _int32(cursor)
    if size < 0:
        _check_null(nullable, "a run of bytes")
        return None
    return bytes(cursor.take(size))


def _check_null(nullable: bool, name: str) -> None:
    if not nullable:
        raise DecodeError(f"{name} is missing")


def _bounded(cursor: ByteReader, count: int) -> int:
    # Each item takes at least a byte.
    if count > cursor.left:
        raise DecodeError(f"{count} items should follow, but only {cursor.left} bytes do")
    if count > cursor.items_left:
        raise DecodeError(f"{count} more items follow, but only {cursor.items_left} are allowed")
    cursor.items_left -= count
    return count


def _varint(cursor: ByteReader) -> int:
    at = cursor.at
    if at < len(cursor.data) and (byte := cursor.data[at]) < 0x80:
        # Nearly all are one byte.
        cursor.at = at + 1
        return byte
    value = 0
    for shift in range(0, 35, 7):
        byte = cursor.take(1)[0]
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value
    raise DecodeError("a variable length is longer than five bytes")


def _fixed(layout: str) -> FieldReader:
    form = struct.Struct(layout)
    return lambda cursor: form.unpack(cursor.take(form.size))[0]


_int8, _int16, _int32, _int64 = _fixed(">b"), _fixed(">h"), _fixed(">i"), _fixed(">q")


def _uuid(cursor: ByteReader) -> "UUID | None":
    import uuid

    value = uuid.UUID(bytes=bytes(cursor.take(16)))
    return value if value.int else None


_FIXED: Final[dict[str, FieldReader]] = {
    "bool": lambda cursor: cursor.take(1)[0] != 0,
    "float64": _fixed(">d"),
    "uint16": _fixed(">H"),
    "int8": _int8,
    "int16": _int16,
    "int32": _int32,
    "int64": _int64,
    "uuid": _uuid,
}
