"""Keeps the answer of a command in a local lake, to give it again while nothing has changed.

The key of an answer holds everything that it depends on. Where it cannot be read or written the
command does its work, so no failure matters here.
"""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

_MAX_BYTES: Final = 4 << 20
_MAX_FILES: Final = 10_000


class SavedAnswer:
    """The last answer of a name; both ``key`` and ``answer`` are JSON documents."""

    def __init__(self, lake: Path, name: str) -> None:
        self._file = lake / "answers" / f"{name}.json"

    def load(self, key: Any) -> Any | None:
        """Returns the answer that was saved with an equal key, or None."""
        try:
            if self._file.stat().st_size > _MAX_BYTES:
                return None
            saved = json.loads(self._file.read_bytes())
            return saved["answer"] if saved["key"] == _plain(key) else None
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def save(self, key: Any, answer: Any) -> None:
        """Replaces the answer; one that is too large is not kept."""
        text = json.dumps({"key": key, "answer": answer}).encode()
        if len(text) > _MAX_BYTES:
            return
        written = self._file.with_suffix(f".{os.getpid()}")
        try:
            self._file.parent.mkdir(exist_ok=True)
            written.write_bytes(text)
            written.replace(self._file)
        except OSError:
            written.unlink(missing_ok=True)


def _plain(document: Any) -> Any:
    """A document as it comes back from JSON."""
    return json.loads(json.dumps(document))


def fingerprint(paths: Iterable[Path]) -> list[tuple[str, int, int]] | None:
    """Returns name, size (bytes) and time of change (ns) of each file below some paths, sorted.

    None: they cannot all be looked at, or are more than a fingerprint is for.
    """
    files: list[tuple[str, int, int]] = []
    try:
        for file in _files(paths):
            status = file.stat()
            files.append((str(file.absolute()), status.st_size, status.st_mtime_ns))
            if len(files) > _MAX_FILES:
                return None
    except OSError:
        return None
    return sorted(files)


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        for root, directories, names in os.walk(path, onerror=_raise):
            yield from (Path(root, name) for name in names)
            if any(Path(root, name).is_symlink() for name in directories):
                raise OSError(f"{root} has links to directories")


def _raise(error: OSError) -> None:
    raise error
