"""Record batches of a metadata log for tests, from a few characters.

``0-3@1`` is a batch of offsets 0 to 3 in leader epoch 1, ``4@1`` one of a single record.
"""

import struct
from functools import lru_cache

from crc32c import crc32c

NOOP = bytes([0x01, 20, 0, 0])
"""Frame version 1, NoOpRecord, version 0, no tags."""


def varint(value: int) -> bytes:
    """A zigzag varint."""
    raw = (value << 1) ^ (value >> 63)
    out = bytearray()
    while raw >= 0x80:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def record(delta: int, value: bytes, key: bytes | None = None) -> bytes:
    """One record of a batch."""
    keyed = varint(-1) if key is None else varint(len(key)) + key
    body = b"\0" + varint(0) + varint(delta) + keyed + varint(len(value)) + value + varint(0)
    return varint(len(body)) + body


def batch(
    first: int,
    values: list[bytes],
    epoch: int,
    append_ms: int = 0,
    key: bytes | None = None,
) -> bytes:
    """A batch of data records, or of control records where there is a key."""
    last = len(values) - 1
    control = 0x20 if key is not None else 0
    checked = struct.pack(
        ">hiqqqhii", control, last, append_ms, append_ms, -1, -1, -1, len(values)
    ) + b"".join(record(delta, value, key) for delta, value in enumerate(values))
    rest = struct.pack(">ibI", epoch, 2, crc32c(checked)) + checked
    return struct.pack(">qi", first, len(rest)) + rest


@lru_cache(4096)
def log(text: str) -> bytes:
    """The batches that ``text`` names, of NoOpRecords."""
    out = b""
    for part in text.split():
        offsets, _, epoch = part.partition("@")
        first, _, last = offsets.partition("-")
        count = int(last or first) - int(first) + 1
        out += batch(int(first), [NOOP] * count, int(epoch))
    return out
