"""Confirms a change with the person at the terminal; the question goes to stderr."""

import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NoReturn

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
        Exit: Any other reply and the end of the input (1), Ctrl-C (130) or SIGTERM (143).
    """
    try:
        with _interruptible():
            if _confirmed(lines, question):
                return
        code = ExitCode.FAILED
    except KeyboardInterrupt:
        print_note()
        code = ExitCode.INTERRUPTED
    except _Terminated:
        print_note()
        code = ExitCode.TERMINATED
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


class _Terminated(BaseException):
    """SIGTERM came while the question was open."""


@contextmanager
def _interruptible() -> Iterator[None]:
    """Lets Ctrl-C and SIGTERM end a wait within the block.

    The handlers of asyncio only mark the task, which learns of it when it awaits something.
    """
    own = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: _terminate}
    before = {number: signal.getsignal(number) for number in own}
    for number, handler in own.items():
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, handler)
    try:
        yield
    finally:
        for number, handler_before in before.items():
            signal.signal(number, handler_before)


def _terminate(_number: int, _frame: object) -> NoReturn:
    raise _Terminated
