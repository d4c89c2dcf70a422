"""The components of a stack; each one starts, describes and stops its servers."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol
from uuid import NAMESPACE_OID, uuid5

from featurewatch.kafka.operations_form import OperationsForm
from featurewatch.stack.controllers import ControllersComponent
from featurewatch.stack.errors import StackError
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import ClusterSpec, Roles
from featurewatch.stack.process.ports import LOOPBACK
from featurewatch.stack.process.server import Server
from featurewatch.stack.reference_nodes import ReferenceComponent, reference_nodes
from featurewatch.stack.stack_file import ReferenceFile, StackFile, ZookeeperFile
from featurewatch.stack.wire.light_nodes import LightBroker, LightNodes
from featurewatch.stack.wire.probe import supported_ranges
from featurewatch.stack.zookeeper.ensemble import Ensemble
from featurewatch.stack.zookeeper.specs import EnsembleSpec

FIRST_LIGHT_ID: Final = 10_001
REFERENCE_CHROOT: Final = "/reference"


class StackComponent(Protocol):
    """One component: an ensemble, a reference cluster or a Kafka cluster."""

    @property
    def servers(self) -> Mapping[str, Server]:
        """The servers by the name that ``featurewatch stack node`` accepts."""

    def start(self) -> None:
        """Starts every stopped server and returns when all are ready.

        Raises:
            StackError: if one does not become ready.
        """

    def start_server(self, name: str, release: str | None) -> None:
        """Starts one server again and does not wait; ``release`` None: the release it ran last.

        Raises:
            StackError: if it runs, or cannot run that release.
        """

    def server_status(self, name: str) -> dict[str, Any]:
        """The state of one server, as plain data."""

    def status(self) -> dict[str, Any]:
        """This component's entries of the stack's status; later components override earlier."""

    def describe(self, file: StackFile) -> StackFile:
        """The stack file with everything that this component needs to resume."""

    def close(self) -> None:
        """Stops the servers; their data stays."""


def components_of(file: StackFile, directory: Path, cache: Cache | None) -> list[StackComponent]:
    """The components of a stack in start order; each may rely on those before it."""
    components: list[StackComponent] = []
    spec = file.spec
    if file.zookeeper is not None:
        zookeeper = ZookeeperComponent(file.zookeeper, directory, cache)
        components.append(zookeeper)
        if spec is not None and spec.zookeeper is not None:
            chroot = "".join(spec.zookeeper.partition("/")[1:])
            spec = replace(spec, zookeeper=zookeeper.ensemble.connect_string + chroot)
            if file.controlled:
                connect = str(spec.zookeeper)
                controllers = ControllersComponent(directory, connect, file.operations_dialect)
                components.append(controllers)
        if file.reference is not None:
            connect = zookeeper.ensemble.connect_string + REFERENCE_CHROOT
            components.append(ReferenceBrokersComponent(file.reference, directory, connect))
    if spec is not None:
        components.append(KafkaComponent(spec, file, directory, cache))
    return components


class ZookeeperComponent:
    """An ensemble of ZooKeeper servers, named ``zookeeper-1`` and so on."""

    def __init__(self, file: ZookeeperFile, directory: Path, cache: Cache | None) -> None:
        spec = EnsembleSpec(file.servers)
        self.ensemble = Ensemble(directory, spec, cache=cache, ports=file.ports)
        self.servers = {server.directory.name: server for server in self.ensemble.servers}

    def start(self) -> None:
        """Starts the stopped servers."""
        self.ensemble.start()

    def start_server(self, name: str, release: str | None) -> None:
        """Starts one server again and does not wait."""
        if release is not None:
            raise StackError("all ZooKeeper servers run one release; leave out --release")
        self.servers[name].start(wait=False)

    def server_status(self, name: str) -> dict[str, Any]:
        """The state of one server, with its mode in place of a release."""
        server = self.servers[name]
        mode = server.mode() if server.running else "down"
        return {"id": name, "address": server.address, "mode": mode} | server.process_status()

    def status(self) -> dict[str, Any]:
        """The connect string without a chroot, and the state of each server."""
        return {
            "zookeeper": self.ensemble.connect_string,
            "zookeeper_servers": [self.server_status(name) for name in self.servers],
        }

    def describe(self, file: StackFile) -> StackFile:
        """Adds the ports."""
        zookeeper = ZookeeperFile(len(self.servers), tuple(self.ensemble.ports))
        return replace(file, zookeeper=zookeeper)

    def close(self) -> None:
        """Kills the servers; acknowledged writes are on disk."""
        self.ensemble.close()


class ReferenceBrokersComponent(ReferenceComponent):
    """A reference cluster of KIP-584; its processes are named ``reference-1`` and so on."""

    def __init__(self, file: ReferenceFile, directory: Path, connect: str) -> None:
        self._file = file
        self._connect = connect
        nodes = reference_nodes(file.brokers, directory, connect, file.options)
        by_name = {node.directory.name: node for node in nodes}
        super().__init__(by_name, "reference broker", "reference brokers", "reference_servers")

    def status(self) -> dict[str, Any]:
        """The connect string with its chroot, the number of brokers, and each process's state."""
        brokers = {"reference": self._connect, "reference_brokers": self._file.brokers}
        return brokers | super().status()


