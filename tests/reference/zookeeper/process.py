"""Runs ``python -m featurewatch.reference.zookeeper`` for tests that kill it or check its exit."""

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from featurewatch.stack.process.polling import attempts
from featurewatch.stack.process.process import Process

READY_TIMEOUT_S = 60.0
END_TIMEOUT_S = 60.0


class ReferenceProcess:
    """Starts at once, and ends with this process; `ready` waits for the line ``ready``."""

    def __init__(self, connect: str, *arguments: str) -> None:
        command = [
            sys.executable,
            "-m",
            "featurewatch.reference.zookeeper",
            "--zookeeper",
            connect,
            *arguments,
        ]
        self._directory = Path(tempfile.mkdtemp(prefix="reference-"))
        self._log = self._directory / "output"
        self._process = Process(command, self._log, remove=self._directory)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def ready(self) -> dict[int, str]:
        """The addresses of its full nodes by id; `AssertionError` if it is not ready in time."""
        for _ in attempts(READY_TIMEOUT_S):
            lines = self.output.splitlines()
            if "ready" in lines:
                nodes = [line.split() for line in lines if line.startswith("node ")]
                return {int(words[1]): words[2] for words in nodes if len(words) == 3}
            if self._process.exit_code is not None:
                break
        raise AssertionError(f"it does not get ready; it said: {self.output}")

    def end(self) -> int:
        """Its exit code after it ended on its own; `AssertionError` if it does not end."""
        code = self._process.wait(END_TIMEOUT_S)
        assert code is not None, f"it does not end; it said: {self.output}"
        return code

    @property
    def output(self) -> str:
        """What it has written so far."""
        return self._log.read_text(errors="replace")

    def stop(self) -> int:
        """Ends it by SIGTERM; its exit code."""
        self._process.terminate()
        return self.end()

    def kill(self) -> None:
        """Kills it, as a power failure would."""
        self._process.kill()
        self.end()

    def close(self) -> None:
        """Kills it, and removes what it has written."""
        self.kill()
        shutil.rmtree(self._directory)


@contextmanager
def reference_process(
    connect: str, *arguments: str, features: Sequence[str] = ()
) -> Iterator[ReferenceProcess]:
    """A process that is killed after the block."""
    listed = ["--features", *features] if features else []
    process = ReferenceProcess(connect, *arguments, *listed)
    try:
        yield process
    finally:
        process.close()
