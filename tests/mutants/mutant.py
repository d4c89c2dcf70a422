"""A bug that `tests.mutants` plants."""

from typing import NamedTuple


class Mutant(NamedTuple):
    """A bug: in ``file`` the text ``old`` becomes ``new``; the tests of ``row`` must fail."""

    row: str
    bug: str
    file: str
    old: str
    new: str
