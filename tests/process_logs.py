"""The ends of the logs of what tests start, for whoever reads a failure."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from featurewatch.stack.process.group import Group

G = TypeVar("G", bound=Group)

LINES = 25
MAX_LOGS = 12
_READ_BYTES = 1 << 16


@contextmanager
def started(group: G) -> Iterator[G]:
    """The group as long as the block; the error of one that does not start shows its logs."""
    try:
        group.start()
    except BaseException as error:
        for title, text in log_ends([group.directory]):
            error.add_note(f"{title}\n{text}")
        group.close()
        raise
    try:
        yield group
    finally:
        group.close()


def log_ends(directories: Iterable[Path]) -> list[tuple[str, str]]:
    """Title and last lines of each log below the directories, the latest written first."""
    logs = {path: at_s for directory in directories for path, at_s in _logs_below(directory)}
    latest = sorted(logs, key=lambda path: -logs[path])[:MAX_LOGS]
    ends = ((path, _end(path)) for path in latest)
    return [(f"end of {path}", end) for path, end in ends if end is not None]


def _logs_below(directory: Path) -> Iterator[tuple[Path, float]]:
    """The logs below a directory, each with its time; a broker that runs may delete any of them."""
    for folder, _, names in os.walk(directory):  # passes over what it finds no more
        for name in names:
            path = Path(folder, name)
            # Digits are the name of a segment of a Kafka log.
            if path.suffix == ".log" and not path.stem.isdigit() and path.is_file():
                with contextlib.suppress(OSError):
                    yield path, path.stat().st_mtime


def _end(path: Path) -> str | None:
    """The last lines of a file (None: it was deleted)."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - _READ_BYTES))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-LINES:])
    except OSError:
        return None
