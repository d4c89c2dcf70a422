"""A node of Kafka whose guarded listeners take Kerberos tickets."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.server_properties import Addresses
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec
from featurewatch.stack.process.ports import LOOPBACK, Ports
from tests.guarded import GuardedNode
from tests.kerberos import CLIENT, KAFKA, Kdc, java_entry, require_java
from tests.process_logs import started

REAUTHENTICATION_S = 4
"""After this long a node closes a connection that has not logged in again."""


@contextmanager
def kerberos_node(
    directory: Path, cache: Cache, release: str, kdc: Kdc, **others: str
) -> Iterator[GuardedNode]:
    """Runs node 1 until the end of the block; the client of the realm may do everything."""
    require_java()
    ports = Ports()
    own = Addresses(ports.reserve(), ports.reserve())
    broker, controller = (f"{LOOPBACK}:{ports.reserve()}" for _ in range(2))
    clients = f"PLAINTEXT://{LOOPBACK}:{own.broker},GUARDED://{broker}"
    properties = {
        "listeners": f"{clients},CONTROLLER://{LOOPBACK}:{own.controller},QUORUM://{controller}",
        "advertised.listeners": clients,
        "controller.listener.names": "CONTROLLER,QUORUM",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        **others,
    }
    for name in ("guarded", "quorum"):
        prefix = f"listener.name.{name}.gssapi"
        properties |= {
            f"{prefix}.sasl.jaas.config": f"{java_entry(kdc.keytab(KAFKA), KAFKA)};",
            f"{prefix}.connections.max.reauth.ms": str(REAUTHENTICATION_S * 1000),
        }
    shared = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
        "GUARDED:SASL_PLAINTEXT,QUORUM:SASL_PLAINTEXT",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:ANONYMOUS;User:{CLIENT}",
    }
    spec = ClusterSpec([NodeSpec(1, release, properties=properties)], properties=shared)
    cluster = Cluster(spec, directory, cache=cache, temporary=True, addresses={1: own})
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={kdc.config}")
            with started(cluster):
                yield GuardedNode(cluster, broker, controller)
    finally:
        ports.release()
