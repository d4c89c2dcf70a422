"""A node's server.properties, from what the cluster shall be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from featurewatch.deploy.kafka.specs import ClusterSpec, NodeSpec, Roles
from featurewatch.deploy.process.ports import LOOPBACK

CONTROLLER_LISTENER = "CONTROLLER"
BROKER_LISTENER = "PLAINTEXT"


@dataclass(frozen=True, slots=True)
class Addresses:
    """A node's ports on the loopback interface; None where it has no such listener."""

    broker: int | None
    controller: int | None


def voters(spec: ClusterSpec, addresses: Mapping[int, Addresses]) -> str:
    """``controller.quorum.voters``: ``1@127.0.0.1:9093,...``."""
    return ",".join(
        f"{node.id}@{LOOPBACK}:{addresses[node.id].controller}"
        for node in spec.nodes
        if node.roles.is_controller
    )


def controllers(spec: ClusterSpec, addresses: Mapping[int, Addresses]) -> str:
    """The controllers' addresses, ``host:port`` with commas between."""
    named = voters(spec, addresses)
    return ",".join(voter.partition("@")[2] for voter in named.split(",")) if named else ""


def node_properties(
    spec: ClusterSpec, node: NodeSpec, addresses: Mapping[int, Addresses], data: Path
) -> dict[str, str]:
    """Everything that a node is started with; later entries win over earlier ones."""
    brokers = sum(other.roles.is_broker for other in spec.nodes)
    found = {
        "log.dirs": str(data),
        "listeners": _listeners(addresses[node.id]),
        "listener.security.protocol.map": f"{CONTROLLER_LISTENER}:PLAINTEXT,"
        f"{BROKER_LISTENER}:PLAINTEXT",
    }
    if node.roles is Roles.ZOOKEEPER:
        found |= {"broker.id": str(node.id), **_zookeeper(spec)}
    else:
        found |= {"process.roles": node.roles.value, "node.id": str(node.id)}
    if node.roles is not Roles.ZOOKEEPER or spec.migrating:
        found |= {"controller.listener.names": CONTROLLER_LISTENER, **_quorum(spec, addresses)}
    if spec.migrating and node.roles.is_controller:
        found |= _zookeeper(spec)
    if node.roles.is_broker or spec.migrating:
        # A migrating controller sends what it decides to brokers in ZooKeeper mode.
        found["inter.broker.listener.name"] = BROKER_LISTENER
    return found | _small(min(3, max(1, brokers))) | dict(spec.properties) | dict(node.properties)


def text(properties: Mapping[str, str]) -> str:
    """As a properties file."""
    return "".join(f"{key}={value}\n" for key, value in properties.items())


def _listeners(own: Addresses) -> str:
    listeners: Sequence[tuple[str, int | None]] = (
        (BROKER_LISTENER, own.broker),
        (CONTROLLER_LISTENER, own.controller),
    )
    return ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in listeners if port is not None)


def _quorum(spec: ClusterSpec, addresses: Mapping[int, Addresses]) -> dict[str, str]:
    if spec.dynamic_voters:
        return {"controller.quorum.bootstrap.servers": controllers(spec, addresses)}
    return {"controller.quorum.voters": voters(spec, addresses)}


def _zookeeper(spec: ClusterSpec) -> dict[str, str]:
    found = {
        "zookeeper.connect": str(spec.zookeeper),
        "zookeeper.session.timeout.ms": "6000",
        "zookeeper.connection.timeout.ms": "30000",
    }
    if spec.migrating:
        found["zookeeper.metadata.migration.enable"] = "true"
    return found


def _small(replicas: int) -> dict[str, str]:
    """What makes a node small and its start quick."""
    in_sync = str(min(2, replicas))
    return {
        "offsets.topic.replication.factor": str(replicas),
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": "4",
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
        "num.network.threads": "1",
        "num.io.threads": "2",
        "log.cleaner.dedupe.buffer.size": str(4 << 20),  # 128 MiB by default: half the heap
        # A killed broker may register again only when its old session is over: 9 s by default.
        "broker.session.timeout.ms": "6000",
        "broker.heartbeat.interval.ms": "1000",
    }
