"""The rows of a cluster's state as one value of bytes, as Spark keeps them.

Spark 4.2 copies a value several times on the way between Python and the state store, a map entry by
entry: the 400,000 partitions of a very large cluster, 250 bytes each, exhaust a heap of a gigabyte.
So it is bytes, and a large value is compressed.
"""

import zlib
from collections.abc import Mapping
from struct import Struct
from typing import Final

_SIZES: Final = Struct("<II")
"""The sizes of a row's name and value, in front of both."""
_PLAIN, _COMPRESSED = b"\x00", b"\x01"
"""The first byte of a value."""
_COMPRESSED_FROM: Final = 1 << 20
_LEVEL: Final = 1
"""The fastest; rows are JSON with the same names, and shrink to a tenth."""


def pack(rows: Mapping[str, bytes]) -> bytes:
    """Returns rows as one value."""
    parts = list[bytes]()
    for name, value in rows.items():
        encoded = name.encode()
        parts += (_SIZES.pack(len(encoded), len(value)), encoded, value)
    content = b"".join(parts)
    if len(content) < _COMPRESSED_FROM:
        return _PLAIN + content
    return _COMPRESSED + zlib.compress(content, _LEVEL)


def unpack(packed: bytes | bytearray) -> dict[str, bytes]:
    """Returns the rows of a value of `pack`; of no bytes, none.

    Raises:
        ValueError: It is not one.
    """
    content, rows, at = _content(bytes(packed)), dict[str, bytes](), 0
    while at < len(content):
        begin = at + _SIZES.size
        if begin > len(content):
            raise ValueError("a packed row has no sizes")
        name_size, value_size = _SIZES.unpack_from(content, at)
        middle, at = begin + name_size, begin + name_size + value_size
        if at > len(content):
            raise ValueError("a packed row is cut off")
        rows[content[begin:middle].decode()] = content[middle:at]
    return rows


def _content(packed: bytes) -> bytes:
    form = packed[:1]
    if form in (b"", _PLAIN):
        return packed[1:]
    if form != _COMPRESSED:
        raise ValueError(f"packed rows have the unknown form {form!r}")
    try:
        return zlib.decompress(packed[1:])
    except zlib.error as error:
        raise ValueError(f"packed rows are corrupt: {error}") from None
