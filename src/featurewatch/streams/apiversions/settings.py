"""The settings of the ApiVersions source."""

from dataclasses import dataclass, field
from typing import Self

from featurewatch.kafka.address import Address, parse_addresses
from featurewatch.kafka.security import PLAINTEXT, Security
from featurewatch.streams.node_addresses import NodeAddresses
from featurewatch.streams.types import ClusterId, NodeId, Role


@dataclass(frozen=True, slots=True)
class ControllerAddress:
    """A controller's address and, where it is known, its node id.

    An ApiVersions response does not name its node, so a controller gets requests only once its id
    is known: from here, or from the quorum's description.
    """

    address: Address
    node_id: NodeId | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads ``host:port`` or ``id@host:port``, as in ``controller.quorum.voters``.

        Raises `ValueError` with the reason.
        """
        node_id, at, address = text.strip().rpartition("@")
        if at and not node_id.isdecimal():
            raise ValueError(f"{text!r} has no number before the @: write id@host:port")
        return cls(Address.parse(address), NodeId(int(node_id)) if at else None)


@dataclass(frozen=True, slots=True)
class ApiVersionsSettings:
    """One cluster and how its nodes are queried.

    At least one of ``bootstrap_servers`` and ``bootstrap_controllers`` is needed. ``cluster`` is
    checked against the nodes' own; it may be omitted where brokers are queried. A node that does
    not respond to ``misses`` requests in a row is silent. ``controllers_security`` defaults to
    ``security``. ``addresses`` gets those of the listed nodes, and has those that the metadata log
    told: they are asked for a listing where the configured ones give none.
    """

    bootstrap_servers: tuple[Address, ...] = ()
    bootstrap_controllers: tuple[ControllerAddress, ...] = ()
    cluster: ClusterId | None = None
    security: Security = PLAINTEXT
    controllers_security: Security | None = None
    interval_s: float = 1.0
    listing_interval_s: float = 3.0
    heartbeat_s: float = 3.0
    timeout_s: float = 2.0
    concurrency: int = 32
    misses: int = 3
    addresses: NodeAddresses = field(default_factory=NodeAddresses, compare=False)

    def __post_init__(self) -> None:
        if not self.bootstrap_servers and not self.bootstrap_controllers:
            raise ValueError("nobody to ask: give bootstrap servers or bootstrap controllers")
        for name in ("interval_s", "listing_interval_s", "heartbeat_s", "timeout_s"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be above 0")
        for name in ("concurrency", "misses"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")

    def security_of(self, role: Role) -> Security:
        """How nodes of a role are reached."""
        if role is Role.CONTROLLER and self.controllers_security is not None:
            return self.controllers_security
        return self.security

    @classmethod
    def parse(
        cls, bootstrap_servers: str = "", bootstrap_controllers: str = "", **others: object
    ) -> Self:
        """The settings with addresses as comma lists; raises `ValueError`."""
        controllers = bootstrap_controllers.split(",")
        return cls(
            bootstrap_servers=parse_addresses(bootstrap_servers),
            bootstrap_controllers=tuple(
                ControllerAddress.parse(c) for c in controllers if c.strip()
            ),
            **others,  # type: ignore[arg-type]  # the constructor checks the names
        )
