"""Reference brokers of KIP-584 on a ZooKeeper ensemble: a process for each of the first three.

What they are is the business of the package ``reference``; here it is a command line.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from featurewatch.deploy.process.server import Server
from featurewatch.deploy.wire.znodes import wait_until_unregistered

WHOLE_NODES: Final = 3
"""How many brokers have a process; those beyond are only registered, by the last of these."""


class ReferenceProcess(Server):
    """A whole reference broker that may also be elected controller, and maybe light ones."""

    def __init__(
        self,
        node_id: int,
        directory: Path,
        connect: str,
        options: Sequence[str],
        *,
        brokers: int = 1,
        temporary: bool = False,
    ) -> None:
        """``connect`` has the chroot; ``brokers`` - 1 light ones follow with ids from the next."""
        super().__init__(directory, temporary=temporary)
        self.node_id = node_id
        self._connect = connect
        self._command = [
            *(sys.executable, "-m", "featurewatch.reference"),
            *("--zookeeper", connect),
            *("--node-id", str(node_id)),
            *("--brokers", str(brokers)),
            *("--full", "1"),
            *options,
        ]

    @property
    def address(self) -> str:
        """``host:port`` for clients, chosen anew at each start; empty until it has one."""
        said = re.search(rf"^node {self.node_id} (\S+)$", self._said(), re.MULTILINE)
        return said[1] if said else ""

    def start(self, *, wait: bool = True) -> None:
        """Starts it; with ``wait`` until it is registered.

        Raises:
            StartError: if it runs already, ends, or is not registered in time.
        """
        self.refuse_if_running()
        self.directory.mkdir(parents=True, exist_ok=True)
        wait_until_unregistered(self._connect, self.node_id)
        self._launch(self._command)
        if wait:
            self.wait_ready()

    def not_ready(self) -> str | None:
        """Why it does not serve; None if it and its light brokers are registered."""
        if not self.running:
            return "it is not running"
        return None if "ready" in self._said().splitlines() else self.last_log_line

    @property
    def last_log_line(self) -> str:
        """The last line that it said since its last start; why it ended, if it ended by itself."""
        said = [line for line in self._said().splitlines() if line.strip()]
        return said[-1] if said else "it has said nothing yet"

    def __str__(self) -> str:
        return f"reference broker {self.node_id}"

    def _said(self) -> str:
        """What stands in its log since its last start."""
        try:
            with self.log.open("rb") as log:
                log.seek(self._log_start)
                return log.read().decode(errors="replace")
        except OSError:
            return ""


def reference_nodes(
    brokers: int, directory: Path, connect: str, options: Sequence[str], *, temporary: bool = False
) -> list[ReferenceProcess]:
    """The processes of a reference cluster of so many brokers, with ids from 1 on."""
    whole = min(brokers, WHOLE_NODES)
    return [
        ReferenceProcess(
            number,
            directory / f"reference-{number}",
            connect,
            options,
            brokers=brokers - whole + 1 if number == whole else 1,
            temporary=temporary,
        )
        for number in range(1, whole + 1)
    ]
