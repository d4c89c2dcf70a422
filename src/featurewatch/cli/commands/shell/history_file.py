"""The lines of earlier shells, in a file that only its owner may read."""

import os
import re
from pathlib import Path
from typing import Final

from featurewatch.cli.commands.shell.words import MAX_LINE_CHARS

MAX_BYTES: Final = 1 << 20
MAX_LINES: Final = 5_000
_SECRET: Final = re.compile(r"passw|secret|token|credential|jaas|private|ssl\.key", re.IGNORECASE)
"""Names of secrets. Login properties belong in a file, but a line may hold anything."""


def default_path() -> Path:
    """``featurewatch/shell-history`` in the XDG state directory."""
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser().absolute() / "featurewatch" / "shell-history"


def is_stored(line: str) -> bool:
    """Whether a line goes to the file: not one that may hold a secret, or begins with a space."""
    return (
        bool(line.strip())
        and not line.startswith((" ", "\t"))
        and len(line) <= MAX_LINE_CHARS
        and _SECRET.search(line) is None
    )


class HistoryFile:
    """One line a command, the latest last. Several shells may append to it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[str]:
        """The lines; none if there is no file. One that has grown too long loses its first half.

        Raises:
            OSError: It cannot be read, or made private.
        """
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return []
        with os.fdopen(descriptor, "r+b") as file:
            os.fchmod(file.fileno(), 0o600)
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - MAX_BYTES))
            content = file.read(MAX_BYTES)
            if size > MAX_BYTES:
                content = content[MAX_BYTES // 2 :].partition(b"\n")[2]
                file.seek(0)
                file.write(content)
                file.truncate()
        lines = content.decode(errors="replace").split("\n")
        return [line for line in lines if line][-MAX_LINES:]

    def append(self, line: str) -> None:
        """Stores a line, unless `is_stored` refuses it; raises `OSError`."""
        if not is_stored(line):
            return
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self.path, flags, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            file.write(" ".join(line.splitlines()).encode(errors="replace") + b"\n")
