"""Reads the settings in responses: some thirty of each topic, by far the most of their bytes.

They are read in one loop, which takes a tenth of the time of the general way. Most topics have the
same values: an entry whose bytes are those of the same entry of the topic before is not read again.
Lengths are checked as in the general way: a position behind the end raises at the next byte, or
after the last entry.
"""

from enum import IntEnum
from typing import NamedTuple

from featurewatch.kafka.decode import ByteReader, DecodeError, compact_count, skip_tags


class ConfigSource(IntEnum):
    """Where a value is from (``ConfigEntry.ConfigSource``)."""

    UNKNOWN = 0
    TOPIC = 1
    BROKER = 2
    BROKER_DEFAULT = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigValue(NamedTuple):
    """A setting and its value; a sensitive one has None."""

    name: str
    value: str | None
    source: int
    is_sensitive: bool = False


_Entries = list[tuple[bytes, ConfigValue]]
"""The entries of a topic, each with its bytes."""


def skip_configs(cursor: ByteReader) -> tuple[()]:
    """Reads past the settings of a created topic (KIP-525), which nobody needs."""
    data = cursor.data
    count = compact_count(cursor)
    at = cursor.at
    try:
        for _ in range(count):
            at = _skip_text(data, at)
            at = _skip_text(data, at)
            # Whether it is read-only, its source, whether it is sensitive.
            at += 3
            at = at + 1 if data[at] == 0 else skip_tags(data, at)
    except IndexError:
        raise _missing() from None
    _finish(cursor, at)
    return ()


def read_configs(cursor: ByteReader) -> tuple[ConfigValue, ...]:
    """Reads the settings of a topic (DescribeConfigs, version 4)."""
    data = cursor.data
    count = compact_count(cursor)
    at = cursor.at
    values: list[ConfigValue] = []
    before: _Entries = cursor.memo or []
    entries: _Entries = []
    try:
        for index in range(count):
            if index < len(before):
                content, known = entry = before[index]
                # A comparison of bytes takes a third of one of a view.
                if bytes(data[at : at + len(content)]) == content:
                    at += len(content)
                    values.append(known)
                    entries.append(entry)
                    continue
            begin = at
            # Of nearly all the length is one byte; without a call they take half the time.
            if 0 < (size := data[at]) < 0x80:
                name: str | None = str(data[at + 1 : at + size], "utf-8")
                at += size
            else:
                start, at = at, _skip_text(data, at)
                name = _text(data, start, at)
            if 0 < (size := data[at]) < 0x80:
                value: str | None = str(data[at + 1 : at + size], "utf-8")
                at += size
            else:
                start, at = at, _skip_text(data, at)
                value = _text(data, start, at)
            source, is_sensitive = data[at + 1], data[at + 2] != 0
            at += 3
            at = at + 1 if data[at] <= 1 else _skip_synonyms(cursor, at)
            # The type, and the documentation.
            at = at + 2 if data[at + 1] == 0 else _skip_text(data, at + 1)
            at = at + 1 if data[at] == 0 else skip_tags(data, at)
            read = ConfigValue(name or "", value, source, is_sensitive)
            values.append(read)
            entries.append((bytes(data[begin:at]), read))
    except IndexError:
        raise _missing() from None
    except UnicodeDecodeError:
        raise _not_text() from None
    _finish(cursor, at)
    cursor.memo = entries
    return tuple(values)


def _skip_text(data: memoryview, at: int) -> int:
    """Where a compact string ends; the length of most is one byte."""
    size = data[at]
    if size < 0x80:
        return at + (size or 1)
    cursor = ByteReader(data, at)
    count = _compact_size(cursor)
    return cursor.at + max(count, 0)


def _compact_size(cursor: ByteReader) -> int:
    """The length of a compact string in bytes; -1 is a missing one."""
    size = 0
    for shift in range(0, 35, 7):
        byte = cursor.take(1)[0]
        size |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return size - 1
    raise DecodeError("a variable length is longer than five bytes")


def _text(data: memoryview, start: int, end: int) -> str | None:
    """The string from a position on, which ends at another one; None is a missing one."""
    size = data[start]
    if size == 0:
        return None
    begin = start + 1
    if size >= 0x80:
        cursor = ByteReader(data, start)
        _compact_size(cursor)
        begin = cursor.at
    if end > len(data):
        raise _missing()
    try:
        return str(data[begin:end], "utf-8")
    except UnicodeDecodeError:
        raise _not_text() from None


def _skip_synonyms(cursor: ByteReader, at: int) -> int:
    """None are requested; a broker that sends them is read past them."""
    cursor.at = at
    count = compact_count(cursor)
    at = cursor.at
    for _ in range(count):
        at = _skip_text(cursor.data, at)
        at = _skip_text(cursor.data, at) + 1
        at = skip_tags(cursor.data, at)
    return at


def _finish(cursor: ByteReader, at: int) -> None:
    if at > len(cursor.data):
        raise _missing()
    cursor.at = at


def _missing() -> DecodeError:
    return DecodeError("the settings of a topic end too early")


def _not_text() -> DecodeError:
    return DecodeError("a string is not UTF-8")
