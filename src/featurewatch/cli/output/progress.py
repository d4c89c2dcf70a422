"""Shows the progress of a command, what is left, and how long that may take."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from featurewatch.cli.output.terminal import console, print_note
from featurewatch.common.progress import FIRST_BATCH, Progress, ProgressEvent

if TYPE_CHECKING:
    from rich.progress import TaskID

_TERMINAL_S: Final = 1.0
_LOG_S: Final = 10.0
"""Seconds between two lines of a step: on a terminal, and elsewhere."""


class ProgressPrinter:
    """Prints events of a command on stderr: with ``as_json`` each as a JSON line, else the first
    batch, and steps that take a while. Stdout is for the command's results."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._every_s = _TERMINAL_S if sys.stderr.isatty() else _LOG_S
        self._printed_s = 0.0

    def progress(self) -> Progress:
        """Returns the progress whose events are printed here."""
        return Progress(self.show, time.monotonic)

    def show(self, event: ProgressEvent) -> None:
        """Prints an event, if it is due."""
        if self._as_json:
            print_note(json.dumps(document(event)))
            return
        if event.step == FIRST_BATCH:
            print_note(
                f"featurewatch: first batch: {event.done:,} rows, after {event.seconds:.1f} s"
            )
            return
        if event.seconds < self._printed_s:
            self._printed_s = 0.0  # another step
        if event.seconds - self._printed_s >= self._every_s:
            self._printed_s = event.seconds
            print_note(f"featurewatch: {line(event)}")


def document(event: ProgressEvent) -> dict[str, object]:
    """Returns an event as a JSON document; times are in seconds."""
    fields = event._asdict()
    for name in ("seconds", "seconds_left"):
        if fields[name] is not None:
            fields[name] = round(fields[name], 1)
    return {"kind": "progress", **fields}


def line(event: ProgressEvent) -> str:
    """Returns an event as text."""
    text = f"{event.step}: {event.done:,} {event.unit} done"
    if event.left is not None:
        text += f", {event.left:,} left"
    return text + _estimate(event)


def _estimate(event: ProgressEvent) -> str:
    if event.seconds_left is None or not event.left:
        return ""
    return f", about {round(event.seconds_left)} s"


@contextmanager
def shown_progress() -> Iterator[Progress]:
    """A progress on stderr: on a terminal a bar with what is left, elsewhere lines."""
    if not sys.stderr.isatty():
        yield ProgressPrinter(as_json=False).progress()
        return
    # Here, since rich takes longer to import than most commands take.
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with RichProgress(*columns, console=console(stderr=True)) as bars:
        tasks: dict[str, TaskID] = {}

        def show(event: ProgressEvent) -> None:
            left = "" if event.left is None else f"{event.left:,} {event.unit} left"
            text = left + _estimate(event)
            if event.step not in tasks:
                tasks[event.step] = bars.add_task(event.step, total=None, left=text)
            total = None if event.left is None else event.done + event.left
            bars.update(tasks[event.step], total=total, completed=event.done, left=text)

        yield Progress(show, time.monotonic)
