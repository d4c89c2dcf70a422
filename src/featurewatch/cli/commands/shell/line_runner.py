"""Runs the lines of a shell: each as the command that ``featurewatch`` would run."""

import sys
import traceback
from collections.abc import Callable
from typing import Final

import click

from featurewatch.cli.app import app
from featurewatch.cli.command_line import LazyGroup, run_command
from featurewatch.cli.commands.shell.catalogue import (
    BUILT_IN,
    LEAVING,
    OFFERED,
    SUMMARIES,
    command_of,
    shape_of,
)
from featurewatch.cli.commands.shell.place import place_behind
from featurewatch.cli.commands.shell.target import CONTROLLER, SERVER, ShellTarget
from featurewatch.cli.commands.shell.words import arguments_of
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.main import exit_code_of
from featurewatch.cli.output.terminal import print_error, print_line, print_note
from featurewatch.common.text import closest

_SIMILARITY: Final = 0.6


class ShellEnd(Exception):  # noqa: N818 - a wish, not a failure
    """A line ends the shell."""


class LineRunner:
    """Runs lines against one cluster. ``remark`` gives a line that ``help`` ends with, or none."""

    def __init__(self, target: ShellTarget, remark: Callable[[], str] = str) -> None:
        self._target = target
        self._remark = remark

    def run(self, line: str) -> int:
        """The exit code of a line; whatever fails, it returns. Empty lines are good.

        Raises:
            ShellEnd: The line is ``exit`` or ``quit``.
        """
        try:
            return exit_code_of(lambda: self._run(line))
        except ShellEnd:
            raise
        except SystemExit as error:
            return _code_of(error)
        except Exception:
            # A defect of one command must not affect the next one.
            for text in traceback.format_exc().splitlines():
                print_note(text)
            return ExitCode.FAILED

    def _run(self, line: str) -> int:
        arguments = arguments_of(line)
        if not arguments:
            return ExitCode.GOOD
        name, *others = arguments
        if name in LEAVING:
            if others:
                raise UsageError(f"{name} takes no arguments")
            raise ShellEnd
        if name == "help":
            return self._help(others)
        return self._command(name, others)

    def _command(self, name: str, arguments: list[str]) -> int:
        command = command_of((name,))
        if command is None:
            raise UsageError(_reason(name))
        self._target.check(arguments)
        self._check_route([name, *arguments])
        code = run_command(command, arguments, self._target.defaults(command))
        sys.stdout.flush()
        return code

    def _check_route(self, arguments: list[str]) -> None:
        """Raises `UsageError` for a command that only brokers serve, in a shell of controllers."""
        place = place_behind(arguments, shape_of)
        if place is None or place.shape.children:
            return
        options = {name for option in place.shape.options for name in option.names}
        if self._target.controllers and SERVER in options and CONTROLLER not in options:
            raise UsageError(
                f"{' '.join(place.path)} works through brokers: start a shell with {SERVER}"
            )

    def _help(self, path: list[str]) -> int:
        if path and path[0] in BUILT_IN:
            print_line(BUILT_IN[path[0]])
            return ExitCode.GOOD
        if path:
            command = command_of((path[0],))
            if command is None:
                raise UsageError(_reason(path[0]))
            return run_command(command, [*path[1:], "--help"])
        group = LazyGroup("shell", SUMMARIES, "")
        formatter = group.context_class(group, max_content_width=100).make_formatter()
        group.format_commands(click.Context(group), formatter)
        for text in formatter.getvalue().splitlines():
            print_line(text)
        print_line()
        print_line("`help COMMAND` and `COMMAND --help` show one. Tab completes.")
        if remark := self._remark():
            print_error(remark)
        return ExitCode.GOOD


def _reason(name: str) -> str:
    """The reason that the shell has no such command."""
    if name in app.summaries:
        return (
            f"{name} is not a command of this shell, which has those of one cluster: run "
            f"`featurewatch {name}` outside it"
        )
    close = closest(name, SUMMARIES, _SIMILARITY)
    return f"there is no command {name}: " + (
        f"did you mean {close}?" if close else f"{', '.join(OFFERED)} or help"
    )


def _code_of(error: SystemExit) -> int:
    if isinstance(error.code, int):
        return error.code
    return ExitCode.GOOD if error.code is None else ExitCode.FAILED
