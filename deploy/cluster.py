"""A cluster of real Kafka nodes under one directory.

with Cluster(combined(["3.9.1"] * 3, "3.7-IV4"), directory) as cluster:
    cluster.node(1).stop()
    cluster.node(1).start("4.3.0")
"""

import base64
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from deploy.artifacts import Cache, default_cache
from deploy.errors import StackError, StartError, WireError
from deploy.node import START_TIMEOUT_S, STOP_TIMEOUT_S, Node
from deploy.ports import LOOPBACK, Ports
from deploy.probe import live_brokers, quorum_leader
from deploy.properties import Addresses, controllers, node_properties, voters
from deploy.specs import ClusterSpec
from deploy.training import train

_POLL_S = 0.1


class Cluster:
    """Nodes that belong together; not for use by several threads at once.

    ``directory`` holds a folder for each node. ``temporary``: it is removed by `close`, or when
    this process dies. ``addresses`` and ``cluster_id`` are given to take up an existing directory.
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
        self.spec = spec
        self.directory = directory.absolute()
        self.cluster_id = cluster_id or random_id()
        self._temporary = temporary
        self._ports = Ports()
        self._cache = cache or Cache(default_cache())
        self.addresses = dict(addresses or self._choose_ports())
        self._nodes = {node.id: self._make(node.id) for node in spec.nodes}

    @property
    def nodes(self) -> list[Node]:
        """All nodes, in the order of the description."""
        return list(self._nodes.values())

    def node(self, node_id: int) -> Node:
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
        return controllers(self.spec, self.addresses)

    def start(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Formats what is not formatted, starts every node that does not run, waits until ready.

        Raises:
            StartError: if a node ends or is not ready in time; the others are killed.
            ArtifactError, JavaError: if Kafka or Java cannot be had.
        """
        for release in sorted({node.release for node in self.nodes}):
            train(self._cache, release)
        try:
            self._format()
            for node in self.nodes:
                if not node.running:
                    node.start(wait=False)
            self.wait_ready(timeout_s)
        except BaseException:
            self.kill()
            raise

    def wait_ready(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Returns when each running node takes part and each sees all running brokers.

        Raises:
            StartError: if that does not happen in time.
        """
        deadline = time.monotonic() + timeout_s
        for node in self.nodes:
            if node.running or node.spec in self.spec.nodes:
                node.wait_ready(max(0.0, deadline - time.monotonic()))
        expected = {node.id for node in self.nodes if node.running and node.broker}
        for node in self.nodes:
            if node.running and (port := node.addresses.broker) is not None:
                _wait_for_brokers(port, expected, deadline)

    def leader(self, timeout_s: float = 30.0) -> Node:
        """The node that leads the quorum now, by the word of a running controller.

        Raises:
            StackError: if none is named in time.
        """
        deadline = time.monotonic() + timeout_s
        said = "no controller runs"
        while time.monotonic() < deadline:
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
            time.sleep(_POLL_S)
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

    def kill(self) -> None:
        """Kills every node."""
        for node in self.nodes:
            node.kill()

    def close(self) -> None:
        """Kills what runs, gives the ports back, removes a temporary directory."""
        self.kill()
        self._ports.release()
        if self._temporary:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _choose_ports(self) -> dict[int, Addresses]:
        return {
            node.id: Addresses(
                broker=self._ports.take() if node.roles.is_broker else None,
                controller=self._ports.take() if node.roles.is_controller else None,
            )
            for node in self.spec.nodes
        }

    def _make(self, node_id: int) -> Node:
        spec = next(node for node in self.spec.nodes if node.id == node_id)
        directory = self.directory / f"node-{node_id}"
        return Node(
            spec,
            self.addresses[node_id],
            directory,
            node_properties(self.spec, spec, self.addresses, directory / "data"),
            self._cache,
            self.spec.heap_mb,
            temporary=self._temporary,
        )

    def _format(self) -> None:
        common = list(self.spec.format_arguments)
        if version := self.spec.release_version:
            common += ["--release-version", version]
        initial = self._initial_controllers() if self.spec.dynamic_voters else []

        def format_one(node: Node) -> None:
            own = initial if node.spec.roles.is_controller else []
            node.format(self.cluster_id, [*common, *own])

        _each(self.nodes, format_one)

    def _initial_controllers(self) -> list[str]:
        named = voters(self.spec, self.addresses).split(",")
        return ["--initial-controllers", ",".join(f"{voter}:{random_id()}" for voter in named)]


def random_id() -> str:
    """A random id as Kafka writes them: 22 characters of URL-safe base64, no leading dash."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def _each(nodes: Iterable[Node], action: Callable[[Node], None]) -> None:
    listed = list(nodes)
    if listed:
        with ThreadPoolExecutor(len(listed)) as pool:
            list(pool.map(action, listed))


def _wait_for_brokers(port: int, expected: set[int], deadline: float) -> None:
    said = ""
    while time.monotonic() < deadline:
        try:
            seen = live_brokers(LOOPBACK, port)
            if expected <= seen:
                return
            said = f"it sees brokers {sorted(seen)} of {sorted(expected)}"
        except WireError as error:
            said = str(error)
        time.sleep(_POLL_S)
    raise StartError(f"the broker on port {port} does not see the whole cluster: {said}")
