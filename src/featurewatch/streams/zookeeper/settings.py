"""The settings of the ZooKeeper source."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field

from featurewatch.kafka.address import Address
from featurewatch.kafka.client_config.errors import SecurityError
from featurewatch.kafka.client_config.jaas import JAAS_KEY
from featurewatch.kafka.client_config.kerberos.properties import kerberos_login
from featurewatch.kafka.client_config.kerberos.ticket_source import TicketSource, checked_source
from featurewatch.kafka.security import from_properties
from featurewatch.streams.source_status import GracePeriods
from featurewatch.streams.types import ClusterId
from featurewatch.streams.zookeeper.bounded_socket import DEFAULT_MAX_FRAME_BYTES
from featurewatch.streams.zookeeper.paths import WatchScope
from featurewatch.streams.zookeeper.watcher.requests import WatcherTiming

_PORT = 2181


@dataclass(frozen=True, slots=True)
class ZookeeperLogin:
    """How to reach the servers: a TLS context (None: plaintext), and a login by SASL, if any.

    That is a name and a password (DIGEST-MD5, which ZooKeeper's own login module supports), or
    Kerberos ``tickets`` (GSSAPI).
    """

    tls: ssl.SSLContext | None = field(default=None, repr=False)
    username: str = ""
    password: str = field(default="", repr=False)
    tickets: TicketSource | None = field(default=None, repr=False)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> "ZookeeperLogin":
        """Read ``security.protocol``, ``ssl.*`` and ``sasl.*``.

        The spellings are those of the other sources. Raises `SecurityError`.
        """
        protocol = properties.get("security.protocol", "PLAINTEXT").upper()
        encrypted = "SSL" if protocol.endswith("SSL") else "PLAINTEXT"
        tls = from_properties({**properties, "security.protocol": encrypted}).tls
        if not protocol.startswith("SASL"):
            if (
                unused := next((key for key in properties if key.startswith("sasl.")), None)
            ) is None:
                return cls(tls)
            raise SecurityError(
                f"{unused} has no effect without a login: set security.protocol to SASL_SSL or "
                "SASL_PLAINTEXT",
                unused,
            )
        mechanism = properties.get("sasl.mechanism") or properties.get("sasl.mechanisms")
        if mechanism == "GSSAPI":
            login = kerberos_login(properties, default_service="zookeeper")
            return cls(tls, tickets=checked_source(login))
        if mechanism not in (None, "DIGEST-MD5"):
            raise SecurityError(
                f"sasl.mechanism={mechanism} is not supported for ZooKeeper: use DIGEST-MD5 or "
                "GSSAPI",
                "sasl.mechanism" if "sasl.mechanism" in properties else "sasl.mechanisms",
            )
        for key in properties:
            if key == JAAS_KEY or key.startswith("sasl.kerberos."):
                raise SecurityError(f"{key} is for Kerberos: set sasl.mechanism to GSSAPI", key)
        username, password = properties.get("sasl.username"), properties.get("sasl.password")
        if not username or not password:
            raise SecurityError(
                "sasl.username and sasl.password are needed for ZooKeeper", "security.protocol"
            )
        return cls(tls, username, password)


@dataclass(frozen=True, slots=True)
class ZookeeperSettings:
    """One cluster and where its znodes are.

    ``hosts`` is ZooKeeper's own form, ``host:port,host:port/chroot`` (port 2181 if none is given).
    ``cluster`` is checked against ``/cluster/id``; it may be left out. ``window`` bounds how many
    reads are under way at a time. A session that is silent for ``session_timeout_ms`` expires; the
    servers may allow less or demand more. The connection ends at a frame of more than
    ``max_frame_bytes``, or one that takes longer than ``answer_timeout_ms``, and if no read is
    answered for that long.
    """

    hosts: str
    cluster: ClusterId | None = None
    login: ZookeeperLogin = field(default_factory=ZookeeperLogin)
    wanted: WatchScope = field(default_factory=WatchScope)
    session_timeout_ms: int = 10_000
    heartbeat_ms: int = 3000
    window: int = 512
    max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES
    answer_timeout_ms: int = 10_000
    grace: GracePeriods = field(default_factory=GracePeriods)
    timing: WatcherTiming = field(default_factory=WatcherTiming)

    def __post_init__(self) -> None:
        parse_hosts(self.hosts)
        positive = ("session_timeout_ms", "heartbeat_ms", "window")
        for name in (*positive, "max_frame_bytes", "answer_timeout_ms"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")

    @property
    def chroot(self) -> str:
        """The chroot, without a slash at its end; empty: none."""
        return parse_hosts(self.hosts)[1]

    @property
    def connect_string(self) -> str:
        """``hosts``, with every port."""
        addresses, chroot = parse_hosts(self.hosts)
        return ",".join(map(str, addresses)) + chroot


def parse_hosts(text: str) -> tuple[tuple[Address, ...], str]:
    """The servers and the chroot of ``host:port,host:port/chroot``.

    Raises `ValueError` with the reason.
    """
    servers, slash, rest = text.strip().partition("/")
    if "," in rest:
        raise ValueError(f"{text!r} has a server after the chroot: give it once, at the end")
    names = [part for name in rest.split("/") if (part := name.strip())]
    server_texts = [server.strip() for server in servers.split(",") if server.strip()]
    if not server_texts:
        raise ValueError(f"{text!r} names no ZooKeeper server: write host:port,host:port/chroot")
    addresses = tuple(Address.parse(_with_port(server)) for server in server_texts)
    return addresses, "".join(f"/{name}" for name in names) if slash else ""


def _with_port(server: str) -> str:
    bare = server.endswith("]") or ":" not in server
    return f"{server}:{_PORT}" if bare else server
