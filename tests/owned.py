"""Runs a module like ``python -m``, and kills the process once its owner has died.

``python -P owned.py OWNER MODULE ARGUMENT …``, where OWNER is the process id of the test's process.
For a process that a test talks to on stdin and stdout, which the guard of the stack
(`featurewatch.stack.process.guard`) keeps for itself.
"""

import os
import runpy
import signal
import sys
import threading
from pathlib import Path
from typing import Final

_CHECK_S: Final = 0.2


def owned(module: str) -> list[str]:
    """The beginning of a command that runs a module for as long as this process lives."""
    return [sys.executable, "-P", str(Path(__file__)), str(os.getpid()), module]


def _watch(owner: int) -> None:
    """Waits for the owner's end, after which the process has another parent."""
    never = threading.Event()
    while os.getppid() == owner:
        never.wait(_CHECK_S)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    _, number, name, *arguments = sys.argv
    threading.Thread(target=_watch, args=(int(number),), daemon=True).start()
    sys.argv = [name, *arguments]
    runpy.run_module(name, run_name="__main__", alter_sys=True)
