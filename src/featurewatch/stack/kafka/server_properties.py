"""Derives a node's server.properties from the description of its cluster."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec, Roles
from featurewatch.stack.process.ports import LOOPBACK

CONTROLLER_LISTENER = "CONTROLLER"
BROKER_LISTENER = "PLAINTEXT"
PROPERTIES_FILE = "server.properties"


@dataclass(frozen=True, slots=True)
class Addresses:
    """A node's ports on the loopback interface; None for a listener that it does not have."""

    broker: int | None
    controller: int | None


def last_addresses(directory: Path) -> Addresses:
    """The ports that a node had when it ran last in its directory; None where that is not known."""
    try:
        text = (directory / PROPERTIES_FILE).read_text()
    except (OSError, UnicodeDecodeError):
        text = ""
    listeners = re.search(r"^listeners=(.*)$", text, re.MULTILINE)
    found = re.findall(rf"(\w+)://{LOOPBACK}:(\d{{1,5}})", listeners[1] if listeners else "")
    ports = {name: int(port) for name, port in found}
    return Addresses(ports.get(BROKER_LISTENER), ports.get(CONTROLLER_LISTENER))


def quorum_voters(spec: ClusterSpec, addresses: Mapping[int, Addresses]) -> str:
    """The value of ``controller.quorum.voters``: ``1@127.0.0.1:9093,...``."""
    return ",".join(
        f"{node.id}@{LOOPBACK}:{addresses[node.id].controller}"
        for node in spec.nodes
        if node.roles.is_controller
    )


def controller_addresses(spec: ClusterSpec, addresses: Mapping[int, Addresses]) -> str:
    """The controllers' addresses: ``host:port,...``; empty without controllers."""
    quorum = quorum_voters(spec, addresses)
    return ",".join(voter.partition("@")[2] for voter in quorum.split(",")) if quorum else ""


def node_properties(
    spec: ClusterSpec, node: NodeSpec, addresses: Mapping[int, Addresses], data: Path
) -> dict[str, str]:
    """The properties of one node; the spec's, then the node's, override the defaults."""
    broker_count = sum(other.roles.is_broker for other in spec.nodes)
    properties = {
        "log.dirs": str(data),
        "listeners": _listeners(addresses[node.id]),
        "listener.security.protocol.map": f"{CONTROLLER_LISTENER}:PLAINTEXT,"
        f"{BROKER_LISTENER}:PLAINTEXT",
    }
    if node.roles is Roles.ZOOKEEPER:
        properties |= {"broker.id": str(node.id), **_zookeeper(spec)}
    else:
        properties |= {"process.roles": node.roles.value, "node.id": str(node.id)}
    if node.roles is not Roles.ZOOKEEPER or spec.migrating:
        properties |= {"controller.listener.names": CONTROLLER_LISTENER, **_quorum(spec, addresses)}
    if spec.migrating and node.roles.is_controller:
        properties |= _zookeeper(spec)
    if node.roles.is_broker or spec.migrating:
        # A migrating controller sends metadata updates to brokers in ZooKeeper mode.
        properties["inter.broker.listener.name"] = BROKER_LISTENER
    defaults = properties | _small(min(3, max(1, broker_count)))
    return defaults | dict(spec.properties) | dict(node.properties)


def format_properties(properties: Mapping[str, str]) -> str:
    """The text of a properties file."""
    return "".join(f"{key}={value}\n" for key, value in properties.items())


def _listeners(addresses: Addresses) -> str:
    listeners: Sequence[tuple[str, int | None]] = (
        (BROKER_LISTENER, addresses.broker),
        (CONTROLLER_LISTENER, addresses.controller),
    )
    return ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in listeners if port is not None)


def _quorum(spec: ClusterSpec, addresses: Mapping[int, Addresses]) -> dict[str, str]:
    if spec.dynamic_voters:
        return {"controller.quorum.bootstrap.servers": controller_addresses(spec, addresses)}
    return {"controller.quorum.voters": quorum_voters(spec, addresses)}


def _zookeeper(spec: ClusterSpec) -> dict[str, str]:
    properties = {
        "zookeeper.connect": str(spec.zookeeper),
        "zookeeper.session.timeout.ms": "6000",
        "zookeeper.connection.timeout.ms": "30000",
    }
    if spec.migrating:
        properties["zookeeper.metadata.migration.enable"] = "true"
    return properties


def _small(replicas: int) -> dict[str, str]:
    """Properties that keep a node small and its start quick."""
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
        # A killed broker may register again only when its old session expires: 9 s by default.
        "broker.session.timeout.ms": "6000",
        "broker.heartbeat.interval.ms": "1000",
    }
