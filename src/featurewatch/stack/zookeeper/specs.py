"""Describes a ZooKeeper ensemble and derives the configuration of each server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from featurewatch.stack.errors import StackError
from featurewatch.stack.process.ports import LOOPBACK

TICK_MS = 500
"""ZooKeeper's ``tickTime``; the shortest session lasts two ticks."""


@dataclass(frozen=True, slots=True)
class Tls:
    """A TLS port on each server, beside the plaintext port.

    ZooKeeper derives the format of a store from its file name (``.pem``, ``.p12``, ``.jks``).
    ``trust_store`` holds the authorities that sign client certificates; None: clients need none.
    """

    key_store: Path
    password: str = ""
    trust_store: Path | None = None
    trust_password: str = ""


@dataclass(frozen=True, slots=True)
class EnsembleSpec:
    """An ensemble of ``servers`` servers, each with a heap of ``heap_mb`` MiB.

    ``properties`` override the defaults of each server's configuration; ``java_options`` come
    last. ``jaas`` is the text of a JAAS login configuration for SASL.
    """

    servers: int = 1
    properties: Mapping[str, str] = field(default_factory=dict)
    java_options: Sequence[str] = ()
    tls: Tls | None = None
    jaas: str | None = None
    heap_mb: int = 128

    def __post_init__(self) -> None:
        """Validates the number of servers.

        Raises:
            StackError: if it is not odd and positive.
        """
        if self.servers < 1 or self.servers % 2 == 0:
            raise StackError(
                f"an ensemble has 1, 3, 5, ... servers, not {self.servers}: "
                "a majority of an even number survives no more failures"
            )


@dataclass(frozen=True, slots=True)
class ServerPorts:
    """A server's ports on the loopback interface; ``secure`` is None without TLS."""

    client: int
    peer: int
    election: int
    secure: int | None = None


def server_properties(
    spec: EnsembleSpec, ports: Sequence[ServerPorts], number: int, data: Path
) -> dict[str, str]:
    """The ``zoo.cfg`` of server ``number`` (numbers start at 1), as key and value."""
    own_ports = ports[number - 1]
    properties = {
        "dataDir": str(data),
        "clientPort": str(own_ports.client),
        "clientPortAddress": LOOPBACK,
        "tickTime": str(TICK_MS),
        "initLimit": "40",
        "syncLimit": "20",
        "maxSessionTimeout": "60000",
        "maxClientCnxns": "0",  # thousands of sessions come from this one machine
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "ruok,srvr,mntr,cons",
        # A killed process loses nothing without fsync, which only guards against a machine crash.
        "forceSync": "no",
        "preAllocSize": "4096",
    }
    if len(ports) > 1:
        for peer_number, peer in enumerate(ports, start=1):
            properties[f"server.{peer_number}"] = f"{LOOPBACK}:{peer.peer}:{peer.election}"
    if spec.tls is not None:
        properties |= _tls(spec.tls, own_ports.secure)
    return properties | dict(spec.properties)


def _tls(tls: Tls, port: int | None) -> dict[str, str]:
    properties = {
        "secureClientPort": str(port),
        "secureClientPortAddress": LOOPBACK,
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": str(tls.key_store),
        "ssl.keyStore.password": tls.password,
        "ssl.clientAuth": "none" if tls.trust_store is None else "need",
    }
    if tls.trust_store is not None:
        properties["ssl.trustStore.location"] = str(tls.trust_store)
        properties["ssl.trustStore.password"] = tls.trust_password
    return properties
