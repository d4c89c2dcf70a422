"""Clusters and ensembles that all processes of a test run share, each started on first use.

The process that the user started owns them (`OwnServers`) and ends them with the run, or when the
tests that use them have ended; should it die, their guards end them. A worker of xdist asks it for
one by name over a Unix socket (`RemoteServers`) and gets an object with the addresses, directories
and process ids of the real one. A node that a worker stops and starts again is the worker's from
then on, and ends with it.
"""

import contextlib
import os
import shutil
import signal
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any, Final

from featurewatch.stack.errors import StackError
from featurewatch.stack.java.jars import Cache, default_cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import ClusterSpec, combined, single_bus, zookeeper_mode
from featurewatch.stack.process.group import Group
from featurewatch.stack.process.polling import attempts
from featurewatch.stack.zookeeper.ensemble import Ensemble
from featurewatch.stack.zookeeper.specs import EnsembleSpec
from tests.process_logs import started

Start = Callable[["OwnServers", Path], Group]


def _cluster(spec: ClusterSpec) -> Start:
    return lambda own, directory: Cluster(spec, directory, cache=own.cache, temporary=True)


def _ensemble(own: "OwnServers", directory: Path) -> Group:
    return Ensemble(directory, EnsembleSpec(3), cache=own.cache, temporary=True)


def _zookeeper_mode(own: "OwnServers", directory: Path) -> Group:
    connect = f"{own.ensemble('ensemble').connect_string}/shared-{time.time_ns()}"
    spec = zookeeper_mode(3, connect)
    return _cluster(spec)(own, directory)


SERVERS: Final[Mapping[str, Start]] = {
    "quorum_391": _cluster(combined(["3.9.1"] * 3)),
    "quorum_430": _cluster(combined(["4.3.0"] * 3)),
    "bus": _cluster(single_bus()),
    "ensemble": _ensemble,
    "zookeeper_391": _zookeeper_mode,
}


class SharedServers(ABC):
    """Servers by their names in `SERVERS`."""

    @abstractmethod
    def get(self, name: str) -> Group:
        """The servers of that name, started if they are not running.

        Raises:
            StackError: if they do not start; the next call tries again.
        """

    @abstractmethod
    def end(self, name: str) -> None:
        """Ends the servers of that name, if this process has used them; `get` starts new ones."""

    @abstractmethod
    def close(self) -> None:
        """Ends the servers, if they are this process's."""

    def cluster(self, name: str) -> Cluster:
        """The cluster of that name, which runs."""
        group = self.get(name)
        assert isinstance(group, Cluster)
        return group

    def ensemble(self, name: str) -> Ensemble:
        """The ensemble of that name, which runs."""
        group = self.get(name)
        assert isinstance(group, Ensemble)
        return group


class OwnServers(SharedServers):
    """The servers of this run, started by this process."""

    def __init__(self) -> None:
        self.cache = Cache(default_cache())
        self._locks = {name: threading.Lock() for name in SERVERS}
        self._running: dict[str, tuple[Group, contextlib.ExitStack]] = {}
        self._stack = contextlib.ExitStack()
        self._listener: Listener | None = None

    def get(self, name: str) -> Group:
        """Starts them in this process."""
        with self._locks[name]:
            if name not in self._running:
                group = SERVERS[name](self, self._directory / name)
                own = self._stack.enter_context(contextlib.ExitStack())
                self._running[name] = own.enter_context(started(group)), own
            return self._running[name][0]

    def end(self, name: str) -> None:
        """Ends them."""
        with self._locks[name]:
            if name in self._running:
                self._running.pop(name)[1].close()

    def listen(self) -> str:
        """Answers other processes from now on, at the address that is returned."""
        if self._listener is None:
            self._listener = Listener(str(self._directory / "socket"), backlog=16)
            threading.Thread(target=self._accept, args=[self._listener], daemon=True).start()
        return str(self._listener.address)

    def close(self) -> None:
        """Ends all servers."""
        if self._listener is not None:
            self._listener.close()
        self._stack.close()

    @cached_property
    def _directory(self) -> Path:
        directory = Path(tempfile.mkdtemp(prefix="featurewatch-tests-"))
        self._stack.callback(shutil.rmtree, directory, ignore_errors=True)
        return directory

    def _accept(self, listener: Listener) -> None:
        while True:
            try:
                connection = listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._respond, args=[connection], daemon=True).start()

    def _respond(self, connection: Connection) -> None:
        with connection:
            try:
                verb, name = connection.recv()
                if verb == "end":
                    self.end(name)
                connection.send(None if verb == "end" else _describe(self.get(name)))
            except Exception as error:
                notes = getattr(error, "__notes__", [])
                connection.send("\n".join([str(error), *notes]))


class RemoteServers(SharedServers):
    """The servers of a run whose main process listens at ``address``."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._known: dict[str, Group] = {}

    def get(self, name: str) -> Group:
        """Has the main process start them."""
        if name not in self._known:
            self._known[name] = self._ask("get", name)()
        return self._known[name]

    def end(self, name: str) -> None:
        """Kills them here, with the nodes that this process started again, and has the main
        process forget them."""
        if (group := self._known.pop(name, None)) is not None:
            group.kill()
            self._ask("end", name)

    def _ask(self, verb: str, name: str) -> Any:
        with Client(self._address) as connection:
            connection.send((verb, name))
            answer = connection.recv()
        if isinstance(answer, str):
            raise StackError(answer)
        return answer

    def close(self) -> None:
        """Does nothing: they are the main process's."""


def _describe(group: Group) -> Callable[[], Group]:
    """A recipe for the same group in another process; it can be pickled."""
    pids = [server.pid for server in group.members]
    if isinstance(group, Cluster):
        made: Any = partial(
            Cluster,
            group.spec,
            group.directory,
            addresses=group.addresses,
            cluster_id=group.cluster_id,
        )
    else:
        assert isinstance(group, Ensemble)
        made = partial(Ensemble, group.directory, group.spec, ports=group.ports)
    return partial(_attached, made, pids)


def _attached(make: Callable[[], Group], pids: list[int | None]) -> Group:
    group = make()
    for server, pid in zip(group.members, pids, strict=True):
        server._process = None if pid is None else _Foreign(pid)  # type: ignore[assignment]
    return group


@dataclass(frozen=True)
class _Foreign:
    """The process of a server, which another process started."""

    pid: int

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return -1
        return None

    def terminate(self) -> None:
        """Sends SIGTERM."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Sends SIGKILL."""
        self._send(signal.SIGKILL)

    def wait(self, timeout_s: float) -> int | None:
        """Waits until it has ended; None if it still runs after ``timeout_s``."""
        for _ in attempts(timeout_s):
            if self.exit_code is not None:
                break
        return self.exit_code

    def _send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)
