"""A watched cluster whose controller and broker are separate nodes."""

from collections.abc import Mapping
from pathlib import Path

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec, Roles
from tests.faults.servers import Servers
from tests.faults.stack import Stack


def split_cluster(directory: Path) -> Cluster:
    """A controller and a broker, not started."""
    nodes = [NodeSpec(1, roles=Roles.CONTROLLER), NodeSpec(2, roles=Roles.BROKER)]
    # The truth is read from the whole log: nothing of it may go to a snapshot.
    spec = ClusterSpec(nodes, properties={"metadata.log.max.snapshot.interval.ms": "0"})
    return Cluster(spec, directory / "split", temporary=True)


class SplitStack(Stack):
    """Source and worker; the source follows the log, and polls the nodes too."""

    def __init__(
        self,
        servers: Servers,
        directory: Path,
        environment: Mapping[str, str],
        cluster: Cluster,
    ) -> None:
        super().__init__(servers, directory, environment, quorum=cluster)

    @property
    def watched(self) -> list[str]:
        """The addresses of the nodes themselves."""
        servers = ["--servers", self.quorum.bootstrap_servers]
        return ["--controllers", self.quorum.controllers, *servers]
