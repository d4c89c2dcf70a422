r"""The words of a command line, as a POSIX shell has them; pure.

Quotes and backslashes are those of `shlex.split`, and ``#`` begins a comment where a word could
begin. There are no variables, patterns, pipes and redirections.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from featurewatch.cli.errors import UsageError

MAX_LINE_CHARS: Final = 100_000
"""A longer line is not a command; Linux itself takes 131,072 bytes of one argument."""

PROGRAM: Final = "featurewatch"
_OPERATORS: Final = frozenset({"|", "||", "&", "&&", ";", "<", ">", ">>", "2>", "2>&1"})
_SPACE: Final = " \t\r\n"


class Word(NamedTuple):
    """A word without its quotes; ``start`` is the place of its first character in the line."""

    text: str
    start: int


class Words(NamedTuple):
    """The words of a line; ``is_open``: a quotation or an escape is unfinished at its end.

    The last word is unfinished unless ``is_ended``. ``is_comment``: the line ends in a comment.
    """

    words: list[Word]
    is_open: bool
    is_ended: bool
    is_comment: bool = False


def split(line: str) -> Words:
    """The words of a line that may be unfinished."""
    words: list[Word] = []
    text: list[str] = []
    start = -1
    quote = ""
    is_escaped = False
    for place, sign in enumerate(line):
        if is_escaped:
            # Within double quotes a backslash is itself before what needs none.
            text.append(sign if not quote or sign in '"\\' else f"\\{sign}")
            is_escaped = False
        elif quote:
            if sign == quote:
                quote = ""
            elif sign == "\\" and quote == '"':
                is_escaped = True
            else:
                text.append(sign)
        elif sign in _SPACE:
            if start >= 0:
                words.append(Word("".join(text), start))
            text, start = [], -1
        elif sign == "#" and start < 0:
            return Words(words, is_open=False, is_ended=True, is_comment=True)
        else:
            start = place if start < 0 else start
            if sign in "'\"":
                quote = sign
            elif sign == "\\":
                is_escaped = True
            else:
                text.append(sign)
    if start >= 0:
        words.append(Word("".join(text), start))
    return Words(words, is_open=bool(quote) or is_escaped, is_ended=start < 0)


def arguments_of(line: str) -> list[str]:
    """The arguments of a whole line, without the name of the program; empty without a command.

    Raises:
        UsageError: It is too long, a quotation has no end, or it needs another shell.
    """
    if len(line) > MAX_LINE_CHARS:
        raise UsageError(f"a line of {len(line):,} characters is not a command")
    if "\0" in line:
        raise UsageError("a line with a NUL character is not a command")
    words, is_open, *_ = split(line)
    if is_open:
        raise UsageError("the line has a quotation mark or a backslash with nothing after it")
    arguments = [word.text for word in words]
    for argument in arguments:
        if argument in _OPERATORS:
            raise UsageError(
                f"this shell runs one command a line and has no {argument}: use featurewatch "
                "from your own shell for that"
            )
    return arguments[1:] if arguments[:1] == [PROGRAM] else arguments


def join_lines(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Each line with the number of its first part: a backslash at its end continues it."""
    parts: list[str] = []
    first = 1
    for number, part in enumerate(lines, start=1):
        if not parts:
            first = number
        text = part.rstrip("\r\n")
        if _is_continued(text):
            parts.append(text[:-1])
            if sum(map(len, parts)) <= MAX_LINE_CHARS:
                continue
        else:
            parts.append(text)
        yield first, "".join(parts)
        parts = []
    if parts:
        yield first, "".join(parts)


def _is_continued(line: str) -> bool:
    backslashes = len(line) - len(line.rstrip("\\"))
    return backslashes % 2 == 1 and not line.lstrip().startswith("#")
