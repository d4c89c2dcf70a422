"""The shell at a terminal: a thin layer on prompt_toolkit.

It is imported only where somebody types: the package is an extra, and takes long to import.
"""

import asyncio
import signal
import threading
from collections.abc import Iterable
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from featurewatch.cli.commands.shell.history_file import HistoryFile, default_path
from featurewatch.cli.commands.shell.line_runner import LineRunner, ShellEnd
from featurewatch.cli.commands.shell.names_reader import read_names
from featurewatch.cli.commands.shell.refresher import NamesRefresher
from featurewatch.cli.commands.shell.target import ShellTarget
from featurewatch.cli.commands.shell.words import join_lines
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.output.terminal import print_error, print_note

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.history import History


class Terminated(Exception):  # noqa: N818 - a signal, not a failure
    """SIGTERM came at the prompt."""


def require_terminal() -> None:
    """Raises `UsageError` if the package of the extra is not installed."""
    if find_spec("prompt_toolkit") is None:
        raise UsageError(
            "a shell at a terminal needs the package prompt_toolkit: "
            "pip install 'featurewatch[shell]'; without it, give -c LINE or lines on stdin"
        )


def run_terminal(target: ShellTarget) -> int:
    """Runs typed lines until the end of the input, which is good whatever they returned, or
    SIGTERM. Returns the exit code."""
    refresher = NamesRefresher(lambda: asyncio.run(read_names(target)))
    runner = LineRunner(
        target,
        lambda: refresher.error and f"names are not completed: {refresher.error}",
    )
    session = _prompt_session(refresher)
    print_note(f"Commands of {target.name}. Tab completes, help lists commands, Ctrl-D ends.")
    refresher.start()
    try:
        return _loop(session, runner, refresher, target.name)
    finally:
        refresher.stop()


def _loop(
    session: "PromptSession[str]", runner: LineRunner, refresher: NamesRefresher, name: str
) -> int:
    code = 0
    while True:
        try:
            text = _prompt(session, f"{name} [{code}]> " if code else f"{name}> ")
            for _, line in join_lines(text.split("\n")):
                code = runner.run(line)
                if code == ExitCode.TERMINATED:
                    # The signal was meant for the shell, whichever command ended at it in order.
                    return code
                refresher.request()
                if code:
                    break
        except KeyboardInterrupt:
            code = ExitCode.INTERRUPTED
        except Terminated:
            return ExitCode.TERMINATED
        except (EOFError, ShellEnd):
            return ExitCode.GOOD


def _prompt(session: "PromptSession[str]", label: str) -> str:
    """The typed line.

    SIGTERM ends the prompt in order, so that the terminal is left as it was before. Its handler
    only leaves a mark: an exception that it raised could be lost in a callback of the collector.
    Outside the prompt the signal has its default effect, or what a command makes of it.

    Raises:
        Terminated: SIGTERM came.
    """
    came = threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    def end() -> None:
        if came.is_set() and session.app.future is not None and not session.app.future.done():
            session.app.exit(exception=Terminated())

    def begin() -> None:
        loops.append(asyncio.get_running_loop())
        end()

    def terminate(_number: int, _frame: object) -> None:
        came.set()
        for loop in loops:
            with suppress(RuntimeError):  # it is closed: the prompt is over
                loop.call_soon_threadsafe(end)

    signal.signal(signal.SIGTERM, terminate)
    try:
        text = session.prompt(label, pre_run=begin)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if came.is_set():
        raise Terminated
    return text


def _prompt_session(refresher: NamesRefresher) -> "PromptSession[str]":
    from prompt_toolkit import PromptSession

    return PromptSession(
        completer=_completer(refresher),
        complete_in_thread=True,
        complete_while_typing=False,
        history=_history(HistoryFile(default_path())),
        enable_history_search=True,
    )


def _completer(refresher: NamesRefresher) -> "Completer":
    from prompt_toolkit.completion import Completer, Completion
    from prompt_toolkit.document import Document

    from featurewatch.cli.commands.shell.completion import complete

    class LineCompleter(Completer):
        """Candidates as prompt_toolkit takes them: plain texts, in which nothing is markup."""

        def get_completions(
            self,
            document: Document,
            complete_event: Any,  # noqa: ARG002 - the library calls it so
        ) -> Iterable[Completion]:
            """The candidates for the line before the cursor."""
            line = document.current_line_before_cursor
            for candidate in complete(line, refresher.names()):
                yield Completion(
                    candidate.text,
                    start_position=candidate.start - len(line),
                    display=[("", candidate.display)],
                    display_meta=[("", candidate.note)],
                )

    return LineCompleter()


def _history(file: HistoryFile) -> "History":
    from prompt_toolkit.history import History

    class StoredHistory(History):
        """The lines of a file; if that fails, those of this shell alone."""

        def __init__(self) -> None:
            super().__init__()
            self._is_broken = False

        def load_history_strings(self) -> Iterable[str]:
            """The lines of earlier shells, the latest first."""
            try:
                return list(reversed(file.read()))
            except OSError as error:
                self._warn(error)
                return []

        def store_string(self, string: str) -> None:
            """Stores what was typed, line by line."""
            try:
                for line in string.split("\n"):
                    if not self._is_broken:
                        file.append(line)
            except OSError as error:
                self._warn(error)

        def _warn(self, error: OSError) -> None:
            self._is_broken = True
            print_error(f"the history is not stored: {file.path}: {error.strerror or error}")

    return StoredHistory()
