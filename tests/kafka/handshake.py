"""The handshake of a scripted node, as bytes."""

import asyncio
import struct


def frame(body: bytes) -> bytes:
    """A length and a body."""
    return struct.pack(">i", len(body)) + body


V0_UNSUPPORTED = struct.pack(">hihhh", 35, 1, 18, 0, 3)
V3_ANSWER = (
    struct.pack(">h", 0)
    + b"\x03"  # two keys, compact
    + struct.pack(">hhh", 1, 0, 13)
    + b"\0"
    + struct.pack(">hhh", 18, 0, 3)
    + b"\0"
    + struct.pack(">i", 0)
    + b"\0"
)


async def read_request(reader: asyncio.StreamReader) -> tuple[int, int, int]:
    """Read a frame; gives API key, version and correlation id."""
    (length,) = struct.unpack(">i", await reader.readexactly(4))
    return struct.unpack(">hhi", (await reader.readexactly(length))[:8])
