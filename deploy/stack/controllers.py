"""Our own controllers of topics for real brokers in ZooKeeper mode: one works, one stands by.

Brokers are candidates for the controller themselves. The controllers authenticate to ZooKeeper with
a password that brokers do not have, and only who has it can be elected.
"""

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from featurewatch.deploy.errors import StackError
from featurewatch.deploy.process.private_files import write_private
from featurewatch.deploy.process.server import Server
from featurewatch.deploy.stack.reference_nodes import ReferenceProcess
from featurewatch.deploy.stack.stack_file import StackFile

FIRST_CONTROLLER_ID: Final = 101
CONTROLLERS: Final = 2
CONTROLLED_PROPERTIES: Final[Mapping[str, str]] = {
    # A shutdown that must wait for another broker is tried again soon.
    "controlled.shutdown.retry.backoff.ms": "1000",
}
"""Properties of brokers under our controllers."""

_SESSION_TIMEOUT_S: Final = 3
_CREDENTIAL_FILE: Final = "controller-credential"


class ControllersComponent:
    """The controllers, named ``controller-1`` and so on; start it before the brokers."""

    def __init__(self, directory: Path, connect: str) -> None:
        self._directory = directory
        self._credential = directory / _CREDENTIAL_FILE
        ids = range(FIRST_CONTROLLER_ID, FIRST_CONTROLLER_ID + CONTROLLERS)
        options = (
            "--control-topics",
            *("--controller-ids", *map(str, ids)),
            *("--credential-file", str(self._credential)),
            *("--session-timeout", str(_SESSION_TIMEOUT_S)),
        )
        self.nodes = {
            f"controller-{number}": ReferenceProcess(
                node_id, directory / f"controller-{number}", connect, options, title="controller"
            )
            for number, node_id in enumerate(ids, start=1)
        }

    @property
    def servers(self) -> Mapping[str, Server]:
        """The processes by name."""
        return self.nodes

    def start(self) -> None:
        """Starts the processes one by one; the first one creates what a new cluster needs."""
        self._directory.mkdir(parents=True, exist_ok=True)
        if not self._credential.exists():
            write_private(self._credential, f"controller:{secrets.token_urlsafe(24)}\n")
        for node in self.nodes.values():
            if not node.running:
                node.start()

    def start_server(self, name: str, release: str | None) -> None:
        """Starts one process again and does not wait."""
        if release is not None:
            raise StackError("our controllers have no releases; leave out --release")
        self.nodes[name].start(wait=False)

    def server_status(self, name: str) -> dict[str, Any]:
        """The state of one process."""
        node = self.nodes[name]
        mode = "controller of topics" if node.running else "down"
        return {"id": name, "address": node.address, "mode": mode} | node.process_status()

    def status(self) -> dict[str, Any]:
        """The state of each process."""
        return {"controller_servers": [self.server_status(name) for name in self.nodes]}

    def describe(self, file: StackFile) -> StackFile:
        """Adds nothing: the ports are chosen at each start."""
        return file

    def close(self) -> None:
        """Stops the processes with SIGTERM, which ends their ZooKeeper sessions."""
        for node in self.nodes.values():
            node.terminate()
        for node in self.nodes.values():
            node.stop(10.0)