class KafkaComponent:
    """A cluster of Kafka nodes, named by their ids, and optional light brokers."""

    def __init__(
        self, spec: ClusterSpec, file: StackFile, directory: Path, cache: Cache | None
    ) -> None:
        self.cluster = Cluster(
            spec,
            directory,
            cache=cache,
            addresses=file.addresses,
            cluster_id=file.cluster_id,
        )
        self.servers = {str(node.id): node for node in self.cluster.nodes}
        # The document's controller informs brokers of others when a partition changes.
        self._informs_all = file.operations_dialect != OperationsForm.DOCUMENT
        self._light_brokers = file.light_brokers
        self._light = ExitStack()

    def start(self) -> None:
        """Starts the stopped nodes, then registers the light brokers."""
        self.cluster.start(informs_all=self._informs_all)
        self._add_light_brokers()

    def start_server(self, name: str, release: str | None) -> None:
        """Starts one node again and does not wait."""
        self.servers[name].start(release, wait=False)

    def server_status(self, name: str) -> dict[str, Any]:
        """The state of one node."""
        node = self.servers[name]
        return {
            "id": node.id,
            "release": node.release,
            "is_reference": node.spec.is_reference,
            "roles": node.spec.roles.value.split(","),
            "broker": node.broker,
            "controller": node.controller,
        } | node.process_status()

    def status(self) -> dict[str, Any]:
        """The cluster's addresses and the state of each node."""
        status = {
            "cluster_id": self.cluster.cluster_id,
            "bootstrap_servers": self.cluster.bootstrap_servers,
            "controllers": self.cluster.controllers,
            "light_brokers": self._light_brokers,
            "nodes": [self.server_status(name) for name in self.servers],
        }
        connect = self.cluster.spec.zookeeper
        return status if connect is None else status | {"zookeeper": connect}

    def describe(self, file: StackFile) -> StackFile:
        """Adds the cluster's id and addresses, and the nodes' releases."""
        return replace(
            file,
            spec=self.cluster.spec,
            cluster_id=self.cluster.cluster_id,
            addresses=self.cluster.addresses,
        )

    def close(self) -> None:
        """Kills the nodes; those in ZooKeeper mode get SIGTERM first, which ends their sessions."""
        self._light.close()
        zookeeper_brokers = [
            node for node in self.cluster.nodes if node.spec.roles is Roles.ZOOKEEPER
        ]
        for node in zookeeper_brokers:
            node.terminate()
        for node in zookeeper_brokers:
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
        # The incarnation is the same at each start, so a stack that resumes need not wait until
        # the controller has expired the old sessions.
        brokers = [
            LightBroker(
                broker_id,
                ranges,
                incarnation=uuid5(NAMESPACE_OID, f"{cluster.cluster_id}/{broker_id}"),
            )
            for broker_id in ids
        ]
        if refusals := light.register(brokers):
            raise StackError(f"{len(refusals)} light brokers were refused: {refusals[0].text}")
        self._light.enter_context(light.kept_alive())
