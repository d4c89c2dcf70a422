"""The cluster that ``reassign`` and ``elect`` change, and the lines of a failure."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from featurewatch.cli.admin_target import AdminTarget
from featurewatch.cli.command_line import Exit
from featurewatch.cli.errors import ExitCode
from featurewatch.cli.output.terminal import print_error, print_json_text, print_line, print_note

_RESULT = TypeVar("_RESULT")
_TERMINATED: Final = 143
"""SIGTERM, as shells count it."""


class Printer(NamedTuple):
    """Prints the lines of a tool on stdout, none where a document is printed instead."""

    as_json: bool

    def lines(self, lines: Iterable[str]) -> None:
        """Prints each line."""
        for line in lines:
            self.line(line)

    def line(self, text: str) -> None:
        """Prints one line."""
        if not self.as_json:
            print_line(text)

    def document(self, document: Callable[[], dict[str, Any]]) -> None:
        """Prints the document, if one is wanted."""
        if self.as_json:
            import json

            print_json_text(json.dumps(document(), indent=2, ensure_ascii=False))


@dataclass(frozen=True, slots=True)
class ToolTarget(AdminTarget):
    """The cluster of a command; ``fails_on_stderr``: the tool prints its failures there."""

    fails_on_stderr: bool = False

    @property
    def printer(self) -> Printer:
        """Prints the results."""
        return Printer(self.as_json)

    def run(self, work: Coroutine[Any, Any, _RESULT], *, shown_by: str = "") -> _RESULT:
        """Runs what reads the cluster, or with ``shown_by`` changes it.

        A failure is one line and an exit code. ``shown_by`` is the command that shows what is the
        case when the outcome is unknown. SIGTERM cancels the work, as Ctrl-C does, so that it is
        left in order.
        """
        from featurewatch.admin.api_errors import ResponseError
        from featurewatch.admin.errors import KafkaApiError
        from featurewatch.cli.kafka_tools.errors import KafkaToolError, api_failure

        with self.reported(shown_by, changes=bool(shown_by)):
            try:
                return self.run_loop(_until_terminated(work))
            except asyncio.CancelledError:
                raise Exit(_TERMINATED) from None
            except KafkaApiError as error:
                self.fail(api_failure(ResponseError(error.code, str(error), error.right)))
            except KafkaToolError as error:
                self.fail(error)
        raise AssertionError  # fail does not return

    def fail(self, error: Exception) -> None:
        """Ends the command with 1, as the tool does."""
        text, advice = str(error), getattr(error, "advice", "")
        if self.as_json:
            if text or advice:
                self.printer.document(lambda: {"error": text.removeprefix("Error: ") or advice})
        elif text:
            for line in text.split("\n"):
                (print_note if self.fails_on_stderr else print_line)(line)
        if advice:
            print_error(advice)
        raise Exit(ExitCode.FAILED)


async def _until_terminated(work: Coroutine[Any, Any, _RESULT]) -> _RESULT:
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await task
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


def required_file(path: Path | None, option: str) -> Path:
    """The file of an option that the tool demands; ends the command without one, as the tool."""
    if path is not None:
        return path
    print_note(f'Missing required argument "[{option}]"')
    raise Exit(ExitCode.FAILED)


def required_text(value: str | None, option: str) -> str:
    """The value of an option that the tool demands, as `required_file`."""
    if value is not None:
        return value
    print_note(f'Missing required argument "[{option}]"')
    raise Exit(ExitCode.FAILED)
