"""A bug that `tests.mutants` plants."""

from typing import Final, NamedTuple

OF_KAFKA_ITSELF: Final = frozenset({"M-02", "M-26", "M-43", "M-44", "M-51", "M-55", "M-66", "M-69"})
"""The rows about what Kafka's own processes do: tests with the stack show them, and none of our
code carries them."""


class Mutant(NamedTuple):
    """A bug: in ``file`` the text ``old`` becomes ``new``; the tests of ``row`` must fail."""

    row: str
    bug: str
    file: str
    old: str
    new: str
