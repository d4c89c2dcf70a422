"""One controller of the reference of KRaft as a node of a cluster, in place of Kafka's.

The controller itself is in the package ``reference``; this module only builds command lines.
"""

import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.node import KafkaNode
from featurewatch.stack.kafka.server_properties import Addresses
from featurewatch.stack.kafka.specs import NodeSpec
from featurewatch.stack.process.ports import LOOPBACK


class ReferenceController(KafkaNode):
    """A node of the role ``controller`` that decides as a release of Kafka, without Java.

    ``level`` is the metadata.version of a new cluster, as for ``kafka-storage format``; None: the
    newest of the release.
    """

    def __init__(
        self,
        spec: NodeSpec,
        addresses: Addresses,
        directory: Path,
        properties: Mapping[str, str],
        cache: Cache,
        heap_mb: int,
        *,
        temporary: bool,
        level: str | None,
    ) -> None:
        super().__init__(
            spec, addresses, directory, properties, cache, heap_mb, temporary=temporary
        )
        self._level = level
        self._cluster_id: str | None = None
        self._first_voters: Sequence[str] = ()

    @property
    def formatted(self) -> bool:
        """Whether the process can start: it formats its own directory then."""
        return self._cluster_id is not None or super().formatted

    @property
    def cluster_id(self) -> str | None:
        """The id of the cluster that it belongs to; None until it is given."""
        return self._cluster_id or super().cluster_id

    def format(self, cluster_id: str, arguments: Sequence[str]) -> None:
        """Remembers the cluster that the process formats its directory for, and its first voters.

        Other ``arguments`` of Kafka's storage tool have no effect.
        """
        for name, value in pairwise(arguments):
            if name == "--initial-controllers":
                self._first_voters = value.split(",")
        self._cluster_id = cluster_id
        self.data.mkdir(parents=True, exist_ok=True)

    def __str__(self) -> str:
        return f"node {self.id} (reference of Kafka {self.release})"

    def _command(self) -> list[str]:
        config = self._write_properties()
        level = () if self._level is None else ("--level", self._level)
        return [
            *(sys.executable, "-m", "featurewatch.reference.kraft"),
            *("--node-id", str(self.id)),
            # As one argument: the id of a cluster may begin with a dash.
            f"--cluster-id={self.cluster_id}",
            *("--directory", str(self.data)),
            *self._quorum_options(),
            *("--controller", self.release),
            *("--config", str(config)),
            *level,
        ]

    def _quorum_options(self) -> list[str]:
        """The configured voters; or where it finds those in the log, and with whom this begins."""
        if voters := self._properties.get("controller.quorum.voters"):
            return ["--voters", *voters.split(",")]
        own = f"{LOOPBACK}:{self.addresses.controller}"
        options = ["--voters", f"{self.id}@{own}"]
        if self._first_voters:
            return [*options, "--initial-controllers", *self._first_voters]
        servers = self._properties["controller.quorum.bootstrap.servers"].split(",")
        others = [server for server in servers if server != own]
        return [*options, "--bootstrap", *(others or servers)]
