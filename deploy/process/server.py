"""One server process that comes and goes, while its directory and its ports stay."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from featurewatch.deploy.errors import StackError, StartError
from featurewatch.deploy.java.jars import java_command
from featurewatch.deploy.process.polling import attempts
from featurewatch.deploy.process.process import Process

START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
_LOGGER = "-Dorg.slf4j.simpleLogger."


class Server(ABC):
    """A JVM under a directory, its output in ``server.log`` there.

    ``temporary``: the directory goes when this process dies without having stopped the server.
    """

    def __init__(self, directory: Path, *, temporary: bool) -> None:
        self.directory = directory
        self.log = directory / "server.log"
        self._temporary = temporary
        self._process: Process | None = None
        self._log_start = 0

    @abstractmethod
    def not_ready(self) -> str | None:
        """Why the server does not take part yet; None if it does. Asked over the wire."""

    @property
    def running(self) -> bool:
        """Whether the process lives (not: whether it is ready)."""
        return self._process is not None and self._process.exit_code is None

    @property
    def pid(self) -> int | None:
        """The JVM's process id while it runs."""
        return self._process.pid if self._process is not None and self.running else None

    def wait_ready(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Returns when the server takes part.

        Raises:
            StartError: if it ends or is not ready in time; with the reason from its log.
        """
        missing: str | None = None
        for _ in attempts(timeout_s):
            if (missing := self.not_ready()) is None:
                return
            if self._process is None or (code := self._process.exit_code) is not None:
                ended = "is not running" if self._process is None else f"ended with code {code}"
                raise StartError(f"{self} {ended} before it was ready: {self._log_reason()}")
        raise StartError(f"{self} is not ready after {timeout_s:.0f} s: {missing}")

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Asks it to shut down (SIGTERM), and kills it if it has not done so in time."""
        if self._process is None:
            return
        self._process.terminate()
        if self._process.wait(timeout_s) is None:
            self.kill()

    def ask_to_stop(self) -> None:
        """Sends SIGTERM and does not wait."""
        if self._process is not None:
            self._process.terminate()

    def kill(self) -> None:
        """Kills it (SIGKILL) and returns when it is gone.

        Raises:
            StackError: if the kernel does not let go of it in ten seconds.
        """
        if self._process is None:
            return
        self._process.kill()
        if self._process.wait(10.0) is None:
            raise StackError(f"{self} (pid {self._process.pid}) cannot be killed")

    def refuse_if_running(self) -> None:
        """Nothing, for a server that is down.

        Raises:
            StartError: if it runs.
        """
        if self.running:
            raise StartError(f"{self} runs already; stop it first")

    def _launch(self, command: Sequence[str]) -> None:
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        self._process = Process(command, self.log, self.directory if self._temporary else None)

    def _log_reason(self) -> str:
        try:
            with self.log.open("rb") as log:
                log.seek(max(self._log_start, self.log.stat().st_size - (256 << 10)))
                found = last_error_line(log.read().decode(errors="replace"))
        except OSError:
            found = "it left no log"
        return f"{found} (log: {self.log})"


def server_command(
    jars: list[Path], main_class: str, *args: str, heap_mb: int, options: Sequence[str] = ()
) -> list[str]:
    """The command line of a small server that logs with times; ``options`` are Java's."""
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


_SAID = re.compile(r"\b(?:ERROR|FATAL|error:)\b")


def last_error_line(output: str) -> str:
    """The last exception with a text, else the last line marked as an error, else the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    exceptions = [match.group(1) for line in lines if (match := _EXCEPTION.search(line))]
    explained = [found for found in exceptions if ": " in found]
    errors = [line for line in lines if _SAID.search(line)]
    plain = [line for line in lines if not line.startswith(("at ", "..."))]
    for candidates in (explained, errors, exceptions, plain):
        if candidates:
            return candidates[-1][:400]
    return "it said nothing"
