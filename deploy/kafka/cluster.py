"""A cluster of real Kafka nodes under one directory.

with Cluster(combined(["3.9.1"] * 3, "3.7-IV4"), directory) as cluster:
    cluster.node(1).stop()
    cluster.node(1).start("4.3.0")
"""

import base64
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from featurewatch.deploy.errors import StackError, StartError, WireError
from featurewatch.deploy.java.jars import Cache
from featurewatch.deploy.kafka.archive_training import train_class_archive
from featurewatch.deploy.kafka.node import KafkaNode
from featurewatch.deploy.kafka.server_properties import (
    Addresses,
    controllers,
    node_properties,
    voters,
)
from featurewatch.deploy.kafka.specs import ClusterSpec, NodeSpec
from featurewatch.deploy.process.group import Group
from featurewatch.deploy.process.polling import Deadline, attempts
from featurewatch.deploy.process.ports import LOOPBACK
from featurewatch.deploy.process.server import START_TIMEOUT_S, STOP_TIMEOUT_S
from featurewatch.deploy.wire.probe import live_brokers, quorum_leader


class Cluster(Group):
    """Nodes that belong together.

    ``addresses`` and ``cluster_id`` are given to take up an existing directory. A cluster in
    ZooKeeper mode gives itself an id: it is known when the cluster has started.
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
        """What the cluster is, each node on the release that it runs or ran last."""
        return replace(self._spec, nodes=[node.spec for node in self.nodes])

    def change(self, spec: ClusterSpec) -> None:
        """What the cluster shall be: new nodes are there, old ones follow at their next start.

        Raises:
            StackError: if a node that is there is not described.
        """
        if gone := self._nodes.keys() - {node.id for node in spec.nodes}:
            raise StackError(f"nodes {sorted(gone)} are missing; a node cannot be taken away")
        self._spec = spec
        for node in spec.nodes:
            if node.id not in self.addresses:
                self.addresses[node.id] = self._choose_ports(node)
        for node in spec.nodes:
            directory = self.directory / f"node-{node.id}"
            properties = node_properties(spec, node, self.addresses, directory / "data")
            if known := self._nodes.get(node.id):
                known.configure(node, properties)
                continue
            self._nodes[node.id] = KafkaNode(
                node,
                self.addresses[node.id],
                directory,
                properties,
                self._cache,
                spec.heap_mb,
                temporary=self._temporary,
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
            StackError: if there is none.
        """
        try:
            return self._nodes[node_id]
        except KeyError:
            known = ", ".join(map(str, self._nodes))
            raise StackError(f"there is no node {node_id}; the nodes are {known}") from None

    @property
    def bootstrap_servers(self) -> str:
        """``host:port,...`` of every broker, for clients; empty if there is none."""
        return ",".join(node.broker for node in self.nodes if node.broker)

    @property
    def controllers(self) -> str:
        """``host:port,...`` of every controller listener."""
        return controllers(self._spec, self.addresses)

    def start(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Formats what is not formatted, starts every node that does not run, waits until ready.

        Raises:
            StartError: if a node ends or is not ready in time; what was started is killed.
            ArtifactError, JavaError: if Kafka or Java cannot be had.
        """
        for release in sorted({node.release for node in self.nodes}):
            train_class_archive(self._cache, release)
        down = [node for node in self.nodes if not node.running]
        deadline = Deadline(timeout_s)
        try:
            self._format()
            for node in down:
                node.start(wait=False)
            for node in self.nodes:
                node.wait_ready(deadline.left_s)
            self.wait_ready(deadline.left_s)
        except BaseException:
            for node in down:
                node.kill()
            raise
        self.cluster_id = self.nodes[0].cluster_id or self.cluster_id

    def wait_ready(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Returns when each running node takes part and each sees all running brokers.

        Raises:
            StartError: if that does not happen in time.
        """
        deadline = Deadline(timeout_s)
        running = [node for node in self.nodes if node.running]
        for node in running:
            node.wait_ready(deadline.left_s)
        expected = {node.id for node in running if node.broker}
        for node in running:
            if (port := node.addresses.broker) is not None:
                _wait_for_brokers(port, expected, deadline.left_s)

    def roll(self, release: str | None = None, ids: Iterable[int] | None = None) -> None:
        """Restarts nodes one by one (all if none are named), each when the one before is ready.

        Raises:
            StartError: if a node does not come back; those after it were not touched.
        """
        for node in self.nodes if ids is None else map(self.node, ids):
            node.stop()
            node.start(release)
            self.wait_ready()

    def leader(self, timeout_s: float = 30.0) -> KafkaNode:
        """The node that leads the quorum now, by the word of a running controller.

        Raises:
            StackError: if none is named in time.
        """
        said = "no controller runs"
        for _ in attempts(timeout_s):
            for node in self.nodes:
                port = node.addresses.controller
                if not node.running or port is None:
                    continue
                try:
                    leader = self._nodes.get(quorum_leader(LOOPBACK, port))
                except WireError as error:
                    said = str(error)
                    continue
                if leader is not None and leader.running:
                    return leader
                said = "the leader is down and no other is elected yet"
        raise StackError(f"no quorum leader after {timeout_s:.0f} s: {said}")

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Asks every node to shut down, brokers first, and kills those that have not in time.

        Controllers that stop together wait five seconds for a quorum that is gone (Kafka's
        KafkaRaftClient.shutdown); `close` does not ask and is at once.
        """
        brokers = [n for n in self.nodes if not n.spec.roles.is_controller]
        rest = [n for n in self.nodes if n.spec.roles.is_controller]
        for group in (brokers, rest):
            for node in group:
                node.ask_to_stop()
            _each(group, lambda node: node.stop(timeout_s))

    def _choose_ports(self, node: NodeSpec) -> Addresses:
        return Addresses(
            broker=self._ports.take() if node.roles.is_broker else None,
            controller=self._ports.take() if node.roles.is_controller else None,
        )

    def _format(self) -> None:
        common = list(self._spec.format_arguments)
        if version := self._spec.release_version:
            common += ["--release-version", version]
        initial = self._initial_controllers() if self._spec.dynamic_voters else []

        def format_one(node: KafkaNode) -> None:
            own = initial if node.spec.roles.is_controller else []
            node.format(self.cluster_id, [*common, *own])

        _each(self.nodes, format_one)

    def _initial_controllers(self) -> list[str]:
        named = voters(self._spec, self.addresses).split(",")
        return ["--initial-controllers", ",".join(f"{voter}:{random_id()}" for voter in named)]


def random_id() -> str:
    """A random id as Kafka writes them: 22 characters of URL-safe base64, no leading dash."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def _each(nodes: Iterable[KafkaNode], action: Callable[[KafkaNode], None]) -> None:
    listed = list(nodes)
    if listed:
        with ThreadPoolExecutor(len(listed)) as pool:
            list(pool.map(action, listed))


def _wait_for_brokers(port: int, expected: set[int], timeout_s: float) -> None:
    said = ""
    for _ in attempts(timeout_s):
        try:
            seen = live_brokers(LOOPBACK, port)
            if expected <= seen:
                return
            said = f"it sees brokers {sorted(seen)} of {sorted(expected)}"
        except WireError as error:
            said = str(error)
    raise StartError(f"the broker on port {port} does not see the whole cluster: {said}")
