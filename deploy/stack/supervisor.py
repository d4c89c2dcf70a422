"""The process that owns a stack's servers from ``stack up`` to ``stack down``.

It obeys whoever knows the token in the stack file: one JSON line asks, one JSON line answers, on a
loopback port. Run as ``python -m deploy.supervisor DIRECTORY FD``: the file descriptor is a socket
to the command that wants the stack. It is told when the stack stands, and until it then says
``keep``, its end is the stack's end too: a command that is killed half-way leaves nothing.
"""

import fcntl
import hmac
import json
import logging
import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from featurewatch.deploy.errors import StackError
from featurewatch.deploy.java.jars import Cache
from featurewatch.deploy.process.ports import LOOPBACK
from featurewatch.deploy.stack import stack_file
from featurewatch.deploy.stack.components import components_of
from featurewatch.deploy.stack.stack_file import Control

_LINE_LIMIT = 1 << 16
_log = logging.getLogger("deploy.supervisor")


class Supervisor:
    """A running stack and the requests that it obeys."""

    def __init__(self, directory: Path, cache: Cache | None = None) -> None:
        """Reads the stack file; nothing is started yet.

        Raises:
            StackError: if there is none, or another supervisor has the directory.
        """
        described = stack_file.read(directory)
        if described is None:
            raise StackError(f"{directory} holds no stack; run: featurewatch stack up")
        self._lock = _exclusive(directory)
        self._described = described
        self._parts = components_of(described, directory, cache)
        self._directory = directory
        self._token = secrets.token_urlsafe(24)
        self._stop = threading.Event()
        self._serving = False

    @contextmanager
    def running(self) -> Iterator["Supervisor"]:
        """The stack stands inside the block and is gone after it.

        Raises:
            StackError: if it cannot be started.
        """
        with ExitStack() as stack:
            stack.callback(self._lock.close)
            for part in self._parts:
                stack.callback(part.close)
            stack.callback(self._save, None)
            # Before the start: a stack that was interrupted is taken up at the same addresses.
            self._save(None)
            for part in self._parts:
                part.start()
            listener = stack.enter_context(socket.create_server((LOOPBACK, 0)))
            listener.settimeout(0.2)
            self._listener = listener
            self._save(Control(os.getpid(), listener.getsockname()[1], self._token))
            yield self

    def serve(self) -> None:
        """Obeys requests until one says ``down`` or `stop` is called."""
        self._serving = True
        while not self._stop.is_set():
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue
            with connection:
                connection.settimeout(5.0)
                self._answer(connection)

    def stop(self) -> None:
        """Ends `serve`; may be called from a signal handler."""
        self._stop.set()

    def interrupt(self) -> None:
        """For a signal handler: ends `serve`, or a start that is under way."""
        if not self._serving:
            raise KeyboardInterrupt
        self.stop()

    def status(self) -> dict[str, Any]:
        """What the stack is and how its servers do, as plain data."""
        found: dict[str, Any] = {
            "directory": str(self._directory),
            "cluster_id": None,
            "bootstrap_servers": "",
            "controllers": "",
            "light_brokers": 0,
            "zookeeper": None,
            "reference": None,
            "reference_brokers": 0,
            "supervisor_pid": os.getpid(),
            "nodes": [],
            "zookeeper_servers": [],
            "reference_servers": [],
        }
        for part in self._parts:
            found |= part.status()
        return found

    def _answer(self, connection: socket.socket) -> None:
        try:
            with connection.makefile("r", encoding="utf-8") as lines:
                request = json.loads(lines.readline(_LINE_LIMIT))
            if not hmac.compare_digest(str(request["token"]), self._token):
                raise StackError("the token in the request is not this stack's")
            answer = self._obey(request)
        except StackError as error:
            answer = {"error": str(error)}
        except (OSError, ValueError, KeyError, TypeError) as error:
            answer = {"error": f"the request makes no sense: {error!r}"}
        try:
            connection.sendall(json.dumps(answer).encode() + b"\n")
        except OSError as error:
            _log.warning("whoever asked is gone: %s", error)

    def _obey(self, request: dict[str, Any]) -> dict[str, Any]:
        match request["do"]:
            case "status":
                return self.status()
            case "down":
                self.stop()
                return {"directory": str(self._directory)}
            case "stop" | "kill" | "start":
                return self._obey_for_server(str(request["node"]), request)
            case other:
                raise StackError(f"a stack cannot {other!r}")

    def _obey_for_server(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        part = next((part for part in self._parts if name in part.servers), None)
        if part is None:
            known = ", ".join(name for part in self._parts for name in part.servers)
            raise StackError(f"there is no node {name}; the nodes are {known}")
        server = part.servers[name]
        match request["do"]:
            case "stop":
                server.stop()
            case "kill":
                server.kill()
            case "start":
                part.start_server(name, request.get("release"))
                # What stands in the file is what comes back after a reboot.
                self._save(Control(os.getpid(), self._listener.getsockname()[1], self._token))
                if request.get("wait", True):
                    server.wait_ready()
        return part.server_status(name)

    def _save(self, control: Control | None) -> None:
        file = replace(self._described, control=control)
        for part in self._parts:
            file = part.describe(file)
        file.write(self._directory)


def _exclusive(directory: Path) -> IO[str]:
    lock = (directory / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise StackError(f"the stack in {directory} runs already") from None
    return lock


def _detach(directory: Path) -> None:
    """Lets go of the command's stderr: who reads it to its end shall not wait for the stack."""
    log = os.open(directory / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, sys.stderr.fileno())
    os.close(log)


def run(directory: Path, owner: socket.socket) -> int:
    """The whole life of a supervisor for the command at the other end of a socket."""

    def watch() -> None:
        if owner.recv(16) == b"keep\n":
            _detach(directory)
        else:
            os._exit(1)  # the guards see it and kill their nodes

    threading.Thread(target=watch, name="owner", daemon=True).start()
    try:
        supervisor = Supervisor(directory)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: supervisor.interrupt())
        with supervisor.running():
            owner.sendall(json.dumps(supervisor.status()).encode() + b"\n")
            supervisor.serve()
    except KeyboardInterrupt:
        return 130
    except StackError as error:
        owner.sendall(json.dumps({"error": str(error)}).encode() + b"\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), socket.socket(fileno=int(sys.argv[2]))))
