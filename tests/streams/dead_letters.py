"""Reads dead letters, which nothing in the product does."""

from featurewatch.streams.codec.events import decode
from featurewatch.streams.events import DeadLetter
from featurewatch.streams.topics import DEAD_LETTERS


def decode_dead_letter(value: bytes | None, key: bytes | None = None) -> DeadLetter:
    """The dead letter of a message's value."""
    letter = decode(DEAD_LETTERS, value, key)
    assert isinstance(letter, DeadLetter)
    return letter
