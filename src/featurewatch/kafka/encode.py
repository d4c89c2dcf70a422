"""Writes a message by the layout that its class declares; pure, the mirror of `decode`.

The layouts are kio's: ``kafka_type`` and ``tag`` of each field. A tagged field is left out where it
has its default (KIP-482).
"""

import struct
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from datetime import timedelta
from functools import cache, partial
from types import UnionType
from typing import Any, Final, Union, cast, get_args, get_origin, get_type_hints

from featurewatch.kafka.decode import implicit_default, not_none

FieldWriter = Callable[[bytearray, Any], None]


def write_entity(message: Any) -> bytes:
    """The bytes of a message of a class in kio's layout."""
    out = bytearray()
    kind: Any = type(message)
    _entity(kind)(out, message)
    return bytes(out)


@cache
def _entity(kind: Any) -> FieldWriter:
    flexible = bool(kind.__flexible__)
    hints = get_type_hints(kind)
    plain: list[tuple[str, FieldWriter]] = []
    tagged: list[tuple[int, str, Any, FieldWriter]] = []
    for item in fields(kind):
        kafka_type = item.metadata.get("kafka_type")
        write = _field(hints[item.name], kafka_type, flexible)
        if item.metadata.get("marked"):
            write = partial(_marked, _field(not_none(hints[item.name]), kafka_type, flexible))
        tag = item.metadata.get("tag")
        if tag is None:
            plain.append((item.name, write))
        else:
            default = item.default
            if default is MISSING:
                default = implicit_default(hints[item.name], kafka_type)
            tagged.append((tag, item.name, default, write))
    tagged.sort(key=lambda entry: entry[0])

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


def _field(hint: Any, kafka_type: str | None, flexible: bool) -> FieldWriter:
    nullable = get_origin(hint) in (Union, UnionType)
    if nullable:
        hint = not_none(hint)
    if get_origin(hint) is tuple:
        return partial(_array, _field(get_args(hint)[0], kafka_type, flexible), flexible)
    if is_dataclass(hint):
        entity = _entity(cast("type", hint))
        return partial(_nullable_entity, entity) if nullable else entity
    if kafka_type == "string":
        return partial(_string, flexible)
    if kafka_type in ("bytes", "records"):
        return partial(_bytes, flexible)
    return _FIXED[str(kafka_type)]


def _nullable_entity(entity: FieldWriter, out: bytearray, value: Any) -> None:
    """A structure that may be missing: a byte before it tells which (KIP-893)."""
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


def _milliseconds(form: struct.Struct, out: bytearray, value: timedelta) -> None:
    out += form.pack(value // timedelta(milliseconds=1))


def _uuid(out: bytearray, value: Any) -> None:
    out += bytes(16) if value is None else value.bytes


_FIXED: Final[dict[str, FieldWriter]] = {
    "bool": _fixed(">?"),
    "error_code": _fixed(">h"),
    "float64": _fixed(">d"),
    "uint16": _fixed(">H"),
    "int8": _fixed(">b"),
    "int16": _fixed(">h"),
    "int32": _fixed(">i"),
    "int64": _fixed(">q"),
    "uuid": _uuid,
    "timedelta_i32": partial(_milliseconds, _INT32),
    "timedelta_i64": partial(_milliseconds, _INT64),
}
