"""Writes a message of the table of messages; pure, the mirror of `decode`.

A tagged field is left out where it has its default (KIP-482).
"""

import struct
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final

from featurewatch.kafka.field import Field

FieldWriter = Callable[[bytearray, Any], None]


def write_entity(message: Any) -> bytes:
    """The bytes of a message."""
    out = bytearray()
    kind: Any = type(message)
    _entity(kind)(out, message)
    return bytes(out)


@cache
def _entity(kind: Any) -> FieldWriter:
    flexible = bool(kind.__flexible__)
    fields: tuple[Field, ...] = kind.__fields__
    plain = [(field.name, _field(field, flexible)) for field in fields if field.tag is None]
    tagged = sorted(
        (
            (field.tag, field.name, field.default, _field(field, flexible))
            for field in fields
            if field.tag is not None
        ),
        key=lambda entry: entry[0],
    )

    def write_all(out: bytearray, message: Any) -> None:
        for name, write in plain:
            write(out, getattr(message, name))
        if flexible:
            _write_tags(out, message, tagged)

    return write_all


def _marked(write: FieldWriter, out: bytearray, value: Any) -> None:
    """An optional field of KIP-4: a byte comes first, 0 if the field is absent."""
    out.append(value is not None)
    if value is not None:
        write(out, value)


def _write_tags(
    out: bytearray, message: Any, tagged: list[tuple[int, str, Any, FieldWriter]]
) -> None:
    present = [
        (tag, getattr(message, name), write)
        for tag, name, default, write in tagged
        if getattr(message, name) != default
    ]
    _varint(out, len(present))
    for tag, value, write in present:
        content = bytearray()
        write(content, value)
        _varint(out, tag)
        _varint(out, len(content))
        out += content


def _field(field: Field, flexible: bool) -> FieldWriter:
    write: FieldWriter
    if field.struct is not None:
        write = _entity(field.struct)
        if field.is_nullable and not field.is_array:
            write = partial(_nullable_entity, write)
    elif field.kind == "string":
        write = partial(_string, flexible)
    elif field.kind in ("bytes", "records"):
        write = partial(_bytes, flexible)
    else:
        write = _FIXED[field.kind]
    if field.is_array:
        write = partial(_array, write, flexible)
    return partial(_marked, write) if field.is_optional else write


def _nullable_entity(entity: FieldWriter, out: bytearray, value: Any) -> None:
    """A structure that may be missing, as the byte before it shows (KIP-893)."""
    out.append(0xFF if value is None else 1)
    if value is not None:
        entity(out, value)


def _array(item: FieldWriter, flexible: bool, out: bytearray, value: Any) -> None:
    size = -1 if value is None else len(value)
    if flexible:
        _varint(out, size + 1)
    else:
        out += _INT32.pack(size)
    for part in value or ():
        item(out, part)


def _string(flexible: bool, out: bytearray, value: str | None) -> None:
    content = None if value is None else value.encode()
    size = -1 if content is None else len(content)
    if flexible:
        _varint(out, size + 1)
    else:
        out += _INT16.pack(size)
    out += content or b""


def _bytes(flexible: bool, out: bytearray, value: bytes | None) -> None:
    size = -1 if value is None else len(value)
    if flexible:
        _varint(out, size + 1)
    else:
        out += _INT32.pack(size)
    out += value or b""


def _varint(out: bytearray, value: int) -> None:
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


_INT16, _INT32, _INT64 = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")


def _fixed(layout: str) -> FieldWriter:
    form = struct.Struct(layout)

    def write(out: bytearray, value: Any) -> None:
        out += form.pack(value)

    return write


def _uuid(out: bytearray, value: Any) -> None:
    out += bytes(16) if value is None else value.bytes


_FIXED: Final[dict[str, FieldWriter]] = {
    "bool": _fixed(">?"),
    "float64": _fixed(">d"),
    "uint16": _fixed(">H"),
    "int8": _fixed(">b"),
    "int16": _fixed(">h"),
    "int32": _fixed(">i"),
    "int64": _fixed(">q"),
    "uuid": _uuid,
}
