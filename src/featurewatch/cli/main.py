"""Runs the command ``featurewatch``, as the arguments of the process name it."""

import gc
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.output.terminal import notes, print_error

if TYPE_CHECKING:
    from click import ClickException


def main() -> None:
    """Runs the command and ends the process; expected failures are one line on stderr."""
    sys.exit(exit_code_of(_run))


def exit_code_of(run: Callable[[], int]) -> int:
    """Runs a command; an expected failure is one line, a defect is raised."""
    try:
        return run()
    except UsageError as error:
        print_error(str(error))
        return ExitCode.USAGE
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except Exception as error:
        text, code = _expected(error)
        if text is None:
            raise
        print_error(text)
        return code


def _run() -> int:
    # Objects of modules live until exit: disable the collector while they load, and freeze them
    # afterwards, so that no later collection, not even the one at exit, has to look at them.
    gc.disable()
    from featurewatch.cli.app import app
    from featurewatch.cli.command_line import run_command

    gc.freeze()
    gc.enable()
    return run_command(app, show=_show)


def _show(error: "ClickException") -> None:
    """Prints an error of usage, or logs it where stderr is the log's."""
    if notes.is_redirected:
        print_error(error.format_message())
    else:
        error.show()


def _expected(error: Exception) -> tuple[str | None, ExitCode]:
    """The line for an expected failure (None for a defect), and the exit code."""
    # Here, so that a command that succeeds need not import the errors of others.
    from featurewatch.common.http.errors import PortTakenError, WebConfigError
    from featurewatch.pipeline.errors import PipelineError
    from featurewatch.stack.errors import StackError
    from featurewatch.streams.bus.errors import BusError, BusPropertiesError

    if isinstance(error, PortTakenError):
        return f"{error} (web.source_port, web.worker_port and web.page_port)", ExitCode.FAILED
    if isinstance(error, BusPropertiesError):
        return str(error), ExitCode.USAGE
    expected = BusError | PipelineError | StackError | WebConfigError
    return (str(error) if isinstance(error, expected) else None), ExitCode.FAILED
