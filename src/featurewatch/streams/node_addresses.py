"""Where the nodes of a cluster listen, as its own log and its nodes say."""

from collections.abc import Iterable, Mapping
from itertools import chain, zip_longest
from typing import Any, Final, NamedTuple

from featurewatch.kafka.address import Address
from featurewatch.kafka.security import Security
from featurewatch.streams.events import DeadLetter, Event, LogCommit, LogGap, SnapshotChunk
from featurewatch.streams.types import NodeId, NodeKey, Role

MAX_NODES: Final = 64
"""The nodes of a role that are remembered: those that registered or were listed last."""

MAX_LISTENERS: Final = 8
"""The listeners of a node that are remembered."""

_LISTING: Final = "listing"
_UNREGISTRATIONS: Final = {
    "UNREGISTER_BROKER_RECORD": ("REGISTER_BROKER_RECORD", Role.BROKER, "brokerId"),
    "UNREGISTER_CONTROLLER_RECORD": ("REGISTER_CONTROLLER_RECORD", Role.CONTROLLER, "controllerId"),
}
_REGISTRATIONS: Final = {origin: (role, id_) for origin, role, id_ in _UNREGISTRATIONS.values()}
_VOTERS: Final = "KRAFT_VOTERS"


class _Listener(NamedTuple):
    """A listener; ``protocol`` is its security protocol (None: not known)."""

    address: Address
    protocol: int | None


class NodeAddresses:
    """The addresses by which a cluster's nodes may be reached beside the configured ones.

    The sources of one cluster share them: each adds what it reads. They are of nodes that
    registered (``RegisterBrokerRecord``, ``RegisterControllerRecord``), of voters
    (``VotersRecord``, KIP-853), and of listings (``DescribeCluster``, ``DescribeQuorum``).
    """

    def __init__(self) -> None:
        self._known: dict[Role, dict[tuple[str, NodeId], tuple[_Listener, ...]]] = {}

    def apply(self, event: Event | DeadLetter) -> None:
        """Adds what a part of the metadata log says; a log that went back is forgotten."""
        if isinstance(event, LogGap) and event.reset:
            self._known.clear()
        elif isinstance(event, LogCommit | SnapshotChunk):
            for record in event.records:
                self._apply(record["type"], record["data"])

    def add_listing(self, nodes: Mapping[NodeKey, Address]) -> None:
        """Adds the nodes of a listing, each with the address that it has for this client."""
        for key, address in nodes.items():
            self._add(_LISTING, key.role, key.node_id, [_Listener(address, None)])

    def ids(self, role: Role) -> frozenset[NodeId]:
        """The ids of the nodes of a role."""
        return frozenset(node_id for _, node_id in self._known.get(role, {}))

    def of(self, role: Role, security: Security) -> tuple[Address, ...]:
        """The addresses to try for nodes of a role, the newest first, of each node one first.

        Listeners of another security protocol than that of ``security`` are left out.
        """
        protocol = security_protocol(security)
        fitting = (
            [item.address for item in listeners if item.protocol in (None, protocol)]
            for listeners in reversed(self._known.get(role, {}).values())
        )
        rounds = chain.from_iterable(zip_longest(*fitting))
        return tuple(dict.fromkeys(address for address in rounds if address is not None))

    def fitting(self, key: NodeKey, security: Security) -> tuple[Address, ...]:
        """The listeners of a node that are known to have the security protocol of ``security``."""
        protocol = security_protocol(security)
        return tuple(
            item.address
            for (_, node_id), listeners in self._known.get(key.role, {}).items()
            for item in listeners
            if node_id == key.node_id and item.protocol == protocol
        )

    def _apply(self, kind: str, data: Any) -> None:
        if kind in _REGISTRATIONS:
            role, name = _REGISTRATIONS[kind]
            self._add(kind, role, data[name], map(_listener, data["endPoints"]))
        elif kind in _UNREGISTRATIONS:
            origin, role, name = _UNREGISTRATIONS[kind]
            self._known.get(role, {}).pop((origin, data[name]), None)
        elif kind == _VOTERS:
            for voter in data["voters"]:
                listeners = map(_listener, voter["endpoints"])
                self._add(kind, Role.CONTROLLER, voter["voterId"], listeners)

    def _add(
        self, origin: str, role: Role, node_id: NodeId, listeners: Iterable[_Listener]
    ) -> None:
        nodes = self._known.setdefault(role, {})
        nodes.pop((origin, node_id), None)
        usable = [item for item in listeners if item.address.problem() is None]
        nodes[origin, node_id] = tuple(usable[:MAX_LISTENERS])
        if len(nodes) > MAX_NODES:
            del nodes[next(iter(nodes))]


def security_protocol(security: Security) -> int:
    """The number of the security protocol (``SecurityProtocol``)."""
    return int(security.tls is not None) + 2 * int(security.mechanism is not None)


def _listener(endpoint: Mapping[str, Any]) -> _Listener:
    address = Address.of_peer(endpoint["host"], endpoint["port"])
    return _Listener(address, endpoint.get("securityProtocol"))
