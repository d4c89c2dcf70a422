"""The ends of the logs of what tests start, for whoever reads a failure."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from featurewatch.deploy.process.group import Group

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
    logs = {
        path: path.stat().st_mtime
        for directory in directories
        for path in directory.rglob("*.log")
        if path.is_file() and not path.stem.isdigit()  # digits: a segment of a Kafka log
    }
    latest = sorted(logs, key=lambda path: -logs[path])[:MAX_LOGS]
    return [(f"end of {path}", _end(path)) for path in latest]


def _end(path: Path) -> str:
    with path.open("rb") as log:
        log.seek(max(0, path.stat().st_size - _READ_BYTES))
        return "\n".join(log.read().decode(errors="replace").splitlines()[-LINES:])
