"""``featurewatch pipeline`` as a process of the tests, and what it left in a lake."""

import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from featurewatch.pipeline.lake.tables import Table
from featurewatch.pipeline.spark.session import BRIEF_JVM
from featurewatch.streams.events import Event
from featurewatch.streams.types import ClusterId
from tests.agents.events import levels

TIMEOUT_S = 600.0
NOTES = ("NOTE: Picked up JDK_JAVA_OPTIONS", "WARNING: Using incubator modules")
"""Lines that Java prints about its own options."""
PROGRESS = re.compile(r'\{"kind": "progress", |featurewatch: first batch: |.* (rows|parts) done')
"""How far a command has come; whether it tells depends on how busy the machine is."""


class Command:
    """``featurewatch pipeline …`` as a process; stdout and stderr go to files."""

    def __init__(self, directory: Path, *arguments: str, largest: int | None = None) -> None:
        directory.mkdir()
        self.directory = directory
        environment = {**os.environ, "JDK_JAVA_OPTIONS": BRIEF_JVM, "TMPDIR": str(directory)}
        command = [sys.executable, "-m", "featurewatch", "pipeline", *arguments]
        with (directory / "out").open("wb") as out, (directory / "err").open("wb") as err:
            self._process = subprocess.Popen(command, env=environment, stdout=out, stderr=err)
        if largest is not None:
            # Limits the size of files, which acts like a full disk.
            resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (largest, largest))

    def out(self) -> list[str]:
        """The lines on stdout."""
        return (self.directory / "out").read_text().splitlines()

    def err(self) -> list[str]:
        """The lines on stderr that are neither Java's own notes nor the progress."""
        return [line for line in self._err() if not PROGRESS.match(line)]

    def _err(self) -> list[str]:
        lines = (self.directory / "err").read_text().splitlines()
        return [line for line in lines if not line.startswith(NOTES)]

    def until(self, reached: Callable[[], bool]) -> None:
        """Waits for a condition while the process runs."""
        deadline = time.monotonic() + TIMEOUT_S
        while not reached():
            assert self._process.poll() is None, "\n".join(self.err()[-60:])
            assert time.monotonic() < deadline, self.err()
            time.sleep(0.01)

    def end(self, number: int | None = None) -> int:
        """Sends a signal if there is one, and returns the exit code."""
        if number is not None:
            self._process.send_signal(number)
        return self._process.wait(TIMEOUT_S)

    def children(self) -> list[int]:
        """The process ids of the JVMs that it started."""
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/children")
        pids = [child for file in tasks for child in file.read_text().split()]
        return [int(pid) for pid in pids if b"java" in Path(f"/proc/{pid}/cmdline").read_bytes()]

    def close(self) -> None:
        """Ends it if it still runs."""
        if self._process.poll() is None:
            self.end(signal.SIGKILL)


@contextmanager
def running(directory: Path, *arguments: str, largest: int | None = None) -> Iterator[Command]:
    """A process of the command that has ended after the block."""
    command = Command(directory, *arguments, largest=largest)
    try:
        yield command
    finally:
        command.close()


def commits(root: str, table: Table) -> int:
    """The number of commits of a table."""
    return len([*Path(root, table.path).glob("_delta_log/*.json")])


def read(root: str, table: Table, *columns: str) -> list[tuple[Any, ...]]:
    """Some columns of a table, read without a JVM, sorted."""
    if not commits(root, table):
        return []
    collected = DeltaTable(f"{root}/{table.path}").to_pyarrow_table(columns=[*columns]).to_pylist()
    return sorted((tuple(row[name] for name in columns) for row in collected), key=repr)


def some(count: int, first: int = 0) -> list[Event]:
    """Events of several clusters, each with a unique id."""
    return [
        levels(at * 10, {"metadata.version": at % 20 + 1}, ClusterId(f"cluster-{at % 7}"))
        for at in range(first, first + count)
    ]
