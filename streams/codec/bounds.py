"""Bounds of texts and bytes that other processes wrote, before they go any further."""

from hashlib import sha256
from typing import Final

MAX_REASON: Final = 2_000
"""Characters of a reason or a detail: several lines of a log, and small in an alert."""

MAX_PAYLOAD: Final = 64 * 1024
"""Bytes of what could not be read that a dead letter keeps: enough to see what it was."""


def shorten(text: str, limit: int = MAX_REASON) -> str:
    """A text of at most ``limit`` characters, or its beginning with its length and digest."""
    if len(text) <= limit:
        return text
    whole = digest(text.encode(errors="replace"))
    mark = f"… ({len(text)} characters, SHA-256 {whole})"
    return text[: max(limit - len(mark), 0)] + mark


def digest(content: bytes) -> str:
    """The SHA-256 of bytes, in hexadecimal digits."""
    return sha256(content).hexdigest()
