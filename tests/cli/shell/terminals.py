"""A shell at a real terminal: the process under a pty, and what the terminal shows."""

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.commands import environment
from tests.waiting import eventually

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>()][A-Z0-9]?|\x1b\][^\x07]*\x07")
_CURSOR_REQUEST = b"\x1b[6n"
_PROMPT = b"\x1b[?2004h"
"""Bracketed paste, which each prompt turns on when it takes keys."""


class ShellTerminal:
    """The master side of a shell's terminal; ``text`` is what was written, without styles."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self.written = b""
        self._master = master
        self._prompt_count = 0
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def text(self) -> str:
        """What was written, without what moves the cursor or colours."""
        return _CONTROL.sub("", self.written.decode(errors="replace"))

    def type(self, keys: str) -> None:
        """Types keys."""
        os.write(self._master, keys.encode())

    def enter(self, line: str) -> None:
        """Types a line."""
        self.type(f"{line}\r")

    def prompts(self, label: str) -> None:
        """Returns when the next prompt has come, which begins so, and keys are taken again."""
        self._prompt_count += 1
        assert eventually(lambda: self.written.count(_PROMPT) >= self._prompt_count), self.text[
            -2_000:
        ]
        self.shows(label)

    def shows(self, text: str, count: int = 1) -> None:
        """Returns when a text was written so often. Of what is typed only changes are written."""
        assert eventually(lambda: self.text.count(text) >= count), self.text[-2_000:]

    def ends(self) -> int:
        """The exit code, when the shell has ended."""
        return self.process.wait(120)

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while part := os.read(self._master, 65_536):
                self.written += part
                if _CURSOR_REQUEST in part:
                    os.write(self._master, b"\x1b[1;1R")


@contextmanager
def shell_terminal(directory: Path, *arguments: str, **own: str) -> Iterator[ShellTerminal]:
    """A shell that runs at a terminal of its own until the block ends."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "featurewatch", "shell", *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=directory,
        env=environment(directory, TERM="xterm", COLUMNS="", LINES="", **own),
        start_new_session=True,
        preexec_fn=lambda: _control(slave),  # noqa: PLW1509 - nothing runs beside it here
    )
    os.close(slave)
    try:
        yield ShellTerminal(process, master)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
        os.close(master)


def _control(terminal: int) -> None:
    """Makes it the controlling terminal, so that Ctrl-C is a signal."""
    import fcntl
    import termios

    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    termios.tcsetwinsize(terminal, (40, 120))
