"""Migrates a cluster from ZooKeeper mode to KRaft (KIP-866), phase by phase.

migration = ClusterMigration(cluster)  # brokers of 3.9.1 in ZooKeeper mode
migration.add_controllers()            # they wait for the brokers: PRE_MIGRATION
migration.enroll_brokers()             # ZooKeeper's metadata is in the log: MIGRATION, dual write
migration.move_brokers()               # KRaft brokers; ZooKeeper is still written to
migration.finish()                     # POST_MIGRATION; irreversible
"""

from dataclasses import replace
from typing import Any, Final

from featurewatch.stack.errors import StackError
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import NodeSpec, Roles
from featurewatch.stack.process.polling import attempts
from featurewatch.stack.wire.znodes import read_json

FIRST_CONTROLLER_ID: Final = 3001
MIGRATION_TIMEOUT_S: Final = 120.0


class ClusterMigration:
    """The migration of one running cluster; each method returns when its phase is reached.

    The phase is visible from outside: in the znode ``/migration``, in the ZkMigrationStateRecords
    of the metadata log, and in the brokers' registrations.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @property
    def controllers(self) -> list[int]:
        """The ids of the added controllers."""
        return [node.id for node in self._cluster.spec.nodes if node.roles.is_controller]

    def add_controllers(self, count: int = 1, release: str | None = None) -> None:
        """Starts ``count`` KRaft controllers, which wait for every broker to enroll.

        They are formatted at the brokers' ``inter.broker.protocol.version``, the only level that a
        broker in ZooKeeper mode supports. ``release`` None: the brokers' release.

        Raises:
            StackError: if the cluster is not in ZooKeeper mode, or a controller does not start.
        """
        spec = self._cluster.spec
        if any(node.roles is not Roles.ZOOKEEPER for node in spec.nodes):
            raise StackError("only a cluster whose nodes are all in ZooKeeper mode can migrate")
        release = release or spec.nodes[0].release
        ids = range(FIRST_CONTROLLER_ID, FIRST_CONTROLLER_ID + count)
        added = [NodeSpec(node_id, release, Roles.CONTROLLER) for node_id in ids]
        level = spec.properties.get("inter.broker.protocol.version", spec.metadata_version)
        self._cluster.change(
            replace(spec, nodes=[*spec.nodes, *added], metadata_version=level, migrating=True)
        )
        self._cluster.start()

    def enroll_brokers(self, timeout_s: float = MIGRATION_TIMEOUT_S) -> None:
        """Restarts each broker with migration enabled and waits until the metadata is copied.

        Raises:
            StackError: if a broker does not restart, or the copy takes longer than ``timeout_s``.
        """
        self._cluster.roll(ids=self._brokers())
        wait_until_migrated(self._zookeeper(), timeout_s)
        self._cluster.wait_ready()

    def move_brokers(self) -> None:
        """Restarts each broker as a KRaft broker.

        Raises:
            StackError: if one does not restart.
        """
        for broker in self._brokers():
            self.move_broker(broker)

    def move_broker(self, broker: int) -> None:
        """Restarts one broker as a KRaft broker.

        Raises:
            StackError: if it does not restart.
        """
        spec = self._cluster.spec
        nodes = [
            replace(node, roles=Roles.BROKER) if node.id == broker else node for node in spec.nodes
        ]
        self._cluster.change(replace(spec, nodes=nodes))
        self._cluster.roll(ids=[broker])

    def finish(self) -> None:
        """Restarts each controller without migration; ZooKeeper is no longer needed.

        Raises:
            StackError: if a broker is still in ZooKeeper mode, or a controller does not restart.
        """
        spec = self._cluster.spec
        if remaining := [node.id for node in spec.nodes if node.roles is Roles.ZOOKEEPER]:
            raise StackError(f"brokers {remaining} are still in ZooKeeper mode; move them first")
        self._cluster.change(replace(spec, zookeeper=None, migrating=False))
        self._cluster.roll(ids=self.controllers)

    def _brokers(self) -> list[int]:
        return [node.id for node in self._cluster.spec.nodes if node.roles.is_broker]

    def _zookeeper(self) -> str:
        return str(self._cluster.spec.zookeeper)


def wait_until_migrated(connect: str, timeout_s: float) -> None:
    """Returns when a KRaft controller has copied ZooKeeper's metadata to its log.

    The test is Kafka's own (ZkMigrationLeadershipState.initialZkMigrationComplete).

    Raises:
        StackError: if the copy is not complete after ``timeout_s``.
        WireError: if ZooKeeper does not respond.
    """
    content: Any = None
    for _ in attempts(timeout_s):
        content = read_json(connect, "/migration")
        if content is not None and content["kraft_metadata_offset"] > 0:
            return
    raise StackError(
        f"the migration is not done after {timeout_s:.0f} s; /migration holds {content}; "
        "the controller's log shows what it waits for"
    )
