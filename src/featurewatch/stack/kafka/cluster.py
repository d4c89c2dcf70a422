"""Runs a cluster of real Kafka nodes under one directory.

with Cluster(combined(["3.9.1"] * 3, "3.7-IV4"), directory) as cluster:
    cluster.node(1).stop()
    cluster.node(1).start("4.3.0")
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from featurewatch.stack.errors import StackError, StartError, WireError
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.archive_training import train_class_archive
from featurewatch.stack.kafka.ids import random_id
from featurewatch.stack.kafka.node import KafkaNode
from featurewatch.stack.kafka.reference_controller import ReferenceController
from featurewatch.stack.kafka.server_properties import (
    Addresses,
    controller_addresses,
    last_addresses,
    node_properties,
    quorum_voters,
)
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec
from featurewatch.stack.process.group import Group
from featurewatch.stack.process.polling import Deadline, attempts
from featurewatch.stack.process.ports import LOOPBACK
from featurewatch.stack.process.server import START_TIMEOUT_S, STOP_TIMEOUT_S
from featurewatch.stack.wire.probe import live_brokers, quorum_leader


class Cluster(Group):
    """The nodes of one cluster.

    Pass ``addresses`` and ``cluster_id`` to reuse those of an existing directory. Without addresses
    a node has the ports that it had last in its directory, where they are free. A cluster in
    ZooKeeper mode chooses its own id; `cluster_id` is right once it has started.
    """

    def __init__(
        self,
        spec: ClusterSpec,
        directory: Path,
        *,
        cache: Cache | None = None,
        temporary: bool = False,
        addresses: Mapping[int, Addresses] | None = None,
        cluster_id: str | None = None,
    ) -> None:
        super().__init__(directory, cache, temporary=temporary)
        self.cluster_id = cluster_id or random_id()
        self.addresses = dict(addresses or {})
        self._nodes: dict[int, KafkaNode] = {}
        self.change(spec)

    @property
    def spec(self) -> ClusterSpec:
        """The current description, with the release that each node runs or ran last."""
        return replace(self._spec, nodes=[node.spec for node in self.nodes])

    def change(self, spec: ClusterSpec) -> None:
        """Applies a new description: adds nodes; existing ones follow at their next start.

        Raises:
            StackError: if ``spec`` lacks an existing node.
        """
        if missing := self._nodes.keys() - {node.id for node in spec.nodes}:
            raise StackError(f"nodes {sorted(missing)} are missing; a node cannot be removed")
        self._spec = spec
        for node in spec.nodes:
            if node.id not in self.addresses:
                self.addresses[node.id] = self._choose_ports(node)
        for node in spec.nodes:
            directory = self.directory / f"node-{node.id}"
            properties = node_properties(spec, node, self.addresses, directory / "data")
            if existing := self._nodes.get(node.id):
                existing.configure(node, properties)
                continue
            self._nodes[node.id] = self._node(spec, node, directory, properties)

    def _node(
        self, spec: ClusterSpec, node: NodeSpec, directory: Path, properties: Mapping[str, str]
    ) -> KafkaNode:
        addresses, heap_mb, temporary = self.addresses[node.id], spec.heap_mb, self._temporary
        if node.is_reference:
            return ReferenceController(
                node,
                addresses,
                directory,
                properties,
                self._cache,
                heap_mb,
                temporary=temporary,
                level=spec.release_version,
            )
        return KafkaNode(
            node, addresses, directory, properties, self._cache, heap_mb, temporary=temporary
        )

    @property
    def members(self) -> Sequence[KafkaNode]:
        """All nodes."""
        return self.nodes

    @property
    def nodes(self) -> list[KafkaNode]:
        """All nodes, in the order of the description."""
        return list(self._nodes.values())

    def node(self, node_id: int) -> KafkaNode:
        """The node with this id.

        Raises:
            StackError: if there is no such node.
        """
        try:
            return self._nodes[node_id]
        except KeyError:
            ids = ", ".join(map(str, self._nodes))
            raise StackError(f"there is no node {node_id}; the nodes are {ids}") from None

    @property
    def bootstrap_servers(self) -> str:
        """``host:port,...`` of every broker, for clients; empty if there are no brokers."""
        return ",".join(node.broker for node in self.nodes if node.broker)

    @property
    def controllers(self) -> str:
        """``host:port,...`` of every controller listener."""
        return controller_addresses(self._spec, self.addresses)

    def start(self, timeout_s: float = START_TIMEOUT_S, *, informs_all: bool = True) -> None:
        """Formats new nodes, starts every stopped node and returns when the cluster is ready.

        ``informs_all`` as in `wait_ready`.

        Raises:
            StartError: if a node cannot be formatted, ends, or is not ready within ``timeout_s`` of
                its start; the nodes that were started are killed then.
            ArtifactError: if Kafka's jars cannot be fetched.
            JavaError: if no Java runtime is found.
        """
        for release in sorted({one.release for one in self.nodes if not one.spec.is_reference}):
            train_class_archive(self._cache, release)
        down = [node for node in self.nodes if not node.running]
        try:
            self._format()
            deadline = Deadline(timeout_s)
            for node in down:
                node.start(wait=False)
            for node in self.nodes:
                node.wait_ready(deadline.left_s)
            self.wait_ready(deadline.left_s, informs_all=informs_all)
        except BaseException:
            for node in down:
                node.kill()
            raise
        self.cluster_id = self.nodes[0].cluster_id or self.cluster_id

    def wait_ready(self, timeout_s: float = START_TIMEOUT_S, *, informs_all: bool = True) -> None:
        """Returns when each running node is ready and each broker sees all running brokers.

        Without ``informs_all`` a controller informs only a broker that starts, so each must see
        itself.

        Raises:
            StartError: if that does not happen within ``timeout_s``.
        """
        deadline = Deadline(timeout_s)
        running = [node for node in self.nodes if node.running]
        for node in running:
            node.wait_ready(deadline.left_s)
        expected = {node.id for node in running if node.broker}
        for node in running:
            if (port := node.addresses.broker) is not None:
                _wait_for_brokers(port, expected if informs_all else {node.id}, deadline.left_s)

    def roll(self, release: str | None = None, ids: Iterable[int] | None = None) -> None:
        """Restarts nodes one by one, waiting for each; all nodes if ``ids`` is None.

        ``release``: the release to start them on; None: the one that they run.

        Raises:
            StartError: if a node does not become ready; the nodes after it were not touched.
        """
        for node in self.nodes if ids is None else map(self.node, ids):
            node.stop()
            node.start(release)
            self.wait_ready()

    def leader(self, timeout_s: float = 30.0) -> KafkaNode:
        """The node that leads the quorum now, as a running controller reports it.

        Raises:
            StackError: if no controller reports a leader within ``timeout_s``.
        """
        reason = "no controller runs"
        for _ in attempts(timeout_s):
            for node in self.nodes:
                port = node.addresses.controller
                if not node.running or port is None:
                    continue
                try:
                    leader = self._nodes.get(quorum_leader(LOOPBACK, port))
                except WireError as error:
                    reason = str(error)
                    continue
                if leader is not None and leader.running:
                    return leader
                reason = "the leader is down and no other is elected yet"
        raise StackError(f"no quorum leader after {timeout_s:.0f} s: {reason}")

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Sends SIGTERM to every node, brokers first; kills those still running after
        ``timeout_s``.

        Controllers that stop together wait five seconds for a quorum that no longer exists (Kafka's
        KafkaRaftClient.shutdown). `close` kills them instead and returns at once.
        """
        brokers = [node for node in self.nodes if not node.spec.roles.is_controller]
        controllers = [node for node in self.nodes if node.spec.roles.is_controller]
        for group in (brokers, controllers):
            for node in group:
                node.terminate()
            _in_parallel(group, lambda node: node.stop(timeout_s))

    def _choose_ports(self, node: NodeSpec) -> Addresses:
        last = last_addresses(self.directory / f"node-{node.id}")
        return Addresses(
            broker=self._ports.reserve(last.broker) if node.roles.is_broker else None,
            controller=self._ports.reserve(last.controller) if node.roles.is_controller else None,
        )

    def _format(self) -> None:
        common = list(self._spec.format_arguments)
        if version := self._spec.release_version:
            common += ["--release-version", version]
        initial = self._initial_controllers() if self._spec.dynamic_voters else []
        first = self._spec.first_voters

        def format_one(node: KafkaNode) -> None:
            own = initial if node.spec.roles.is_controller else []
            if first and own and node.id not in first:
                own = ["--no-initial-controllers"]
            node.format(self.cluster_id, [*common, *own])

        new = [node for node in self.nodes if not node.formatted]
        models: dict[KafkaNode, KafkaNode] = {}
        for node in new:
            same = (model for model in models.values() if node.formats_as(model))
            # The arguments of dynamic voters name the directory of each.
            models[node] = node if initial else next(same, node)
        _in_parallel({*models.values()}, format_one)
        for node, model in models.items():
            if node is not model:
                node.copy_format(model)

    def _initial_controllers(self) -> list[str]:
        first = self._spec.first_voters
        voters = [
            voter
            for voter in quorum_voters(self._spec, self.addresses).split(",")
            if not first or int(voter.partition("@")[0]) in first
        ]
        return ["--initial-controllers", ",".join(f"{voter}:{random_id()}" for voter in voters)]


def _in_parallel(nodes: Iterable[KafkaNode], action: Callable[[KafkaNode], None]) -> None:
    targets = list(nodes)
    if targets:
        with ThreadPoolExecutor(len(targets)) as pool:
            list(pool.map(action, targets))


def _wait_for_brokers(port: int, expected: set[int], timeout_s: float) -> None:
    reason = ""
    for _ in attempts(timeout_s):
        try:
            live = live_brokers(LOOPBACK, port)
            if expected <= live:
                return
            reason = f"it sees brokers {sorted(live)} of {sorted(expected)}"
        except WireError as error:
            reason = str(error)
    raise StartError(f"the broker on port {port} does not see the whole cluster: {reason}")
