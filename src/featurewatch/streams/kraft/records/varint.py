"""Kafka's variable-length integers (``ByteUtils``): seven bits a byte, the least first.

Positions are indexes into ``buffer``. Reading past its end raises ``IndexError``, which the callers
report as a record that is cut off.
"""

from featurewatch.streams.kraft.errors import RecordDecodeError

_MAX_UINT32 = 0xFFFF_FFFF


def uvarint(buffer: bytes, at: int) -> tuple[int, int]:
    """An unsigned 32-bit number at ``at``, and the position after it.

    Raises `RecordDecodeError` when it takes more than five bytes or 32 bits.
    """
    value = shift = 0
    while True:
        byte = buffer[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > _MAX_UINT32:
                raise RecordDecodeError("a variable-length number has more than 32 bits")
            return value, at
        shift += 7
        if shift > 28:
            raise RecordDecodeError("a variable-length number takes more than five bytes")


def varint(buffer: bytes, at: int) -> tuple[int, int]:
    """A signed (zigzag) 32-bit number at ``at``, and the position after it; raises as `uvarint`."""
    value, at = uvarint(buffer, at)
    return (value >> 1) ^ -(value & 1), at


def write_uvarint(value: int) -> bytes:
    """The bytes of an unsigned number."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def write_varint(value: int) -> bytes:
    """The bytes of a signed (zigzag) number."""
    return write_uvarint(value << 1 if value >= 0 else (-value << 1) - 1)
