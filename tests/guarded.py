"""A node of Kafka with an authorizer, which has listeners that require a login beside its own.

Who comes by the node's own listeners may do everything.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.server_properties import Addresses
from featurewatch.stack.kafka.specs import NEWEST_TESTED, ClusterSpec, NodeSpec
from featurewatch.stack.process.ports import LOOPBACK, Ports
from tests.process_logs import started

JAAS: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@dataclass(frozen=True)
class GuardedNode:
    """A running node, or a cluster with it; its listeners for logins: broker's, controller's."""

    cluster: Cluster
    broker: str
    controller: str


@contextmanager
def guarded_node(
    directory: Path,
    cache: Cache,
    users: Mapping[str, str],
    release: str = NEWEST_TESTED,
    *,
    super_users: Sequence[str] = (),
    others: Sequence[NodeSpec] = (),
) -> Iterator[GuardedNode]:
    """Runs node 1 until the end of the block, and ``others`` beside it.

    ``users`` are the passwords by name, for SASL PLAIN.
    """
    logins = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    by_listener = {"plain.sasl.jaas.config": f"{JAAS} {logins};"}
    properties = {"sasl.enabled.mechanisms": "PLAIN"}
    with node_with_logins(
        directory, cache, release, properties, by_listener, super_users, others=others
    ) as node:
        yield node


@contextmanager
def node_with_logins(
    directory: Path,
    cache: Cache,
    release: str,
    properties: Mapping[str, str],
    by_listener: Mapping[str, str],
    super_users: Sequence[str],
    *,
    others: Sequence[NodeSpec] = (),
    metadata_version: str | None = None,
) -> Iterator[GuardedNode]:
    """Runs node 1 until the end of the block, and ``others`` beside it.

    ``properties`` are those of the node, ``by_listener`` those of each listener with a login,
    without their prefix. The ``super_users`` may do everything.
    """
    ports = Ports()
    own = Addresses(ports.reserve(), ports.reserve())
    broker, controller = (f"{LOOPBACK}:{ports.reserve()}" for _ in range(2))
    clients = f"PLAINTEXT://{LOOPBACK}:{own.broker},GUARDED://{broker}"
    of_node = {
        "listeners": f"{clients},CONTROLLER://{LOOPBACK}:{own.controller},QUORUM://{controller}",
        "advertised.listeners": clients,
        "controller.listener.names": "CONTROLLER,QUORUM",
        **properties,
        **{
            f"listener.name.{listener}.{name}": value
            for listener in ("guarded", "quorum")
            for name, value in by_listener.items()
        },
    }
    shared = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
        "GUARDED:SASL_PLAINTEXT,QUORUM:SASL_PLAINTEXT",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": ";".join(f"User:{name}" for name in ("ANONYMOUS", *super_users)),
    }
    nodes = [NodeSpec(1, release, properties=of_node), *others]
    spec = ClusterSpec(nodes, metadata_version, properties=shared)
    cluster = Cluster(spec, directory, cache=cache, temporary=True, addresses={1: own})
    try:
        with started(cluster):
            yield GuardedNode(cluster, broker, controller)
    finally:
        ports.release()
