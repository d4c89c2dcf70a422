"""The process that owns a stack's servers from ``stack up`` to ``stack down``.

It listens on a loopback port. A request is one JSON line that carries the token of the stack file;
the response is one JSON line. Run as ``python -m featurewatch.stack.supervisor DIRECTORY
FD``, where the file descriptor is a socket to the command that starts the stack. The supervisor
sends its status there when the stack is ready. Until the command replies ``keep``, the stack ends
if the command ends, so a command that is killed half-way leaves nothing behind.
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

from featurewatch.stack import stack_file
from featurewatch.stack.components import components_of
from featurewatch.stack.errors import StackError
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.process.ports import LOOPBACK
from featurewatch.stack.stack_file import Control

_LINE_LIMIT = 1 << 16
_log = logging.getLogger("featurewatch.stack.supervisor")


class Supervisor:
    """Owns a running stack and serves requests about it."""

    def __init__(self, directory: Path, cache: Cache | None = None) -> None:
        """Reads the stack file and locks the directory; starts nothing.

        Raises:
            StackError: if there is no stack file, or another supervisor holds the lock.
        """
        file = stack_file.read(directory)
        if file is None:
            raise StackError(f"{directory} holds no stack; run: featurewatch stack up")
        self._lock = _exclusive(directory)
        self._file = file
        self._components = components_of(file, directory, cache)
        self._directory = directory
        self._token = secrets.token_urlsafe(24)
        self._stop = threading.Event()
        self._serving = False

    @contextmanager
    def running(self) -> Iterator["Supervisor"]:
        """Runs the stack while the block runs, and stops it after.

        Raises:
            StackError: if it cannot be started.
        """
        with ExitStack() as stack:
            stack.callback(self._lock.close)
            for component in self._components:
                stack.callback(component.close)
            stack.callback(self._save, None)
            # Saved before the start, so that an interrupted stack resumes at the same addresses.
            self._save(None)
            for component in self._components:
                component.start()
            listener = stack.enter_context(socket.create_server((LOOPBACK, 0)))
            listener.settimeout(0.2)
            self._listener = listener
            self._save(Control(os.getpid(), listener.getsockname()[1], self._token))
            yield self

    def serve(self) -> None:
        """Serves requests until one is ``down`` or `stop` is called."""
        self._serving = True
        while not self._stop.is_set():
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue
            with connection:
                connection.settimeout(5.0)
                self._serve_request(connection)

    def stop(self) -> None:
        """Ends `serve`; may be called from a signal handler."""
        self._stop.set()

    def interrupt(self) -> None:
        """For a signal handler: ends `serve`, or a start that is in progress."""
        if not self._serving:
            raise KeyboardInterrupt
        self.stop()

    def status(self) -> dict[str, Any]:
        """The stack's addresses and the state of its servers, as plain data."""
        status: dict[str, Any] = {
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
            "controller_servers": [],
        }
        for component in self._components:
            status |= component.status()
        return status

    def _serve_request(self, connection: socket.socket) -> None:
        try:
            with connection.makefile("r", encoding="utf-8") as lines:
                request = json.loads(lines.readline(_LINE_LIMIT))
            if not hmac.compare_digest(str(request["token"]), self._token):
                raise StackError("the token in the request is not this stack's")
            response = self._handle(request)
        except StackError as error:
            response = {"error": str(error)}
        except (OSError, ValueError, KeyError, TypeError) as error:
            response = {"error": f"the request is invalid: {error!r}"}
        try:
            connection.sendall(json.dumps(response).encode() + b"\n")
        except OSError as error:
            _log.warning("the client closed the connection before the response: %s", error)

    def _handle(self, request: dict[str, Any]) -> dict[str, Any]:
        match request["do"]:
            case "status":
                return self.status()
            case "down":
                self.stop()
                return {"directory": str(self._directory)}
            case "stop" | "kill" | "start":
                return self._handle_for_server(str(request["node"]), request)
            case action:
                raise StackError(f"a stack cannot {action!r}")

    def _handle_for_server(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        component = next((part for part in self._components if name in part.servers), None)
        if component is None:
            names = ", ".join(name for component in self._components for name in component.servers)
            raise StackError(f"there is no node {name}; the nodes are {names}")
        server = component.servers[name]
        match request["do"]:
            case "stop":
                server.stop()
            case "kill":
                server.kill()
            case "start":
                component.start_server(name, request.get("release"))
                # The file is what a reboot restores.
                self._save(Control(os.getpid(), self._listener.getsockname()[1], self._token))
                if request.get("wait", True):
                    server.wait_ready()
        return component.server_status(name)

    def _save(self, control: Control | None) -> None:
        file = replace(self._file, control=control)
        for component in self._components:
            file = component.describe(file)
        file.write(self._directory)


def _exclusive(directory: Path) -> IO[str]:
    lock = (directory / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise StackError(f"the stack in {directory} already runs") from None
    return lock


def _detach(directory: Path) -> None:
    """Redirects stderr to the log, so that a reader of the command's stderr sees its end."""
    log = os.open(directory / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, sys.stderr.fileno())
    os.close(log)


def run(directory: Path, owner: socket.socket) -> int:
    """Runs a supervisor for the command at the other end of ``owner``; returns the exit code."""

    def watch_owner() -> None:
        if owner.recv(16) == b"keep\n":
            _detach(directory)
        else:
            os._exit(1)  # the guards notice it and kill their nodes

    threading.Thread(target=watch_owner, name="owner", daemon=True).start()
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
