"""What a ZooKeeper ensemble shall be, and the configuration of a server of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from featurewatch.deploy.errors import StackError
from featurewatch.deploy.process.ports import LOOPBACK

TICK_MS = 500
"""ZooKeeper's unit of time; the shortest session is two of them."""


@dataclass(frozen=True, slots=True)
class Tls:
    """A port for TLS on each server, beside the plain one.

    ZooKeeper tells PEM, PKCS #12 and JKS by the files' names (``.pem``, ``.p12``, ``.jks``).
    ``trust_store``: who signs clients' certificates; None: clients show none.
    """

    key_store: Path
    password: str = ""
    trust_store: Path | None = None
    trust_password: str = ""


@dataclass(frozen=True, slots=True)
class EnsembleSpec:
    """An ensemble.

    ``properties`` go into each server's configuration and win over ours; ``java_options`` come
    last. ``jaas`` is the text of a login configuration, for SASL (see `digest`).
    """

    servers: int = 1
    properties: Mapping[str, str] = field(default_factory=dict)
    java_options: Sequence[str] = ()
    tls: Tls | None = None
    jaas: str | None = None
    heap_mb: int = 128

    def __post_init__(self) -> None:
        """Checks the description.

        Raises:
            StackError: if no such ensemble can be.
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


def digest(users: Mapping[str, str], *, required: bool = True) -> EnsembleSpec:
    """One server that knows these users and passwords by SASL with DIGEST-MD5.

    ``required``: a session without a login gets nothing but an error.
    """
    names = "\n".join(f'  user_{name}="{password}"' for name, password in users.items())
    return EnsembleSpec(
        properties={
            "authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
            "sessionRequireClientSASLAuth": str(required).lower(),
        },
        jaas="Server {\n  org.apache.zookeeper.server.auth.DigestLoginModule required\n"
        f"{names};\n}};\n",
    )


def server_properties(
    spec: EnsembleSpec, ports: Sequence[ServerPorts], number: int, data: Path
) -> dict[str, str]:
    """Everything that server ``number`` (1 and up) is started with."""
    own = ports[number - 1]
    found = {
        "dataDir": str(data),
        "clientPort": str(own.client),
        "clientPortAddress": LOOPBACK,
        "tickTime": str(TICK_MS),
        "initLimit": "40",
        "syncLimit": "20",
        "maxSessionTimeout": "60000",
        "maxClientCnxns": "0",  # thousands of sessions come from this one machine
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "ruok,srvr,mntr,cons",
        # A killed process loses nothing without these; they guard against a machine that stops.
        "forceSync": "no",
        "preAllocSize": "4096",
    }
    if len(ports) > 1:
        for other, its in enumerate(ports, start=1):
            found[f"server.{other}"] = f"{LOOPBACK}:{its.peer}:{its.election}"
    if spec.tls is not None:
        found |= _tls(spec.tls, own.secure)
    return found | dict(spec.properties)


def _tls(tls: Tls, port: int | None) -> dict[str, str]:
    found = {
        "secureClientPort": str(port),
        "secureClientPortAddress": LOOPBACK,
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": str(tls.key_store),
        "ssl.keyStore.password": tls.password,
        "ssl.clientAuth": "none" if tls.trust_store is None else "need",
    }
    if tls.trust_store is not None:
        found["ssl.trustStore.location"] = str(tls.trust_store)
        found["ssl.trustStore.password"] = tls.trust_password
    return found
