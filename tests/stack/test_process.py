"""Child processes do not outlive their owner, however it ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from featurewatch.stack.process.process import Process
from tests.paths import ROOT, SRC
from tests.processes import is_alive
from tests.waiting import DEADLINE_S, eventually


@pytest.fixture
def owner() -> Iterator[Callable[[str], tuple[subprocess.Popen[str], list[int]]]]:
    """Runs Python code as an owner process; the first line that it prints is process ids."""
    started: list[subprocess.Popen[str]] = []

    def run(code: str) -> tuple[subprocess.Popen[str], list[int]]:
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(SRC)},
        )
        started.append(process)
        assert process.stdout is not None
        return process, [int(word) for word in process.stdout.readline().split()]

    yield run
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


SLEEPER = """
import sys, time, os, threading
from pathlib import Path
from featurewatch.stack.process.process import Process
home = Path({home!r})
started = []
thread = threading.Thread(target=lambda: started.append(
    Process(["sleep", "600"], home.parent.parent / "log", {remove})))
thread.start(); thread.join()
{then}
print(started[0].pid, *{extra_pids}, flush=True)
time.sleep(600)
"""


def sleeper(tmp_path: Path, then: str = "", extra_pids: str = "[]") -> str:
    """The code of an owner: a guarded ``sleep``, started by a thread that then ends."""
    home = tmp_path / "outer" / "home"
    home.mkdir(parents=True)
    return SLEEPER.format(home=str(home), remove="home", then=then, extra_pids=extra_pids)


def test_killed_owner_takes_the_command_and_its_directory_along(
    owner: Callable[[str], tuple[subprocess.Popen[str], list[int]]], tmp_path: Path
) -> None:
    """kill -9 of the owner ends the command at once and removes its directory."""
    process, (pid,) = owner(sleeper(tmp_path))
    assert is_alive(pid)
    process.kill()
    assert eventually(lambda: not is_alive(pid))
    assert eventually(lambda: not (tmp_path / "outer").exists())


def test_a_forked_child_does_not_count_as_the_owner(
    owner: Callable[[str], tuple[subprocess.Popen[str], list[int]]], tmp_path: Path
) -> None:
    """A fork that still holds the control pipe does not count as the owner."""
    fork = "fork = os.fork()\nif fork == 0:\n    time.sleep(600)"
    process, (pid, child) = owner(sleeper(tmp_path, fork, "[fork]"))
    process.kill()
    try:
        assert eventually(lambda: not is_alive(pid))
        assert is_alive(child)
    finally:
        os.kill(child, signal.SIGKILL)


def test_killed_guard_takes_the_command_along(tmp_path: Path) -> None:
    """kill -9 of the guard itself ends the command too (Linux)."""
    process = Process(["sleep", "600"], tmp_path / "log")
    stat = Path(f"/proc/{process.pid}/stat").read_text()
    guard = int(stat.rsplit(")", 1)[1].split()[1])
    os.kill(guard, signal.SIGKILL)
    assert eventually(lambda: not is_alive(process.pid))
    assert eventually(lambda: process.exit_code == 128 + signal.SIGKILL)


def test_exit_codes_and_output(tmp_path: Path) -> None:
    """The command's exit code is returned, and its output is in the log."""
    log = tmp_path / "log"
    process = Process(["sh", "-c", "echo out; echo wrong >&2; exit 7"], log)
    assert process.wait(DEADLINE_S) == 7
    assert log.read_text() == "out\nwrong\n"
    process.terminate()  # nothing to do, and no error


def test_terminate_then_kill(tmp_path: Path) -> None:
    """A command that ignores SIGTERM runs until it is killed."""
    log = tmp_path / "log"
    process = Process(["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.1; done"], log)
    assert eventually(lambda: log.read_text() == "up\n")
    process.terminate()
    assert process.wait(0.5) is None
    process.kill()
    assert process.wait(DEADLINE_S) == 128 + signal.SIGKILL


def test_an_unknown_command_is_logged(tmp_path: Path) -> None:
    """An unknown command ends with 127 and its name in the log."""
    log = tmp_path / "log"
    process = Process(["/does/not/exist"], log)
    assert process.wait(DEADLINE_S) == 127
    assert "/does/not/exist: No such file or directory" in log.read_text()
