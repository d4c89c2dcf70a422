"""Runs ``python -m featurewatch.reference.zookeeper`` for tests that kill it or check its exit."""

import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from queue import Empty, Queue

READY_TIMEOUT_S = 60.0
END_TIMEOUT_S = 60.0


class ReferenceProcess:
    """Starts at once; `ready` waits for the line ``ready``."""

    def __init__(self, connect: str, *arguments: str) -> None:
        command = [
            sys.executable,
            "-m",
            "featurewatch.reference.zookeeper",
            "--zookeeper",
            connect,
            *arguments,
        ]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._lines: Queue[str] = Queue()
        self._errors: list[str] = []
        self._readers = [
            threading.Thread(target=self._read_stdout, daemon=True),
            threading.Thread(target=self._read_stderr, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def ready(self) -> dict[int, str]:
        """The addresses of its full nodes by id; `AssertionError` if it is not ready in time."""
        nodes: dict[int, str] = {}
        while (line := self._next()) != "ready":
            _, node_id, address = line.split()
            nodes[int(node_id)] = address
        return nodes

    def end(self) -> int:
        """Its exit code after it ended on its own; `subprocess.TimeoutExpired` if it does not
        end."""
        code = self._process.wait(END_TIMEOUT_S)
        for reader in self._readers:
            reader.join(END_TIMEOUT_S)
        return code

    @property
    def errors(self) -> str:
        """Its stderr so far."""
        return "".join(self._errors)

    def stop(self) -> int:
        """Ends it by SIGTERM; its exit code."""
        self._process.terminate()
        return self.end()

    def kill(self) -> None:
        """Kills it, as a power failure would."""
        self._process.kill()
        self.end()

    def _next(self) -> str:
        try:
            return self._lines.get(timeout=READY_TIMEOUT_S)
        except Empty:
            raise AssertionError(f"it does not get ready; it said: {self.errors}") from None

    def _read_stdout(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.strip())

    def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._errors.append(line)


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
        process.kill()
