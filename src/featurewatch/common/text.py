"""Texts from peers, made safe for a line of a log, an event or a terminal. Pure."""

from collections.abc import Iterable
from hashlib import sha256
from typing import Final

MAX_DETAIL_CHARS: Final = 4_000
"""A detail of a status or a reason, in characters: what is longer lists thousands of nodes."""

MAX_NAME_CHARS: Final = 100
"""The longest name of a cluster, in characters."""

MAX_QUOTED_CHARS: Final = 200
"""A text of a peer that an error quotes, in characters."""


def plain(text: object) -> str:
    """Text from a cluster without terminal control characters."""
    text = str(text)
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def shortened(text: str, max_chars: int = MAX_DETAIL_CHARS) -> str:
    """The beginning of a text of more than ``max_chars`` characters, its length and digest.

    The result is shortened no further. A quotation of up to `MAX_QUOTED_CHARS` has no digest.
    """
    if len(text) <= max_chars:
        return text
    if max_chars <= MAX_QUOTED_CHARS:
        return f"{text[:max_chars]}... ({len(text)} characters)"
    digest = sha256(text.encode(errors="replace")).hexdigest()
    mark = f"... ({len(text)} characters, SHA-256 {digest})"
    return text[: max_chars - len(mark)] + mark


def quoted(text: str) -> str:
    """A peer's text inside an error: plain, and at most `MAX_QUOTED_CHARS` of it."""
    return shortened(plain(text), MAX_QUOTED_CHARS)


def closest(given: str, names: Iterable[str], similarity: float = 0.7) -> str:
    """The name that a misspelt one was probably meant to be, whatever its case; empty: none is
    close."""
    from difflib import get_close_matches  # here: only what is misspelt needs it

    by_lower = {name.lower(): name for name in sorted(names)}
    matches = get_close_matches(given.lower(), by_lower, 1, similarity)
    return by_lower[matches[0]] if matches else ""


def error_line(error: BaseException) -> str:
    """An unexpected error for people: its class and its text on one line."""
    return quoted(f"{type(error).__name__}: {error}".strip(": "))


def enumeration(parts: Iterable[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``; empty if there is none."""
    *first, last = tuple(parts) or ("",)
    return f"{', '.join(first)} and {last}" if first else last
