"""Runs reference brokers of KIP-584 on a ZooKeeper ensemble, in at most three processes.

The brokers themselves are in the package ``reference``; this module only builds command lines.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from featurewatch.stack.errors import StackError
from featurewatch.stack.process.server import Server
from featurewatch.stack.stack_file import StackFile
from featurewatch.stack.wire.znodes import wait_until_unregistered

MAX_PROCESSES: Final = 3
"""This many brokers have their own process; the last process also registers the others."""


class ReferenceProcess(Server):
    """A full reference broker, which may be elected controller, and optional light brokers.

    ``command`` is its command line.
    """

    def __init__(
        self,
        node_id: int,
        directory: Path,
        connect: str,
        options: Sequence[str],
        *,
        brokers: int = 1,
        title: str = "reference broker",
        temporary: bool = False,
    ) -> None:
        """``connect`` includes the chroot; ``title`` names the process in messages.

        The process runs ``brokers`` brokers with consecutive ids: a full one, then light ones.
        """
        super().__init__(directory, temporary=temporary)
        self.node_id = node_id
        self._title = title
        self._connect = connect
        self.command = [
            *(sys.executable, "-m", "featurewatch.reference.zookeeper"),
            *("--zookeeper", connect),
            *("--node-id", str(node_id)),
            *("--brokers", str(brokers)),
            *("--full", "1"),
            *options,
        ]

    @property
    def address(self) -> str:
        """``host:port`` for clients, chosen at each start; empty until it is known."""
        match = re.search(rf"^node {self.node_id} (\S+)$", self._log_text(), re.MULTILINE)
        return match[1] if match else ""

    def start(self, *, wait: bool = True) -> None:
        """Starts the process; with ``wait`` returns when its brokers are registered.

        Raises:
            StartError: if it already runs, ends, or is not registered in time.
            WireError: if ZooKeeper does not respond.
        """
        self.require_stopped()
        self.directory.mkdir(parents=True, exist_ok=True)
        wait_until_unregistered(self._connect, self.node_id)
        self._launch(self.command)
        if wait:
            self.wait_ready()

    def not_ready_reason(self) -> str | None:
        """Why the process is not ready; None if all its brokers are registered."""
        if not self.running:
            return "it is not running"
        return None if "ready" in self._log_text().splitlines() else self.last_log_line

    @property
    def last_log_line(self) -> str:
        """The last log line since the last start; the reason, if the process was not stopped."""
        lines = [line for line in self._log_text().splitlines() if line.strip()]
        return lines[-1] if lines else "it has printed nothing yet"

    def __str__(self) -> str:
        return f"{self._title} {self.node_id}"

    def _log_text(self) -> str:
        """The log since the last start."""
        try:
            with self.log.open("rb") as log:
                log.seek(self._log_start)
                return log.read().decode(errors="replace")
        except OSError:
            return ""


def reference_nodes(
    brokers: int, directory: Path, connect: str, options: Sequence[str], *, temporary: bool = False
) -> list[ReferenceProcess]:
    """The processes of a reference cluster of ``brokers`` brokers, with ids from 1 on."""
    process_count = min(brokers, MAX_PROCESSES)
    return [
        ReferenceProcess(
            node_id,
            directory / f"reference-{node_id}",
            connect,
            options,
            brokers=brokers - process_count + 1 if node_id == process_count else 1,
            temporary=temporary,
        )
        for node_id in range(1, process_count + 1)
    ]


class ReferenceComponent:
    """Reference processes of a stack, by name; their state is in its status as ``status_key``.

    ``role`` is what a running process is; ``plural`` names them in a message.
    """

    def __init__(
        self, nodes: Mapping[str, ReferenceProcess], role: str, plural: str, status_key: str
    ) -> None:
        self.nodes = nodes
        self._role = role
        self._plural = plural
        self._status_key = status_key

    @property
    def servers(self) -> Mapping[str, Server]:
        """The processes by name."""
        return self.nodes

    def start(self) -> None:
        """Starts the processes one by one; the first creates what a new cluster needs."""
        for node in self.nodes.values():
            if not node.running:
                node.start()

    def start_server(self, name: str, release: str | None) -> None:
        """Starts one process again and does not wait."""
        if release is not None:
            raise StackError(f"{self._plural} have no releases; leave out --release")
        self.nodes[name].start(wait=False)

    def server_status(self, name: str) -> dict[str, Any]:
        """The state of one process."""
        node = self.nodes[name]
        mode = self._role if node.running else "down"
        return {"id": name, "address": node.address, "mode": mode} | node.process_status()

    def status(self) -> dict[str, Any]:
        """The state of each process."""
        return {self._status_key: [self.server_status(name) for name in self.nodes]}

    def describe(self, file: StackFile) -> StackFile:
        """Adds nothing: the ports are chosen at each start."""
        return file

    def close(self) -> None:
        """Stops the processes with SIGTERM, which ends their ZooKeeper sessions."""
        for node in self.nodes.values():
            node.terminate()
        for node in self.nodes.values():
            node.stop(10.0)
