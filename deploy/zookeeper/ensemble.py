"""Real ZooKeeper servers under one directory: one alone, or an ensemble.

with Ensemble(directory, EnsembleSpec(3)) as ensemble:
    client = KazooClient(ensemble.connect_string + "/chroot")
    ensemble.leader().kill()

They are of ZooKeeper 3.8.4, which comes with Kafka 3.9.1, the last line of releases that uses it.
"""

import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from featurewatch.deploy.errors import StackError
from featurewatch.deploy.java.jars import Cache
from featurewatch.deploy.kafka.server_properties import text
from featurewatch.deploy.kafka.specs import KAFKA_WITH_ZOOKEEPER
from featurewatch.deploy.process.group import Group
from featurewatch.deploy.process.polling import Deadline, attempts
from featurewatch.deploy.process.ports import LOOPBACK
from featurewatch.deploy.process.server import (
    START_TIMEOUT_S,
    STOP_TIMEOUT_S,
    Server,
    server_command,
)
from featurewatch.deploy.zookeeper.specs import EnsembleSpec, ServerPorts, server_properties

_MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_SERVING = ("standalone", "leader", "follower")


class ZooKeeperServer(Server):
    """One server of an `Ensemble`; its data is kept over stops and kills."""

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
        """Starts it; with ``wait`` until it serves, which needs a majority of the ensemble.

        Raises:
            StartError: if it runs already, ends, or does not serve in time.
        """
        self.refuse_if_running()
        for name, content in self._files.items():
            path = self.directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        self._launch(self._command)
        if wait:
            self.wait_ready(timeout_s)

    def mode(self) -> str:
        """``standalone``, ``leader`` or ``follower`` if it serves; else what it said instead."""
        try:
            said = four_letters(self.ports.client, "srvr")
        except OSError as error:
            return f"{self.address} gives no answer: {error}"
        modes = [line.removeprefix("Mode: ") for line in said.splitlines() if line[:4] == "Mode"]
        return modes[0] if modes else (said.strip() or "it closed the connection")

    def not_ready(self) -> str | None:
        """Why it does not serve; None if it does (its own answer to ``srvr``)."""
        mode = self.mode()
        return None if mode in _SERVING else mode

    def __str__(self) -> str:
        return f"ZooKeeper server {self.number}"


class Ensemble(Group):
    """ZooKeeper servers that belong together.

    ``ports`` are given to take up an existing directory.
    """

    def __init__(
        self,
        directory: Path,
        spec: EnsembleSpec | None = None,
        *,
        cache: Cache | None = None,
        temporary: bool = False,
        ports: Sequence[ServerPorts] | None = None,
    ) -> None:
        """Nothing is started yet.

        Raises:
            ArtifactError, JavaError: if ZooKeeper or Java cannot be had.
        """
        super().__init__(directory, cache, temporary=temporary)
        self.spec = spec or EnsembleSpec()
        self.ports = list(ports or self._choose_ports())
        self.servers = [self._make(number) for number in range(1, self.spec.servers + 1)]

    @property
    def members(self) -> Sequence[ZooKeeperServer]:
        """All servers."""
        return self.servers

    @property
    def connect_string(self) -> str:
        """``host:port,...`` of every server, for clients; a chroot may follow it."""
        return ",".join(server.address for server in self.servers)

    @property
    def secure_connect_string(self) -> str:
        """``host:port,...`` of the ports for TLS; empty without."""
        return ",".join(f"{LOOPBACK}:{own.secure}" for own in self.ports if own.secure is not None)

    def server(self, number: int) -> ZooKeeperServer:
        """The server with this number, 1 and up.

        Raises:
            StackError: if there is none.
        """
        if not 1 <= number <= len(self.servers):
            raise StackError(
                f"there is no ZooKeeper server {number}; the last one is {len(self.servers)}"
            )
        return self.servers[number - 1]

    def leader(self, timeout_s: float = 30.0) -> ZooKeeperServer:
        """The server that leads, or the only one.

        Raises:
            StackError: if none does in time.
        """
        for _ in attempts(timeout_s):
            for server in self.servers:
                if server.running and server.mode() in ("leader", "standalone"):
                    return server
        raise StackError(f"no ZooKeeper server leads after {timeout_s:.0f} s")

    def start(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Starts every server that does not run and waits until each serves.

        Raises:
            StartError: if one ends or does not serve in time; all are killed.
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
        """Asks every server to shut down, and kills those that have not in time."""
        for server in self.servers:
            server.ask_to_stop()
        for server in self.servers:
            server.stop(timeout_s)

    def _choose_ports(self) -> list[ServerPorts]:
        take = self._ports.take
        secure = self.spec.tls is not None
        return [
            ServerPorts(take(), take(), take(), take() if secure else None)
            for _ in range(self.spec.servers)
        ]

    def _make(self, number: int) -> ZooKeeperServer:
        home = self.directory / f"zookeeper-{number}"
        options = list(self.spec.java_options)
        files = {
            "zoo.cfg": text(server_properties(self.spec, self.ports, number, home / "data")),
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
        own = self.ports[number - 1]
        return ZooKeeperServer(number, home, own, command, files, temporary=self._temporary)


def four_letters(port: int, command: str, timeout_s: float = 2.0) -> str:
    """A server's answer to one of ZooKeeper's four-letter commands (``srvr``, ``mntr``, ...).

    Raises:
        OSError: if it gives none.
    """
    with socket.create_connection((LOOPBACK, port), timeout_s) as connection:
        connection.sendall(command.encode())
        with connection.makefile("rb") as answer:
            return answer.read().decode(errors="replace")
