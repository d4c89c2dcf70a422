"""The real servers under the harness: a quorum and a bus, whose listeners are behind the proxy."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import trustme

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.server_properties import Addresses
from featurewatch.stack.kafka.specs import NEWEST_TESTED, ClusterSpec, NodeSpec
from featurewatch.stack.process.ports import LOOPBACK, Ports
from tests.faults.proxy import Proxy
from tests.process_logs import started

USERS: Final = ("source", "worker")
QUORUM_LINKS: Final = tuple(f"quorum-{number}" for number in (1, 2, 3))
ELSEWHERE_LINKS: Final = tuple(f"elsewhere-{number}" for number in (1, 2, 3))
"""Links from the quorum's ports on `ELSEWHERE` to the bus, which is another cluster."""

ELSEWHERE: Final = "127.0.0.2"
TLS_LINK: Final = "tls-bus"
TLS_QUORUM_LINKS: Final = tuple(f"tls-quorum-{number}" for number in (1, 2, 3))
BUS_LINKS: Final = {user: f"{user}-bus" for user in USERS}
_JAAS: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@dataclass(frozen=True)
class Certificates:
    """PEM files: an authority, and certificates with their keys.

    ``valid`` and ``expired`` are of the servers, ``client`` is of featurewatch. ``new_authority``
    has issued ``new_valid`` and ``new_client``.
    """

    authority: Path
    valid: Path
    expired: Path
    client: Path
    new_authority: Path
    new_valid: Path
    new_client: Path


@dataclass(frozen=True)
class Servers:
    """A quorum of three, a bus of one, and the proxy before them.

    ``controllers``, ``tls_controllers`` and ``bus_of`` are the addresses that featurewatch has, the
    last for each user, and ``tls`` for both. What the harness does itself passes no proxy.
    """

    quorum: Cluster
    bus: Cluster
    proxy: Proxy
    controllers: str
    tls_controllers: str
    bus_of: dict[str, str]
    certificates: Certificates


@contextmanager
def running_servers(directory: Path) -> Iterator[Servers]:
    """The servers, running."""
    ports = Ports()
    with Proxy() as proxy:
        quorum, controllers = _quorum(directory / "quorum", ports, proxy)
        directory.mkdir()
        certificates = _certificates(directory)
        bus, bus_of = _bus(directory / "bus", ports, proxy, certificates)
        ports_of_bus = {node.id: node.addresses for node in bus.nodes}
        for link, address in zip(ELSEWHERE_LINKS, controllers.split(","), strict=True):
            port = int(address.rpartition(":")[2])
            proxy.listen(link, port, ports_of_bus[1].controller or 0, host=ELSEWHERE)
        tls = [
            proxy.listen(link, 0, node.addresses.controller or 0, certificates.valid)
            for link, node in zip(TLS_QUORUM_LINKS, quorum.nodes, strict=True)
        ]
        tls_controllers = ",".join(f"{LOOPBACK}:{port}" for port in tls)
        with started(quorum), started(bus):
            yield Servers(quorum, bus, proxy, controllers, tls_controllers, bus_of, certificates)
    ports.release()


def _quorum(directory: Path, ports: Ports, proxy: Proxy) -> tuple[Cluster, str]:
    nodes, addresses, proxied = [], {}, []
    for number, link in enumerate(QUORUM_LINKS, start=1):
        own = addresses[number] = Addresses(ports.reserve(), ports.reserve())
        assert own.controller is not None
        port = proxy.listen(link, ports.reserve(), own.controller)
        proxied.append(f"{LOOPBACK}:{port}")
        advertised = f"PLAINTEXT://{LOOPBACK}:{own.broker},CONTROLLER://{proxied[-1]}"
        nodes.append(NodeSpec(number, properties={"advertised.listeners": advertised}))
    # The truth is read from the whole log: nothing of it may go to a snapshot.
    properties = {"metadata.log.max.snapshot.interval.ms": "0"}
    spec = ClusterSpec(nodes, properties=properties)
    cluster = Cluster(spec, directory, temporary=True, addresses=addresses)
    return cluster, ",".join(proxied)


def _bus(
    directory: Path, ports: Ports, proxy: Proxy, certificates: Certificates
) -> tuple[Cluster, dict[str, str]]:
    own = Addresses(ports.reserve(), ports.reserve())
    listeners = {"PLAINTEXT": own.broker}
    advertised = dict(listeners)
    for user, link in (*BUS_LINKS.items(), ("tls", TLS_LINK)):
        port = listeners[user.upper()] = ports.reserve()
        shown = certificates.valid if user == "tls" else None
        advertised[user.upper()] = proxy.listen(link, ports.reserve(), port, shown)
    users = " ".join(f'user_{user}="secret"' for user in USERS)
    jaas = {
        f"listener.name.{user}.plain.sasl.jaas.config": f"{_JAAS} {users};"
        for user in (*USERS, "tls")
    }
    protocols = ",".join(f"{user.upper()}:SASL_PLAINTEXT" for user in (*USERS, "tls"))
    properties = {
        "listeners": _listeners(listeners) + f",CONTROLLER://{LOOPBACK}:{own.controller}",
        "advertised.listeners": _listeners(advertised),
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,{protocols}",
        "sasl.enabled.mechanisms": "PLAIN",
        **jaas,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "true",
        "log.cleaner.backoff.ms": "1000",
        "log.cleaner.dedupe.buffer.size": str(16 << 20),
    }
    spec = ClusterSpec([NodeSpec(1, NEWEST_TESTED, properties=properties)], heap_mb=384)
    cluster = Cluster(spec, directory, temporary=True, addresses={1: own})
    return cluster, {user: f"{LOOPBACK}:{advertised[user.upper()]}" for user in (*USERS, "tls")}


def _certificates(directory: Path) -> Certificates:
    names = [one.name for one in fields(Certificates)]
    files = Certificates(*(directory / f"{name}.pem" for name in names))
    yesterday = datetime.now(UTC) - timedelta(days=1)
    old, new = trustme.CA(), trustme.CA()
    old.cert_pem.write_to_path(files.authority)
    new.cert_pem.write_to_path(files.new_authority)
    for authority, file, not_after in (
        (old, files.valid, None),
        (old, files.expired, yesterday),
        (old, files.client, None),
        (new, files.new_valid, None),
        (new, files.new_client, None),
    ):
        issued = authority.issue_cert(LOOPBACK, not_after=not_after)
        issued.private_key_and_cert_chain_pem.write_to_path(file)
    return files


def _listeners(ports: dict[str, int | None]) -> str:
    return ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in ports.items())
