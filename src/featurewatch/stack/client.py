"""Starts a stack's supervisor and sends requests to it, for ``featurewatch stack``."""

import contextlib
import fcntl
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from featurewatch.stack import stack_file
from featurewatch.stack.errors import StackError
from featurewatch.stack.process.polling import attempts
from featurewatch.stack.process.ports import LOOPBACK

RESPONSE_TIMEOUT_S = 180.0


class NotRunningError(StackError):
    """No stack runs in the directory."""


def default_directory() -> Path:
    """``featurewatch/stack`` in the XDG state directory."""
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser().absolute() / "featurewatch" / "stack"


def launch(directory: Path) -> dict[str, Any]:
    """Starts a supervisor for the stack file in ``directory``; returns the status when it is ready.

    Until then the stack ends if this process ends; afterwards it is independent. Progress goes to
    this process's stderr.

    Raises:
        StackError: if the stack cannot be started.
    """
    own_end, supervisor_end = socket.socketpair()
    with own_end:
        with supervisor_end:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "featurewatch.stack.supervisor",
                    str(directory),
                    str(supervisor_end.fileno()),
                ],
                pass_fds=[supervisor_end.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=os.environ | {"PYTHONPATH": _python_path()},
                start_new_session=True,
            )
        with own_end.makefile("r", encoding="utf-8") as lines:
            line = lines.readline()
        if not line or "error" in json.loads(line):
            code = process.wait()
        if not line:
            raise StackError(f"the stack's supervisor ended with code {code} before it was ready")
        status = _checked(line)
        own_end.sendall(b"keep\n")
    return status


def send_request(directory: Path, action: str, **details: Any) -> dict[str, Any]:
    """Sends one request to the supervisor of the stack in ``directory``; its response.

    ``details`` are further fields of the request.

    Raises:
        NotRunningError: if no stack runs there.
        StackError: if the supervisor does not respond, or responds with an error.
    """
    file = stack_file.read(directory)
    if file is None or file.control is None:
        raise NotRunningError(f"no stack runs in {directory}; start one: featurewatch stack up")
    control = file.control
    request = {"token": control.token, "do": action} | details
    try:
        with socket.create_connection((LOOPBACK, control.port), RESPONSE_TIMEOUT_S) as connection:
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("r", encoding="utf-8") as lines:
                line = lines.readline()
    except ConnectionError:
        raise NotRunningError(
            f"the stack in {directory} ended unexpectedly; start it again: featurewatch stack up"
        ) from None
    except OSError as error:
        raise StackError(f"the stack in {directory} does not respond: {error}") from error
    if not line:
        raise StackError(f"the stack in {directory} closed the connection without a response")
    return _checked(line)


def wait_until_gone(directory: Path, timeout_s: float = 30.0) -> None:
    """Returns when the supervisor has released the directory's lock.

    Raises:
        StackError: if it still holds the lock after ``timeout_s``.
    """
    with (directory / "lock").open("w") as lock:
        for _ in attempts(timeout_s, 0.05):
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
    raise StackError(f"the stack in {directory} does not end; its log is supervisor.log there")


def _checked(line: str) -> dict[str, Any]:
    response: dict[str, Any] = json.loads(line)
    if error := response.get("error"):
        raise StackError(str(error))
    return response


def _python_path() -> str:
    """PYTHONPATH for the child, with this package's root first so that it imports the same code."""
    own_path = str(Path(__file__).absolute().parents[2])
    inherited = os.environ.get("PYTHONPATH")
    return own_path if not inherited else own_path + os.pathsep + inherited
