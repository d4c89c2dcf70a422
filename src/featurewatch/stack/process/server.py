"""A server process that may stop and start while its directory and ports stay the same."""

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from featurewatch.stack.errors import StackError, StartError
from featurewatch.stack.java.jars import java_command
from featurewatch.stack.process.polling import attempts
from featurewatch.stack.process.process import Process

START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
_LOGGER = "-Dorg.slf4j.simpleLogger."


class Server(ABC):
    """A JVM that runs in a directory and writes its output to ``server.log`` there.

    With ``temporary`` the directory is removed if this process dies before stopping the server.
    """

    def __init__(self, directory: Path, *, temporary: bool) -> None:
        self.directory = directory
        self.log = directory / "server.log"
        self._temporary = temporary
        self._process: Process | None = None
        self._log_start = 0
        self._launched_s = time.monotonic()

    @abstractmethod
    def not_ready_reason(self) -> str | None:
        """Why the server is not ready yet; None if it is. Sends a request over the wire."""

    @property
    def running(self) -> bool:
        """Whether the process is alive; it need not be ready."""
        return self._process is not None and self._process.exit_code is None

    @property
    def exit_code(self) -> int | None:
        """The exit code of the last process, 128 + the signal if killed; None while it runs and
        before the first start."""
        return None if self._process is None else self._process.exit_code

    @property
    def pid(self) -> int | None:
        """The JVM's process id; None while it is stopped."""
        return self._process.pid if self._process is not None and self.running else None

    def wait_ready(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Returns when the server is ready.

        Raises:
            StartError: if it ends or is not ready within ``timeout_s``; with the reason from its
                log.
        """
        reason: str | None = None
        for _ in attempts(timeout_s):
            if (reason := self.not_ready_reason()) is None:
                return
            if not self.running:
                raise StartError(f"{self._end()} before it was ready: {self._log_reason()}")
        # Not what it was given: several servers share a deadline, and this may be the last of them.
        waited_s = time.monotonic() - self._launched_s
        raise StartError(f"{self} is not ready {waited_s:.0f} s after its start: {reason}")

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Sends SIGTERM and kills the process if it still runs after ``timeout_s``."""
        if self._process is None:
            return
        self._process.terminate()
        if self._process.wait(timeout_s) is None:
            self.kill()

    def terminate(self) -> None:
        """Sends SIGTERM and does not wait."""
        if self._process is not None:
            self._process.terminate()

    def kill(self) -> None:
        """Sends SIGKILL and returns when the process has ended.

        Raises:
            StackError: if it still exists after ten seconds.
        """
        if self._process is None:
            return
        self._process.kill()
        if self._process.wait(10.0) is None:
            raise StackError(f"{self} (pid {self._process.pid}) cannot be killed")

    def process_status(self) -> dict[str, Any]:
        """Whether the server runs and is ready, and why not, as plain data."""
        reason = self.not_ready_reason() if self.running else "it is not running"
        return {
            "running": self.running,
            "ready": reason is None,
            "missing": reason,
            "pid": self.pid,
            "log": str(self.log),
        }

    def require_stopped(self) -> None:
        """Checks that the server is down.

        Raises:
            StartError: if it runs.
        """
        if self.running:
            raise StartError(f"{self} runs already; stop it first")

    def require_running(self) -> None:
        """Checks that the server is up; it need not be ready.

        Raises:
            StackError: if it is not running; with its exit code and the reason from its log.
        """
        if not self.running:
            raise StackError(f"{self._end()}: {self._log_reason()}")

    def _launch(self, command: Sequence[str]) -> None:
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        self._launched_s = time.monotonic()
        self._process = Process(command, self.log, self.directory if self._temporary else None)

    def _end(self) -> str:
        code = self.exit_code
        return f"{self} is not running" if code is None else f"{self} ended with code {code}"

    def _log_reason(self) -> str:
        try:
            with self.log.open("rb") as log:
                log.seek(max(self._log_start, self.log.stat().st_size - (256 << 10)))
                reason = last_error_line(log.read().decode(errors="replace"))
        except OSError:
            reason = "it left no log"
        return f"{reason} (log: {self.log})"


def server_command(
    jars: list[Path], main_class: str, *args: str, heap_mb: int, options: Sequence[str] = ()
) -> list[str]:
    """The command line of a server with a small heap; ``options`` are extra Java options.

    Raises:
        JavaError: if no Java runtime is found.
    """
    return java_command(
        jars,
        main_class,
        *args,
        heap_mb=heap_mb,
        options=[
            "-Djava.net.preferIPv4Stack=true",
            f"{_LOGGER}showDateTime=true",
            f"{_LOGGER}dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS",
            *options,
        ],
    )


_EXCEPTION = re.compile(r"(?:^|[\s:])((?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error)(?:: .*)?)$")
_ERROR_MARK = re.compile(r"\b(?:ERROR|FATAL|error:)\b")


def last_error_line(output: str) -> str:
    """The line of a server's output that best explains its failure, cut to 400 characters.

    In order of preference: the last exception with a text, the last line marked as an error, the
    last exception, the last line.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    exceptions = [match.group(1) for line in lines if (match := _EXCEPTION.search(line))]
    explained = [line for line in exceptions if ": " in line]
    errors = [line for line in lines if _ERROR_MARK.search(line)]
    plain = [line for line in lines if not line.startswith(("at ", "..."))]
    for candidates in (explained, errors, exceptions, plain):
        if candidates:
            return candidates[-1][:400]
    return "it printed nothing"
