"""What a stack may consist of: each part starts servers, tells about them, and takes them away."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol
from uuid import NAMESPACE_OID, uuid5

from featurewatch.deploy.errors import StackError
from featurewatch.deploy.java.jars import Cache
from featurewatch.deploy.kafka.cluster import Cluster
from featurewatch.deploy.kafka.specs import ClusterSpec, Roles
from featurewatch.deploy.process.ports import LOOPBACK
from featurewatch.deploy.process.server import Server
from featurewatch.deploy.stack.reference_nodes import reference_nodes
from featurewatch.deploy.stack.stack_file import ReferenceFile, StackFile, ZooKeeperFile
from featurewatch.deploy.wire.light_nodes import LightBroker, LightNodes
from featurewatch.deploy.wire.probe import supported_ranges
from featurewatch.deploy.zookeeper.ensemble import Ensemble
from featurewatch.deploy.zookeeper.specs import EnsembleSpec

FIRST_LIGHT_ID: Final = 10_001
REFERENCE_CHROOT: Final = "/reference"


class StackComponent(Protocol):
    """One kind of thing in a stack."""

    @property
    def servers(self) -> Mapping[str, Server]:
        """By the name that ``featurewatch stack node`` takes."""

    def start(self) -> None:
        """Starts what does not run and waits until it takes part.

        Raises:
            StackError: if it cannot.
        """

    def start_server(self, name: str, release: str | None) -> None:
        """Starts one server again and does not wait.

        Raises:
            StackError: if it runs, or cannot run that release.
        """

    def server_status(self, name: str) -> dict[str, Any]:
        """How one server does, as plain data."""

    def status(self) -> dict[str, Any]:
        """This part's entries of the stack's status; a later part's go over an earlier one's."""

    def describe(self, file: StackFile) -> StackFile:
        """The stack file with all that this part needs to be taken up again."""

    def close(self) -> None:
        """Takes everything away but the data."""


def components_of(
    described: StackFile, directory: Path, cache: Cache | None
) -> list[StackComponent]:
    """The parts of a stack in the order of their start; each may count on those before it."""
    parts: list[StackComponent] = []
    spec = described.spec
    if described.zookeeper is not None:
        zookeeper = ZookeeperComponent(described.zookeeper, directory, cache)
        parts.append(zookeeper)
        if spec is not None and spec.zookeeper is not None:
            chroot = "".join(spec.zookeeper.partition("/")[1:])
            spec = replace(spec, zookeeper=zookeeper.ensemble.connect_string + chroot)
        if described.reference is not None:
            connect = zookeeper.ensemble.connect_string + REFERENCE_CHROOT
            parts.append(ReferenceComponent(described.reference, directory, connect))
    if spec is not None:
        parts.append(KafkaComponent(spec, described, directory, cache))
    return parts


class ZookeeperComponent:
    """An ensemble of ZooKeeper servers, named ``zookeeper-1`` and so on."""

    def __init__(self, described: ZooKeeperFile, directory: Path, cache: Cache | None) -> None:
        spec = EnsembleSpec(described.servers)
        self.ensemble = Ensemble(directory, spec, cache=cache, ports=described.ports)
        self.servers = {server.directory.name: server for server in self.ensemble.servers}

    def start(self) -> None:
        """Starts the servers."""
        self.ensemble.start()

    def start_server(self, name: str, release: str | None) -> None:
        """Starts one server again and does not wait."""
        if release is not None:
            raise StackError("ZooKeeper servers are all of one release; leave out --release")
        self.servers[name].start(wait=False)

    def server_status(self, name: str) -> dict[str, Any]:
        """How one server does, with its mode in place of a release."""
        server = self.servers[name]
        mode = server.mode() if server.running else "down"
        return {"id": name, "address": server.address, "mode": mode} | _process_status(server)

    def status(self) -> dict[str, Any]:
        """The connect string without a chroot, and the servers."""
        return {
            "zookeeper": self.ensemble.connect_string,
            "zookeeper_servers": [self.server_status(name) for name in self.servers],
        }

    def describe(self, file: StackFile) -> StackFile:
        """Adds the ports."""
        known = ZooKeeperFile(len(self.servers), tuple(self.ensemble.ports))
        return replace(file, zookeeper=known)

    def close(self) -> None:
        """Kills the servers; what they acknowledged is on disk."""
        self.ensemble.close()


class ReferenceComponent:
    """A reference cluster of KIP-584; its processes are named ``reference-1`` and so on."""

    def __init__(self, described: ReferenceFile, directory: Path, connect: str) -> None:
        self._described = described
        self._connect = connect
        nodes = reference_nodes(described.brokers, directory, connect, described.options)
        self.nodes = {node.directory.name: node for node in nodes}

    @property
    def servers(self) -> Mapping[str, Server]:
        """The processes by name."""
        return self.nodes

    def start(self) -> None:
        """Starts the processes, the first one first: it makes what a new cluster needs."""
        for node in self.nodes.values():
            if not node.running:
                node.start()

    def start_server(self, name: str, release: str | None) -> None:
        """Starts one process again and does not wait."""
        if release is not None:
            raise StackError("reference brokers have no releases; leave out --release")
        self.nodes[name].start(wait=False)

    def server_status(self, name: str) -> dict[str, Any]:
        """How one process does."""
        node = self.nodes[name]
        mode = "reference broker" if node.running else "down"
        return {"id": name, "address": node.address, "mode": mode} | _process_status(node)

    def status(self) -> dict[str, Any]:
        """The connect string with its chroot, how many brokers there are, and the processes."""
        return {
            "reference": self._connect,
            "reference_brokers": self._described.brokers,
            "reference_servers": [self.server_status(name) for name in self.nodes],
        }

    def describe(self, file: StackFile) -> StackFile:
        """It has nothing to be remembered: its ports are chosen anew."""
        return file

    def close(self) -> None:
        """Asks the processes to end, which ends their sessions."""
        for node in self.nodes.values():
            node.ask_to_stop()
        for node in self.nodes.values():
            node.stop(10.0)


class KafkaComponent:
    """A cluster of Kafka nodes and maybe light brokers; the nodes are named by their ids."""

    def __init__(
        self, spec: ClusterSpec, described: StackFile, directory: Path, cache: Cache | None
    ) -> None:
        self.cluster = Cluster(
            spec,
            directory,
            cache=cache,
            addresses=described.addresses,
            cluster_id=described.cluster_id,
        )
        self.servers = {str(node.id): node for node in self.cluster.nodes}
        self._light_brokers = described.light_brokers
        self._light = ExitStack()

    def start(self) -> None:
        """Starts the nodes, then registers the light brokers."""
        self.cluster.start()
        self._add_light_brokers()

    def start_server(self, name: str, release: str | None) -> None:
        """Starts one node again and does not wait."""
        self.servers[name].start(release, wait=False)

    def server_status(self, name: str) -> dict[str, Any]:
        """How one node does."""
        node = self.servers[name]
        return {
            "id": node.id,
            "release": node.release,
            "roles": node.spec.roles.value.split(","),
            "broker": node.broker,
            "controller": node.controller,
        } | _process_status(node)

    def status(self) -> dict[str, Any]:
        """The cluster's addresses and its nodes."""
        found = {
            "cluster_id": self.cluster.cluster_id,
            "bootstrap_servers": self.cluster.bootstrap_servers,
            "controllers": self.cluster.controllers,
            "light_brokers": self._light_brokers,
            "nodes": [self.server_status(name) for name in self.servers],
        }
        connect = self.cluster.spec.zookeeper
        return found if connect is None else found | {"zookeeper": connect}

    def describe(self, file: StackFile) -> StackFile:
        """Adds the cluster's id and addresses, and the nodes' releases."""
        return replace(
            file,
            spec=self.cluster.spec,
            cluster_id=self.cluster.cluster_id,
            addresses=self.cluster.addresses,
        )

    def close(self) -> None:
        """Kills the nodes; those in ZooKeeper mode are asked first, which ends their sessions."""
        self._light.close()
        polite = [n for n in self.cluster.nodes if n.spec.roles is Roles.ZOOKEEPER]
        for node in polite:
            node.ask_to_stop()
        for node in polite:
            node.stop(10.0)
        self.cluster.close()

    def _add_light_brokers(self) -> None:
        if not self._light_brokers:
            return
        cluster = self.cluster
        port = cluster.leader().addresses.controller
        ranges = supported_ranges(LOOPBACK, port) if port is not None else {}
        light = self._light.enter_context(LightNodes(cluster.controllers, cluster.cluster_id))
        ids = range(FIRST_LIGHT_ID, FIRST_LIGHT_ID + self._light_brokers)
        # The same incarnation each time: a stack that is taken up again need not wait until the
        # controller has given up the old sessions.
        brokers = [
            LightBroker(
                number, ranges, incarnation=uuid5(NAMESPACE_OID, f"{cluster.cluster_id}/{number}")
            )
            for number in ids
        ]
        if refused := light.register(brokers):
            raise StackError(f"{len(refused)} light brokers were refused: {refused[0].text}")
        self._light.enter_context(light.kept_alive())


def _process_status(server: Server) -> dict[str, Any]:
    missing = server.not_ready() if server.running else "it is not running"
    return {
        "running": server.running,
        "ready": missing is None,
        "missing": missing,
        "pid": server.pid,
        "log": str(server.log),
    }
