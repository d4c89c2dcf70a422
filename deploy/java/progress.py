"""Progress of downloads on stderr: a bar on a terminal, plain lines otherwise."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn


class Reporter(Protocol):
    """What a download tells whoever waits for it."""

    def say(self, line: str) -> None:
        """Something that happens once: a phase begins or ends."""

    def files(self, done: int, total: int) -> None:
        """So many of so many files are there."""

    def received(self, size_bytes: int) -> None:
        """So many more bytes came in."""


class _Lines:
    """Plain lines, a handful in all, for logs and pipes."""

    def __init__(self) -> None:
        self._last_tenth = 0
        self._bytes = 0

    def say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)  # noqa: T201 - this is the progress output

    def files(self, done: int, total: int) -> None:
        tenth = done * 4 // max(total, 1)
        if tenth != self._last_tenth:
            self._last_tenth = tenth
            self.say(f"  {done} of {total} files, {self._bytes / 1e6:.0f} MB received")

    def received(self, size_bytes: int) -> None:
        self._bytes += size_bytes


class _Bar:
    """A bar that rich redraws."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._files = progress.add_task("files", total=None)
        self._bytes = 0

    def say(self, line: str) -> None:
        self._progress.update(self._files, description=line)

    def files(self, done: int, total: int) -> None:
        self._progress.update(self._files, completed=done, total=total)

    def received(self, size_bytes: int) -> None:
        self._bytes += size_bytes
        self._progress.update(self._files, received=f"{self._bytes / 1e6:.0f} MB")


@contextmanager
def on_stderr() -> Iterator[Reporter]:
    """A reporter for as long as the block lasts."""
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
