"""The only output to the terminal: control sequences that clusters send are shown, not obeyed.

Only here do commands write to the standard streams. Texts of nodes, topics and files pass through
`featurewatch.common.text.plain`, rich's output too.
"""

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, TextIO

from featurewatch.common.text import plain

if TYPE_CHECKING:
    from rich.console import Console

# rich takes longer to import than most commands take: it is imported where it is used.


class Notes:
    """Where lines for stderr go: there, or to the log once that has all of stderr."""

    def __init__(self) -> None:
        self._write: Callable[..., None] | None = None

    @property
    def is_redirected(self) -> bool:
        """Whether they go to the log."""
        return self._write is not None

    def redirect(self, write: Callable[..., None] | None) -> None:
        """Calls ``write`` with each line and with ``is_error``; None: lines go to stderr."""
        self._write = write

    def line(self, text: str, *, is_error: bool, prefix: str = "") -> None:
        """Writes one line; ``prefix`` is before it on stderr only."""
        if self._write is None:
            _write(sys.stderr, prefix + text)
        elif text:
            self._write(text, is_error=is_error)


notes: Final = Notes()
"""The lines of this process for stderr."""


def print_line(text: str = "") -> None:
    """One line to stdout, at once; tabs stay, line breaks within it do not."""
    _write(sys.stdout, text)


def print_lines(lines: Iterable[str]) -> None:
    """Lines to stdout, all at once where it is no terminal; also those before an exception."""
    try:
        for line in lines:
            sys.stdout.write(_plain_line(line))
    finally:
        sys.stdout.flush()


def print_error(text: str) -> None:
    """One line to stderr, with the program's name."""
    notes.line(text, is_error=True, prefix="featurewatch: ")


def print_notice(text: str) -> None:
    """One line to stderr about what is no error, such as an address, with the program's name."""
    notes.line(text, is_error=False, prefix="featurewatch: ")


def print_note(text: str = "", end: str = "\n") -> None:
    """One line to stderr as it is, or with another ``end`` a question."""
    if end == "\n":
        notes.line(text, is_error=False)
    else:
        _write(sys.stderr, text, end)


def print_json_text(document: str) -> None:
    """A JSON document to stdout; line breaks are its layout.

    What a terminal would obey inside its strings is escaped, which changes no value.
    """
    sys.stdout.write("\n".join(map(_escaped, document.split("\n"))) + "\n")
    sys.stdout.flush()


def console(*, stderr: bool = False) -> "Console":
    """A console of rich on a standard stream; wide where it is no terminal, so that lines are not
    broken."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class PlainConsole(Console):
        """Styles are rich's own; of texts only what can be printed is written."""

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            """The segments, with plain texts."""
            for segment in super().render(renderable, options):
                if segment.control:
                    yield segment
                else:
                    yield segment._replace(text="\n".join(map(plain, segment.text.split("\n"))))

    stream = sys.stderr if stderr else sys.stdout
    return PlainConsole(width=None if stream.isatty() else 160, highlight=False, stderr=stderr)


def _write(stream: TextIO, text: str, end: str = "\n") -> None:
    stream.write(_plain_line(text, end))
    stream.flush()


def _plain_line(text: str, end: str = "\n") -> str:
    return "\t".join(map(plain, text.split("\t"))) + end


def _escaped(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(sign if sign.isprintable() else _json_escape(sign) for sign in line)


def _json_escape(sign: str) -> str:
    code = ord(sign)
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
