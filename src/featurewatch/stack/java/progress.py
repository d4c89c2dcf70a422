"""Shows the progress of downloads on stderr: a bar on a terminal, plain lines otherwise."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn


class Reporter(Protocol):
    """Receives the progress of a download."""

    def on_phase(self, line: str) -> None:
        """A phase begins or ends; ``line`` describes it."""

    def on_files(self, done_count: int, total_count: int) -> None:
        """``done_count`` of ``total_count`` files are complete."""

    def on_received(self, size_bytes: int) -> None:
        """``size_bytes`` more bytes arrived."""


class _Lines:
    """Prints a handful of plain lines, for logs and pipes."""

    def __init__(self) -> None:
        self._last_quarter = 0
        self._bytes = 0

    def on_phase(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)  # noqa: T201 - this is the progress output

    def on_files(self, done_count: int, total_count: int) -> None:
        quarter = done_count * 4 // max(total_count, 1)
        if quarter != self._last_quarter:
            self._last_quarter = quarter
            self.on_phase(
                f"  {done_count} of {total_count} files, {self._bytes / 1e6:.0f} MB received"
            )

    def on_received(self, size_bytes: int) -> None:
        self._bytes += size_bytes


class _Bar:
    """Draws a progress bar with rich."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._files = progress.add_task("files", total=None)
        self._bytes = 0

    def on_phase(self, line: str) -> None:
        self._progress.update(self._files, description=line)

    def on_files(self, done_count: int, total_count: int) -> None:
        self._progress.update(self._files, completed=done_count, total=total_count)

    def on_received(self, size_bytes: int) -> None:
        self._bytes += size_bytes
        self._progress.update(self._files, received=f"{self._bytes / 1e6:.0f} MB")


@contextmanager
def on_stderr() -> Iterator[Reporter]:
    """A reporter that writes to stderr while the block runs."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[received]}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Bar(progress)
