"""Reads a message by the layout that its class declares, whatever the bytes are; pure.

The layouts are kio's: ``kafka_type`` and ``tag`` of each field. kio's own decoder (0.6.5) trusts
lengths that it finds, and one that claims more memory than there is ends the process. It also stops
at an unknown tagged field, which KIP-482 says to skip. Here every length is
checked against the bytes present, and fields of a newer Kafka are skipped. A class with a function
``__read__`` reads itself from a `ByteReader`: for what comes by the ten thousands.
"""

import datetime
import struct
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, partial
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, Union, cast, get_args, get_origin, get_type_hints

from featurewatch.kafka.limits import MAX_STRING_BYTES

if TYPE_CHECKING:
    from uuid import UUID

    from kio.schema.errors import ErrorCode
    from kio.static.primitive import i32Timedelta, i64Timedelta

# These are imported where a field has one: they take long, and most messages have none.


_ANY_NUMBER: Final = 2**31


class DecodeError(ValueError):
    """The bytes are not of the layout."""


class ByteReader:
    """A position in the bytes of a message, whose arrays hold ``max_items`` items in all."""

    def __init__(
        self, data: bytes | memoryview, start: int = 0, max_items: int = _ANY_NUMBER
    ) -> None:
        self.data = memoryview(data)
        self.at = start
        self.items_left = max_items
        self.memo: Any = None
        """What a reader with a way of its own keeps from one item of the message to the next."""

    def take(self, size: int) -> memoryview:
        """The next ``size`` bytes."""
        end = self.at + size
        if size < 0 or end > len(self.data):
            raise DecodeError(f"{size} bytes are said to follow, {self.left} do")
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
    """The message of a class of kio's layout that begins at ``start``, and where it ends.

    Raises:
        DecodeError: if there is none, or its arrays hold more than ``max_items`` items.
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
    hints = get_type_hints(kind)
    plain: list[tuple[str, FieldReader]] = []
    tagged: dict[int, tuple[str, FieldReader]] = {}
    absent: dict[str, Any] = {}
    for item in fields(kind):
        kafka_type = item.metadata.get("kafka_type")
        read = _field(hints[item.name], kafka_type, flexible)
        if item.metadata.get("marked"):
            read = partial(_marked, _field(not_none(hints[item.name]), kafka_type, flexible))
        if (tag := item.metadata.get("tag")) is None:
            plain.append((item.name, read))
            continue
        tagged[tag] = (item.name, read)
        if item.default is MISSING:
            absent[item.name] = implicit_default(hints[item.name], kafka_type)

    def read_all(cursor: ByteReader) -> Any:
        values = absent | {name: read(cursor) for name, read in plain}
        if flexible:
            values |= _tags(cursor, tagged)
        return kind(**values)

    readers = [read for _, read in plain]

    def read_in_order(cursor: ByteReader) -> Any:
        message = kind(*[read(cursor) for read in readers])
        if flexible:
            _tags(cursor, tagged)
        return message

    # Most messages have no tagged fields, and take two thirds of the time so.
    is_plain = not tagged and not any(item.kw_only for item in fields(kind))
    return read_in_order if is_plain else read_all


def not_none(hint: Any) -> Any:
    """The type of a field that may be None, without None."""
    (present,) = [part for part in get_args(hint) if part is not type(None)]
    return present


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


def implicit_default(hint: Any, kafka_type: str | None) -> Any:
    """What a tagged field without a default of its own is where it is left out: zero, or empty."""
    if get_origin(hint) in (Union, UnionType):
        return None
    if get_origin(hint) is tuple:
        return ()
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        own = [item for item in fields(hint) if item.default is MISSING]
        return cast("Any", hint)(
            **{n.name: implicit_default(hints[n.name], n.metadata.get("kafka_type")) for n in own}
        )
    if kafka_type in ("string", "bytes", "records"):
        return "" if kafka_type == "string" else b""
    return _FIXED[str(kafka_type)](ByteReader(bytes(16)))


def _field(hint: Any, kafka_type: str | None, flexible: bool) -> FieldReader:
    nullable = False
    if get_origin(hint) in (Union, UnionType):
        nullable, hint = True, not_none(hint)
    if get_origin(hint) is tuple:
        item = _field(get_args(hint)[0], kafka_type, flexible)
        return partial(_array, item, flexible, nullable)
    if is_dataclass(hint):
        entity = _entity(cast("type", hint))
        return partial(_nullable_entity, entity) if nullable else entity
    if kafka_type == "string":
        return partial(_string, flexible, nullable)
    if kafka_type in ("bytes", "records"):
        return partial(_bytes, flexible, nullable)
    return _FIXED[str(kafka_type)]


def _nullable_entity(entity: FieldReader, cursor: ByteReader) -> Any:
    """A structure that may be missing: a byte before it tells which (KIP-893)."""
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
    # Each item takes a byte at least.
    if count > cursor.left:
        raise DecodeError(f"{count} items are said to follow, in {cursor.left} bytes")
    if count > cursor.items_left:
        raise DecodeError(f"{count} more items are said to follow, and {cursor.items_left} may")
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


def _milliseconds(cursor: ByteReader) -> "i32Timedelta":
    from kio.static.primitive import i32Timedelta

    return i32Timedelta.parse(datetime.timedelta(milliseconds=_int32(cursor)))


def _long_milliseconds(cursor: ByteReader) -> "i64Timedelta":
    from kio.static.primitive import i64Timedelta

    milliseconds = _int64(cursor)
    try:
        return i64Timedelta.parse(datetime.timedelta(milliseconds=milliseconds))
    except (OverflowError, TypeError):
        raise DecodeError(f"{milliseconds} ms are no span of time") from None


def _uuid(cursor: ByteReader) -> "UUID | None":
    import uuid

    value = uuid.UUID(bytes=bytes(cursor.take(16)))
    return value if value.int else None


def _error_code(cursor: ByteReader) -> "ErrorCode":
    from kio.schema.errors import ErrorCode

    number = _int16(cursor)
    try:
        return ErrorCode(number)
    except ValueError:
        raise DecodeError(f"there is no error code {number}") from None


_FIXED: Final[dict[str, FieldReader]] = {
    "bool": lambda cursor: cursor.take(1)[0] != 0,
    "error_code": _error_code,
    "float64": _fixed(">d"),
    "uint16": _fixed(">H"),
    "int8": _int8,
    "int16": _int16,
    "int32": _int32,
    "int64": _int64,
    "uuid": _uuid,
    "timedelta_i32": _milliseconds,
    "timedelta_i64": _long_milliseconds,
}
