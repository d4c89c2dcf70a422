"""featurewatch's own processes, as a user starts them, for tests that kill them."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from featurewatch.stack.process.ports import Ports

_DEADLINE_S = 180.0
_PORTS = Ports()


class Process:
    """A command of featurewatch that is started again whenever it ends; stderr goes to a file.

    ``wrapper`` is a command that runs it, ``program`` what Python runs before its arguments.
    """

    def __init__(
        self,
        name: str,
        arguments: list[str],
        directory: Path,
        environment: Mapping[str, str] | None = None,
        wrapper: Sequence[str] = (),
        program: Sequence[str] = ("-m", "featurewatch"),
    ) -> None:
        self.name = name
        self.starts = 0
        self.port = free_port()
        self.log = directory / f"{name}.log"
        self._command = [*wrapper, sys.executable, *program, *arguments]
        self.environment: dict[str, str] = {
            **os.environ,
            "FEATUREWATCH_WORKER__DATA_DIRECTORY": str(directory / name),
            "FEATUREWATCH_WEB__WORKER_PORT": str(self.port),
            "FEATUREWATCH_WEB__SOURCE_PORT": str(self.port),
            "FEATUREWATCH_WEB__PAGE_PORT": str(self.port),
            **(environment or {}),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, if it does not run."""
        if self._process is not None and self._process.poll() is None:
            return
        self.starts += 1
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, env=self.environment, stderr=log)

    def kill(self) -> None:
        """Ends it as a power cut would."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    @property
    def pid(self) -> int:
        """The process id of what runs now."""
        if self._process is None:
            raise RuntimeError(f"{self.name} was not started")
        return self._process.pid

    @property
    def ended(self) -> int | None:
        """The exit code if it ended on its own (None: it runs, or was killed by us)."""
        code = None if self._process is None else self._process.poll()
        return None if code == -signal.SIGKILL else code


def wait_ready(processes: list[Process], timeout_s: float = _DEADLINE_S) -> None:
    """Waits until each process says on ``/readyz`` that it is ready."""
    deadline = time.monotonic() + timeout_s
    for process in processes:
        while not is_ready(process.port):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{process.name} is not ready:\n{process.log.read_text()}")
            time.sleep(0.1)


def is_ready(port: int) -> bool:
    """Whether a process answers on ``/readyz`` that it is ready."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def free_port() -> int:
    """A port of the loopback interface that nobody else gets while the tests run.

    One that the kernel gives out may be an outgoing connection's by the time it is listened on.
    """
    return _PORTS.reserve()


@contextlib.contextmanager
def popen(command: list[str], **how: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that has ended afterwards, however the test ends; `Popen` alone would wait."""
    with subprocess.Popen(command, text=True, **how) as process:
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def killed_at_random(
    processes: list[Process], seed: int, pause_s: tuple[float, float], at_least: int = 1
) -> Iterator[None]:
    """Kills one of the processes every now and then, and starts it again at once.

    After every other kill the pause begins when the process is ready: one that was only ever killed
    while it starts, as on a busy machine, would show nothing. When the block has ended, kills
    continue until each process was killed ``at_least`` this many times.
    """
    chance = random.Random(seed)
    stop = threading.Event()
    kills = {process.name: 0 for process in processes}

    def kill() -> None:
        while not stop.wait(chance.uniform(*pause_s)) or min(kills.values()) < at_least:
            victim = chance.choice(processes)
            if stop.is_set():
                time.sleep(pause_s[0])
                victim = min(processes, key=lambda process: kills[process.name])
            victim.kill()
            kills[victim.name] += 1
            victim.start()
            if kills[victim.name] % 2 == 0:
                _wait_ready_or(stop, victim)

    for process in processes:
        process.start()
    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _wait_ready_or(stop: threading.Event, process: Process) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    while not is_ready(process.port) and time.monotonic() < deadline and not stop.wait(0.1):
        pass


def is_alive(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        os.kill(pid, 0)
        status = Path(f"/proc/{pid}/stat")
        return not status.exists() or status.read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
