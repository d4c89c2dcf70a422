"""The command's side of a supervisor: starts one, asks one."""

import contextlib
import fcntl
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from featurewatch.deploy.errors import StackError
from featurewatch.deploy.process.polling import attempts
from featurewatch.deploy.process.ports import LOOPBACK
from featurewatch.deploy.stack import stack_file

ANSWER_TIMEOUT_S = 180.0


class NotRunningError(StackError):
    """No stack runs in the directory."""


def default_directory() -> Path:
    """``featurewatch/stack`` in the XDG state directory."""
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser().absolute() / "featurewatch" / "stack"


def launch(directory: Path) -> dict[str, Any]:
    """Starts a supervisor for the stack file in a directory; returns its status when it stands.

    Until this returns, the end of this process ends the stack too; afterwards it stands by itself.
    Progress goes to this process's stderr.

    Raises:
        StackError: if the stack cannot be started.
    """
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "featurewatch.deploy.stack.supervisor",
                    str(directory),
                    str(theirs.fileno()),
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=os.environ | {"PYTHONPATH": _python_path()},
                start_new_session=True,
            )
        with ours.makefile("r", encoding="utf-8") as lines:
            line = lines.readline()
        if not line or "error" in json.loads(line):
            code = process.wait()
        if not line:
            raise StackError(f"the stack's supervisor ended with code {code} before it was ready")
        answer = _checked(line)
        ours.sendall(b"keep\n")
    return answer


def send_request(directory: Path, do: str, **details: Any) -> dict[str, Any]:
    """What the supervisor of a directory's stack answers to one request.

    Raises:
        NotRunningError: if no stack runs there.
        StackError: if it refuses; with its reason.
    """
    described = stack_file.read(directory)
    if described is None or described.control is None:
        raise NotRunningError(f"no stack runs in {directory}; start one: featurewatch stack up")
    control = described.control
    request = {"token": control.token, "do": do} | details
    try:
        with socket.create_connection((LOOPBACK, control.port), ANSWER_TIMEOUT_S) as connection:
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("r", encoding="utf-8") as lines:
                line = lines.readline()
    except ConnectionError:
        raise NotRunningError(
            f"the stack in {directory} ended unexpectedly; start it again: featurewatch stack up"
        ) from None
    except OSError as error:
        raise StackError(f"the stack in {directory} gives no answer: {error}") from error
    if not line:
        raise StackError(f"the stack in {directory} closed the connection without an answer")
    return _checked(line)


def wait_until_gone(directory: Path, timeout_s: float = 30.0) -> None:
    """Returns when the supervisor has let go of a directory.

    Raises:
        StackError: if it has not in time.
    """
    with (directory / "lock").open("w") as lock:
        for _ in attempts(timeout_s, 0.05):
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
    raise StackError(f"the stack in {directory} does not end; its log is supervisor.log there")


def _checked(line: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(line)
    if error := answer.get("error"):
        raise StackError(str(error))
    return answer


def _python_path() -> str:
    """Where this package was imported from, first: the child must find the same one."""
    own = str(Path(__file__).absolute().parents[3])
    others = os.environ.get("PYTHONPATH")
    return own if not others else own + os.pathsep + others
