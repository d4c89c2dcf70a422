"""Runs real ZooKeeper servers under one directory: a standalone server or an ensemble.

with Ensemble(directory, EnsembleSpec(3)) as ensemble:
    client = KazooClient(ensemble.connect_string + "/chroot")
    ensemble.leader().kill()

The servers are ZooKeeper 3.8.4. It comes with Kafka 3.9.1, from the last release line that uses
ZooKeeper.
"""

import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from featurewatch.common.private_files import write_private
from featurewatch.stack.errors import StackError
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.server_properties import format_properties
from featurewatch.stack.kafka.specs import KAFKA_WITH_ZOOKEEPER
from featurewatch.stack.process.group import Group
from featurewatch.stack.process.polling import Deadline, attempts
from featurewatch.stack.process.ports import LOOPBACK
from featurewatch.stack.process.server import (
    START_TIMEOUT_S,
    STOP_TIMEOUT_S,
    Server,
    server_command,
)
from featurewatch.stack.zookeeper.specs import EnsembleSpec, ServerPorts, server_properties

_MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_SERVING = ("standalone", "leader", "follower")


class ZookeeperServer(Server):
    """One server of an `Ensemble`; its data survives stops and kills."""

    def __init__(
        self,
        number: int,
        directory: Path,
        ports: ServerPorts,
        command: Sequence[str],
        files: Mapping[str, str],
        *,
        temporary: bool,
    ) -> None:
        super().__init__(directory, temporary=temporary)
        self.number = number
        self.ports = ports
        self._command = command
        self._files = files

    @property
    def address(self) -> str:
        """``host:port`` for clients."""
        return f"{LOOPBACK}:{self.ports.client}"

    def start(self, *, wait: bool = True, timeout_s: float = START_TIMEOUT_S) -> None:
        """Starts the server; with ``wait`` returns when it serves, which needs a majority.

        Raises:
            StartError: if it already runs, ends, or does not serve within ``timeout_s``.
        """
        self.require_stopped()
        for name, content in self._files.items():
            path = self.directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_private(path, content)
        self._launch(self._command)
        if wait:
            self.wait_ready(timeout_s)

    def mode(self) -> str:
        """``standalone``, ``leader`` or ``follower`` if it serves; else the reason, as text."""
        try:
            response = four_letter_command(self.ports.client, "srvr")
        except OSError as error:
            return f"{self.address} does not respond: {error}"
        modes = [
            line.removeprefix("Mode: ") for line in response.splitlines() if line[:4] == "Mode"
        ]
        return modes[0] if modes else (response.strip() or "it closed the connection")

    def not_ready_reason(self) -> str | None:
        """Why the server does not serve, by its response to ``srvr``; None if it does."""
        mode = self.mode()
        return None if mode in _SERVING else mode

    def __str__(self) -> str:
        return f"ZooKeeper server {self.number}"


class Ensemble(Group):
    """The servers of one ensemble; pass ``ports`` to reuse those of an existing directory."""

    def __init__(
        self,
        directory: Path,
        spec: EnsembleSpec | None = None,
        *,
        cache: Cache | None = None,
        temporary: bool = False,
        ports: Sequence[ServerPorts] | None = None,
    ) -> None:
        """Prepares the servers and starts none of them.

        Raises:
            ArtifactError: if ZooKeeper's jars cannot be fetched.
            JavaError: if no Java runtime is found.
        """
        super().__init__(directory, cache, temporary=temporary)
        self.spec = spec or EnsembleSpec()
        self.ports = list(ports or self._choose_ports())
        self.servers = [self._make(number) for number in range(1, self.spec.servers + 1)]

    @property
    def members(self) -> Sequence[ZookeeperServer]:
        """All servers."""
        return self.servers

    @property
    def connect_string(self) -> str:
        """``host:port,...`` of every server, for clients; a chroot may be appended."""
        return ",".join(server.address for server in self.servers)

    @property
    def secure_connect_string(self) -> str:
        """``host:port,...`` of the TLS ports; empty if TLS is off."""
        secure_ports = [ports.secure for ports in self.ports if ports.secure is not None]
        return ",".join(f"{LOOPBACK}:{port}" for port in secure_ports)

    def server(self, number: int) -> ZookeeperServer:
        """The server with this number; numbers start at 1.

        Raises:
            StackError: if there is no such server.
        """
        if not 1 <= number <= len(self.servers):
            raise StackError(
                f"there is no ZooKeeper server {number}; the last one is {len(self.servers)}"
            )
        return self.servers[number - 1]

    def leader(self, timeout_s: float = 30.0) -> ZookeeperServer:
        """The leader of the ensemble, or its only server.

        Raises:
            StackError: if no server leads within ``timeout_s``.
        """
        for _ in attempts(timeout_s):
            for server in self.servers:
                if server.running and server.mode() in ("leader", "standalone"):
                    return server
        raise StackError(f"no ZooKeeper server leads after {timeout_s:.0f} s")

    def start(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Starts every stopped server and returns when all of them serve.

        Raises:
            StartError: if one ends or does not serve within ``timeout_s``; all are killed then.
        """
        deadline = Deadline(timeout_s)
        try:
            for server in self.servers:
                if not server.running:
                    server.start(wait=False)
            for server in self.servers:
                server.wait_ready(deadline.left_s)
        except BaseException:
            self.kill()
            raise

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Sends SIGTERM to every server and kills those that still run after ``timeout_s``."""
        for server in self.servers:
            server.terminate()
        for server in self.servers:
            server.stop(timeout_s)

    def _choose_ports(self) -> list[ServerPorts]:
        reserve = self._ports.reserve
        secure = self.spec.tls is not None
        return [
            ServerPorts(reserve(), reserve(), reserve(), reserve() if secure else None)
            for _ in range(self.spec.servers)
        ]

    def _make(self, number: int) -> ZookeeperServer:
        home = self.directory / f"zookeeper-{number}"
        options = list(self.spec.java_options)
        files = {
            "zoo.cfg": format_properties(
                server_properties(self.spec, self.ports, number, home / "data")
            ),
            "data/myid": f"{number}\n",
        }
        if self.spec.jaas is not None:
            files["jaas.conf"] = self.spec.jaas
            options.insert(0, f"-Djava.security.auth.login.config={home / 'jaas.conf'}")
        command = server_command(
            self._cache.class_path(KAFKA_WITH_ZOOKEEPER),
            _MAIN_CLASS,
            str(home / "zoo.cfg"),
            heap_mb=self.spec.heap_mb,
            options=options,
        )
        ports = self.ports[number - 1]
        return ZookeeperServer(number, home, ports, command, files, temporary=self._temporary)


def four_letter_command(port: int, command: str, timeout_s: float = 2.0) -> str:
    """Sends one of ZooKeeper's four-letter commands (``srvr``, ``mntr``, ...); the response text.

    Raises:
        OSError: if the server cannot be reached or does not respond in time.
    """
    with socket.create_connection((LOOPBACK, port), timeout_s) as connection:
        connection.sendall(command.encode())
        with connection.makefile("rb") as response:
            return response.read().decode(errors="replace")
