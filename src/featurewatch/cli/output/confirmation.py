"""Confirms a change with the person at the terminal; the question goes to stderr."""

import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from featurewatch.cli.command_line import Exit
from featurewatch.cli.errors import ExitCode
from featurewatch.cli.output.terminal import print_error, print_note


def must_confirm(yes: bool) -> bool:
    """Whether a change needs a confirmation: at a terminal; else it is sent, as Kafka's tool
    does."""
    return not yes and sys.stdin.isatty()


def confirm(lines: Iterable[str], question: str = "Go on? [y/N] ") -> None:
    """Prints the lines and the question; returns if the reply is y or yes.

    Raises:
        Exit: Any other reply and the end of the input (1), or Ctrl-C (130).
    """
    try:
        with _interruptible():
            if _confirmed(lines, question):
                return
        code = ExitCode.FAILED
    except KeyboardInterrupt:
        print_note()
        code = ExitCode.INTERRUPTED
    print_error("nothing was sent, nothing is changed")
    raise Exit(code)


def _confirmed(lines: Iterable[str], question: str) -> bool:
    sys.stdout.flush()
    for line in lines:
        print_note(line)
    print_note(question, end="")
    answer = sys.stdin.readline()
    if not answer.endswith("\n") or not sys.stdin.isatty():
        print_note()
    return answer.strip().lower() in ("y", "yes")


@contextmanager
def _interruptible() -> Iterator[None]:
    """Lets Ctrl-C end a wait within the block.

    The handler of asyncio only marks the task, which learns of it when it awaits something.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
