"""Describes Kafka clusters and their nodes; frozen values, no processes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from featurewatch.kafka.releases import newest_patch
from featurewatch.stack.errors import StackError
from featurewatch.stack.java.jars import OLDEST, parse_release

NEWEST_TESTED: Final = newest_patch()
FIRST_CONTROLLER_ID: Final = 101
"""The id of the first controller of a cluster whose controllers are not brokers."""
KAFKA_WITH_ZOOKEEPER: Final = "3.9.1"
"""From the last release line with ZooKeeper mode and with ZooKeeper on its class path."""


class Roles(StrEnum):
    """Kafka's ``process.roles``, and a value for a broker in ZooKeeper mode, which has none."""

    COMBINED = "broker,controller"
    CONTROLLER = "controller"
    BROKER = "broker"
    ZOOKEEPER = "broker,zookeeper"

    @property
    def is_controller(self) -> bool:
        """Whether a node with these roles votes in a KRaft quorum."""
        return self in (Roles.COMBINED, Roles.CONTROLLER)

    @property
    def is_broker(self) -> bool:
        """Whether a node with these roles serves clients."""
        return self is not Roles.CONTROLLER


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """One node: its id, release, roles, and properties that override the cluster's.

    With ``is_reference`` it is a controller of our reference that decides as the release does.
    """

    id: int
    release: str = NEWEST_TESTED
    roles: Roles = Roles.COMBINED
    properties: Mapping[str, str] = field(default_factory=dict)
    is_reference: bool = False


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """A cluster.

    ``metadata_version`` is the argument of ``kafka-storage format --release-version``
    (``3.7-IV4``, ``3.9``); None: the default of the oldest release in the cluster.
    ``dynamic_voters`` formats a KIP-853 quorum (kraft.version 1, releases 3.9 and newer); otherwise
    the voters are static. With ``first_voters`` these controllers alone vote in it, and others are
    formatted to be added. ``format_arguments`` are passed to the storage tool unchanged. Each node
    has a heap of ``heap_mb`` MiB.

    ``zookeeper`` is the connect string, chroot included, of nodes in ZooKeeper mode. With
    ``migrating``, they and the controllers run with migration to KRaft enabled (KIP-866).
    """

    nodes: Sequence[NodeSpec]
    metadata_version: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    dynamic_voters: bool = False
    first_voters: Sequence[int] = ()
    format_arguments: Sequence[str] = ()
    heap_mb: int = 256
    zookeeper: str | None = None
    migrating: bool = False

    def __post_init__(self) -> None:
        """Validates the description.

        Raises:
            StackError: if no such cluster can exist.
        """
        ids = [node.id for node in self.nodes]
        if not ids or len(set(ids)) != len(ids) or min(ids) < 0:
            raise StackError(f"node ids must be different and not negative, not {ids}")
        self._check_modes()
        oldest = min(parse_release(node.release) for node in self.nodes)
        references = [node for node in self.nodes if node.is_reference]
        if any(node.roles is not Roles.CONTROLLER for node in references):
            raise StackError("a reference of KRaft is a controller alone; brokers are Kafka's")
        if references and self.migrating:
            raise StackError("controllers of the reference have no migration")
        if self.dynamic_voters and oldest < (3, 9, 0):
            raise StackError("dynamic voters (KIP-853) need Kafka 3.9 or newer on every node")
        controllers = {node.id for node in self.nodes if node.roles.is_controller}
        if self.first_voters and not (self.dynamic_voters and {*self.first_voters} <= controllers):
            raise StackError("the first voters are controllers of a quorum with dynamic voters")

    def _check_modes(self) -> None:
        zookeeper_nodes = [node for node in self.nodes if node.roles is Roles.ZOOKEEPER]
        has_controller = any(node.roles.is_controller for node in self.nodes)
        if not zookeeper_nodes and not has_controller:
            raise StackError("a cluster needs at least one controller")
        if zookeeper_nodes and has_controller and not self.migrating:
            raise StackError("ZooKeeper mode and controllers can be combined only in a migration")
        if (zookeeper_nodes or self.migrating) and not self.zookeeper:
            raise StackError("ZooKeeper mode needs the connect string of an ensemble")
        limited = self.nodes if self.migrating else zookeeper_nodes
        newest = max((parse_release(node.release) for node in limited), default=OLDEST)
        if newest >= (4, 0):
            raise StackError("Kafka 3.9 is the last with ZooKeeper mode; choose 3.9.1")

    @property
    def release_version(self) -> str | None:
        """The release version to format nodes with; None: the default of their one release."""
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
    """A cluster of nodes 1, 2, ..., each broker and controller; one node per given release."""
    nodes = [NodeSpec(node_id, release) for node_id, release in enumerate(releases, start=1)]
    return ClusterSpec(nodes, metadata_version, properties or {})


def under_reference(
    releases: Sequence[str],
    references: int,
    javas: int = 0,
    metadata_version: str | None = None,
    properties: Mapping[str, str] | None = None,
    *,
    without_brokers: str = NEWEST_TESTED,
) -> ClusterSpec:
    """Brokers 1, 2, ... of given releases under controllers 101, 102, ..., ours before Kafka's.

    ``references`` are ours, ``javas`` Kafka's. All controllers are of the newest of the releases,
    of ``without_brokers`` if there are none.
    """
    newest = max(releases, key=parse_release, default=without_brokers)
    brokers = [
        NodeSpec(node_id, release, Roles.BROKER)
        for node_id, release in enumerate(releases, start=1)
    ]
    controllers = [
        NodeSpec(
            FIRST_CONTROLLER_ID + index,
            newest,
            Roles.CONTROLLER,
            is_reference=index < references,
        )
        for index in range(references + javas)
    ]
    return ClusterSpec([*controllers, *brokers], metadata_version, properties or {})


def zookeeper_mode(
    brokers: int,
    connect: str,
    release: str = KAFKA_WITH_ZOOKEEPER,
    properties: Mapping[str, str] | None = None,
) -> ClusterSpec:
    """A cluster of ``brokers`` brokers in ZooKeeper mode, with ids from 1 on.

    ``connect`` is ``host:port,.../chroot``; ``properties`` may set
    ``inter.broker.protocol.version``.
    """
    nodes = [NodeSpec(node_id, release, Roles.ZOOKEEPER) for node_id in range(1, brokers + 1)]
    return ClusterSpec(nodes, properties=properties or {}, zookeeper=connect)


def single_bus() -> ClusterSpec:
    """A cluster of one small node, for featurewatch's own topics."""
    return ClusterSpec(
        [NodeSpec(1)],
        properties={
            "log.cleaner.dedupe.buffer.size": str(16 << 20),
            "log.cleaner.backoff.ms": "1000",
        },
        heap_mb=384,
    )
