"""Java properties, as ``java.util.Properties`` stores and loads them."""

import re
from collections.abc import Iterator
from typing import Final

_LINE_END: Final = re.compile(r"\r\n?|\n")
_BLANK: Final = " \t\f"
_PAIR: Final = re.compile(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*[=:]?(.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_NAMED: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}


def properties_in(content: bytes) -> dict[str, str]:
    """The properties of a file's content. Nothing is raised on any content."""
    return dict(pair_in(line) for _, line in lines_in(content))


def lines_in(content: bytes) -> Iterator[tuple[int, str]]:
    r"""Lines joined with their continuations, numbered by the first; no comments, no empty lines.

    Java writes Latin-1; all else, and ``=``, ``:``, ``#``, ``!`` and the backslash, is escaped.
    """
    natural = _LINE_END.split(content.decode("latin-1"))
    lines = enumerate((line.lstrip(_BLANK) for line in natural), start=1)
    for number, line in lines:
        if not line or line[0] in "#!":
            continue
        whole = line
        while (len(whole) - len(whole.rstrip("\\"))) % 2:
            whole = whole[:-1] + next(lines, (0, ""))[1]
        yield number, whole


def pair_in(line: str) -> tuple[str, str]:
    """The name and the value in one of `lines_in`; a line without a separator has no value."""
    match = _PAIR.match(line)
    assert match is not None  # noqa: S101 - it takes anything, and nothing too
    return _plain(match[1]), _plain(match[2].strip(_BLANK))


def _plain(text: str) -> str:
    return _ESCAPE.sub(
        lambda match: chr(int(match[1], 16)) if match[1] else _NAMED.get(match[2], match[2]), text
    )
