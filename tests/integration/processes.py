"""featurewatch's own processes, as a user starts them, for tests that kill them."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path


class Process:
    """A command of featurewatch that is started again whenever it ends; stderr goes to a file."""

    def __init__(self, name: str, arguments: list[str], directory: Path) -> None:
        self.name = name
        self.starts = 0
        self.log = directory / f"{name}.log"
        self._command = [sys.executable, "-m", "cli", *arguments]
        self._environment = {
            **os.environ,
            "FEATUREWATCH_WORKER__DATA_DIRECTORY": str(directory / name),
            "FEATUREWATCH_WEB__WORKER_PORT": "0",
            "FEATUREWATCH_WEB__SOURCE_PORT": "0",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, if it does not run."""
        if self._process is not None and self._process.poll() is None:
            return
        self.starts += 1
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, env=self._environment, stderr=log)

    def kill(self) -> None:
        """Ends it as a power cut would."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    @property
    def ended(self) -> int | None:
        """The exit code if it ended by itself (None: it runs, or was killed by us)."""
        code = None if self._process is None else self._process.poll()
        return None if code == -signal.SIGKILL else code


@contextlib.contextmanager
def killed_at_random(
    processes: list[Process], seed: int, pause_s: tuple[float, float]
) -> Iterator[None]:
    """Kills one of the processes every now and then, and starts it again at once."""
    chance = random.Random(seed)
    stop = threading.Event()

    def kill() -> None:
        while not stop.wait(chance.uniform(*pause_s)):
            victim = chance.choice(processes)
            victim.kill()
            victim.start()

    for process in processes:
        process.start()
    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
