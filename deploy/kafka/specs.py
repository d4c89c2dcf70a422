"""What a cluster shall be: frozen descriptions without any process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from featurewatch.deploy.errors import StackError
from featurewatch.deploy.java.jars import OLDEST, parse_release

NEWEST_TESTED = "4.3.0"
KAFKA_WITH_ZOOKEEPER: Final = "3.9.1"
"""Of the last line of releases that has ZooKeeper mode, and ZooKeeper on its class path."""


class Roles(StrEnum):
    """Kafka's ``process.roles``, or a broker in ZooKeeper mode, which has none."""

    COMBINED = "broker,controller"
    CONTROLLER = "controller"
    BROKER = "broker"
    ZOOKEEPER = "broker,zookeeper"

    @property
    def is_controller(self) -> bool:
        """Whether such a node votes in a KRaft quorum."""
        return self in (Roles.COMBINED, Roles.CONTROLLER)

    @property
    def is_broker(self) -> bool:
        """Whether such a node serves clients."""
        return self is not Roles.CONTROLLER


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """One node: its id, its release, its roles, and properties that win over the cluster's."""

    id: int
    release: str = NEWEST_TESTED
    roles: Roles = Roles.COMBINED
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """A cluster.

    ``metadata_version`` is what ``kafka-storage format --release-version`` takes (``3.7-IV4``,
    ``3.9``); None: the default of the oldest release in the cluster. ``dynamic_voters`` formats a
    KIP-853 quorum (kraft.version 1, releases 3.9 and newer); else the voters are static.
    ``format_arguments`` are passed to the storage tool as they are. ``heap_mb`` is each node's.

    ``zookeeper`` is the connect string, chroot included, of nodes in ZooKeeper mode. ``migrating``:
    they and the controllers have migration to KRaft switched on (KIP-866).
    """

    nodes: Sequence[NodeSpec]
    metadata_version: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    dynamic_voters: bool = False
    format_arguments: Sequence[str] = ()
    heap_mb: int = 256
    zookeeper: str | None = None
    migrating: bool = False

    def __post_init__(self) -> None:
        """Checks the description.

        Raises:
            StackError: if no such cluster can be.
        """
        ids = [node.id for node in self.nodes]
        if not ids or len(set(ids)) != len(ids) or min(ids) < 0:
            raise StackError(f"node ids must be different and not negative, not {ids}")
        self._check_modes()
        oldest = min(parse_release(node.release) for node in self.nodes)
        if self.dynamic_voters and oldest < (3, 9, 0):
            raise StackError("dynamic voters (KIP-853) need Kafka 3.9 or newer on every node")

    def _check_modes(self) -> None:
        old = [node for node in self.nodes if node.roles is Roles.ZOOKEEPER]
        quorum = any(node.roles.is_controller for node in self.nodes)
        if not old and not quorum:
            raise StackError("a cluster needs at least one controller")
        if old and quorum and not self.migrating:
            raise StackError("ZooKeeper mode and controllers go together in a migration alone")
        if (old or self.migrating) and not self.zookeeper:
            raise StackError("ZooKeeper mode needs the connect string of an ensemble")
        with_zookeeper = self.nodes if self.migrating else old
        newest = max((parse_release(node.release) for node in with_zookeeper), default=OLDEST)
        if newest >= (4, 0):
            raise StackError("Kafka 3.9 is the last with ZooKeeper mode; choose 3.9.1")

    @property
    def release_version(self) -> str | None:
        """What each node is formatted with; None where one release decides for all."""
        if self.metadata_version is not None:
            return self.metadata_version
        releases = {parse_release(node.release)[:2] for node in self.nodes}
        if len(releases) == 1:
            return None
        major, minor = min(releases)
        return f"{major}.{minor}"


def combined(
    releases: Sequence[str],
    metadata_version: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> ClusterSpec:
    """Nodes 1, 2, ... that are brokers and controllers, one for each release given."""
    nodes = [NodeSpec(number, release) for number, release in enumerate(releases, start=1)]
    return ClusterSpec(nodes, metadata_version, properties or {})


def zookeeper_mode(
    brokers: int,
    connect: str,
    release: str = KAFKA_WITH_ZOOKEEPER,
    properties: Mapping[str, str] | None = None,
) -> ClusterSpec:
    """Brokers 1, 2, ... in ZooKeeper mode; ``connect`` is ``host:port,.../chroot``.

    ``properties`` may hold ``inter.broker.protocol.version``.
    """
    nodes = [NodeSpec(number, release, Roles.ZOOKEEPER) for number in range(1, brokers + 1)]
    return ClusterSpec(nodes, properties=properties or {}, zookeeper=connect)


def single_bus() -> ClusterSpec:
    """One cheap node to keep topics on."""
    return ClusterSpec(
        [NodeSpec(1)],
        properties={
            "log.cleaner.dedupe.buffer.size": str(16 << 20),
            "log.cleaner.backoff.ms": "1000",
        },
        heap_mb=384,
    )
