"""A child process that cannot outlive this one."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from featurewatch.stack.errors import StartError
from featurewatch.stack.process import guard


class Process:
    """A command under a guard (`stack.process.guard`), with stdout and stderr appended to a log.

    If this process dies before it has stopped the command, the guard removes the directory
    ``remove``, and its parent if that is then empty.
    """

    def __init__(self, command: Sequence[str], log: Path, remove: Path | None = None) -> None:
        """Starts the command.

        Raises:
            StartError: if the guard could not start the command.
        """
        control, self._control = os.pipe()
        script = str(Path(guard.__file__))
        arguments = [str(control), str(remove) if remove else "", *command]
        try:
            with log.open("ab") as output:
                self._guard = subprocess.Popen(
                    [sys.executable, "-I", "-S", script, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=output,
                    pass_fds=[control],
                    start_new_session=True,  # Ctrl-C in a terminal reaches the owner alone
                )
        finally:
            os.close(control)
        pid = b""
        if self._guard.stdout is not None:
            with self._guard.stdout as stdout:
                pid = stdout.readline()
        if not pid:
            self._close()
            raise StartError(f"{command[0]} could not be started; see {log}")
        self.pid = int(pid)

    @property
    def exit_code(self) -> int | None:
        """The exit code, 128 + the signal if killed; None while the command runs."""
        code = self._guard.poll()
        if code is not None:
            self._close()
            return code if code >= 0 else 128 - code
        return None

    def terminate(self) -> None:
        """Sends SIGTERM."""
        self._order(b"T")

    def kill(self) -> None:
        """Sends SIGKILL."""
        self._order(b"K")

    def wait(self, timeout_s: float) -> int | None:
        """Waits for the exit code; None if the command still runs after ``timeout_s``."""
        try:
            self._guard.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        return self.exit_code

    def _order(self, command: bytes) -> None:
        if self._control < 0:
            return
        try:
            os.write(self._control, command)
        except BrokenPipeError:
            return  # the guard has ended

    def _close(self) -> None:
        if self._control >= 0:
            os.close(self._control)
            self._control = -1
