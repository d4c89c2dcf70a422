"""Our own controllers of topics for real brokers in ZooKeeper mode: one active, one standby.

Brokers are candidates for the controller themselves. The controllers authenticate to ZooKeeper with
a password that brokers do not have, and only who has it can be elected.
"""

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from featurewatch.common.private_files import write_private
from featurewatch.stack.kafka.specs import FIRST_CONTROLLER_ID
from featurewatch.stack.reference_nodes import ReferenceComponent, ReferenceProcess

CONTROLLERS: Final = 2
CONTROLLED_PROPERTIES: Final[Mapping[str, str]] = {
    # A shutdown that must wait for another broker is tried again soon.
    "controlled.shutdown.retry.backoff.ms": "1000",
}
"""Properties of brokers under our controllers."""

_SESSION_TIMEOUT_S: Final = 3
_CREDENTIAL_FILE: Final = "controller-credential"


class ControllersComponent(ReferenceComponent):
    """The controllers, named ``controller-1`` and so on; start it before the brokers.

    ``operations_dialect`` is the form of their operations, None the default one.
    """

    def __init__(
        self, directory: Path, connect: str, operations_dialect: str | None = None
    ) -> None:
        self._directory = directory
        self._credential = directory / _CREDENTIAL_FILE
        ids = range(FIRST_CONTROLLER_ID, FIRST_CONTROLLER_ID + CONTROLLERS)
        form = operations_dialect
        options = (
            "--control-topics",
            *(() if form is None else ("--operations-dialect", form)),
            *("--controller-ids", *map(str, ids)),
            *("--credential-file", str(self._credential)),
            *("--session-timeout", str(_SESSION_TIMEOUT_S)),
        )
        nodes = {
            f"controller-{number}": ReferenceProcess(
                node_id, directory / f"controller-{number}", connect, options, title="controller"
            )
            for number, node_id in enumerate(ids, start=1)
        }
        super().__init__(nodes, "controller of topics", "our controllers", "controller_servers")

    def start(self) -> None:
        """Starts the processes one by one; writes their password before the first start."""
        self._directory.mkdir(parents=True, exist_ok=True)
        if not self._credential.exists():
            write_private(self._credential, f"controller:{secrets.token_urlsafe(24)}\n")
        super().start()
