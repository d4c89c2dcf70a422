"""Non-interactive lines: those of ``-c`` and of a script on stdin."""

import sys
from collections.abc import Iterable, Iterator
from typing import TextIO

from featurewatch.cli.commands.shell.line_runner import LineRunner, ShellEnd
from featurewatch.cli.commands.shell.words import MAX_LINE_CHARS, join_lines
from featurewatch.cli.errors import ExitCode
from featurewatch.cli.output.terminal import print_error
from featurewatch.common.text import error_line


def run_script(lines: Iterable[str], runner: LineRunner, *, numbered: bool) -> int:
    """Runs lines up to the first that fails; returns its exit code, or 0.

    ``numbered``: a line on stderr names the number of the one that failed.
    """
    try:
        for number, line in join_lines(lines):
            code = runner.run(line)
            if code:
                if numbered:
                    print_error(f"line {number} failed with exit code {code}: nothing after it ran")
                return code
    except ShellEnd:
        pass
    except UnicodeDecodeError as error:
        print_error(f"the lines are not text: {error_line(error)}")
        return ExitCode.USAGE
    return ExitCode.GOOD


def lines_of(stream: TextIO) -> Iterator[str]:
    """The lines of a stream as they come; of one that is too long only the beginning."""
    while line := stream.readline(MAX_LINE_CHARS + 2):
        yield line
        while not line.endswith("\n") and len(line) > MAX_LINE_CHARS:
            line = stream.readline(MAX_LINE_CHARS + 2)


def standard_lines() -> Iterator[str]:
    """The lines of stdin."""
    return lines_of(sys.stdin)
