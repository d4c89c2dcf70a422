"""The addresses of a cluster's nodes, from its log and from listings."""

import ssl
from typing import Any

from featurewatch.kafka.address import Address
from featurewatch.kafka.security import PLAINTEXT, Security
from featurewatch.streams.events import RecordJson
from featurewatch.streams.node_addresses import MAX_NODES, NodeAddresses
from featurewatch.streams.types import NodeId, NodeKey, Role
from tests.simulation import records as r

LOGIN = Security(mechanism="PLAIN", username="u", password="p")  # noqa: S106
TLS = Security(tls=ssl.create_default_context())


def endpoint(host: str, port: int = 9092, protocol: int = 0) -> dict[str, Any]:
    """A listener of a registration."""
    return {"name": "L", "host": host, "port": port, "securityProtocol": protocol}


def registered(node_id: int, *endpoints: dict[str, Any], role: Role = Role.BROKER) -> RecordJson:
    """A registration with these listeners."""
    kind = f"REGISTER_{role.name}_RECORD"
    return r.record(kind, {f"{role}Id": node_id, "endPoints": [*endpoints]})


def learned(*records: RecordJson) -> NodeAddresses:
    """What a part of a log says."""
    addresses = NodeAddresses()
    addresses.apply(r.commit(9, *records))
    return addresses


def hosts(
    addresses: NodeAddresses, role: Role = Role.BROKER, security: Security = PLAINTEXT
) -> list[str]:
    """The hosts to try, in order."""
    return [address.host for address in addresses.of(role, security)]


def test_listeners_of_the_security_protocol_are_tried_the_newest_node_first() -> None:
    """One listener of each node, then the others; those of another protocol are of no use."""
    addresses = learned(
        registered(1, endpoint("a1"), endpoint("a2"), endpoint("tls", protocol=1)),
        registered(2, endpoint("sasl", protocol=2), endpoint("b1")),
    )
    assert hosts(addresses) == ["b1", "a1", "a2"]
    assert hosts(addresses, security=LOGIN) == ["sasl"]
    assert hosts(addresses, security=TLS) == ["tls"]
    assert hosts(addresses, Role.CONTROLLER) == []


def test_a_node_that_moves_or_leaves_has_its_old_addresses_no_more() -> None:
    """The newest registration counts, until the node is unregistered."""
    addresses = learned(registered(1, endpoint("old")), registered(2, endpoint("b")))
    addresses.apply(r.commit(20, registered(1, endpoint("new"))))
    assert hosts(addresses) == ["new", "b"]
    addresses.apply(r.chunk(30, 0, r.unregister(2)))
    assert hosts(addresses) == ["new"]
    addresses.apply(r.gap(0, 30, reset=True))
    assert hosts(addresses) == []


def test_controllers_come_from_registrations_voters_and_listings() -> None:
    """Voters and listings name no protocol: they are tried with every one."""
    voter = {"voterId": 1, "endpoints": [{"name": "C", "host": "voter", "port": 9093}]}
    addresses = learned(
        registered(1, endpoint("registered"), role=Role.CONTROLLER),
        r.record("KRAFT_VOTERS", {"version": 0, "voters": [voter]}),
    )
    listed = NodeKey(Role.CONTROLLER, NodeId(1))
    addresses.add_listing({listed: Address("listed", 9093)})
    assert hosts(addresses, Role.CONTROLLER) == ["listed", "voter", "registered"]
    assert hosts(addresses, Role.CONTROLLER, TLS) == ["listed", "voter"]


def test_the_listener_of_a_node_that_takes_the_login_is_known_from_its_registration() -> None:
    """Voters and listings do not say which protocol an address has."""
    addresses = learned(
        registered(1, endpoint("plain"), endpoint("sasl", protocol=2), role=Role.CONTROLLER),
        registered(1, endpoint("broker", protocol=2)),
    )
    key = NodeKey(Role.CONTROLLER, NodeId(1))
    addresses.add_listing({key: Address("listed", 9093)})
    assert [it.host for it in addresses.fitting(key, LOGIN)] == ["sasl"]
    assert [it.host for it in addresses.fitting(key, PLAINTEXT)] == ["plain"]
    assert addresses.fitting(key, TLS) == ()
    assert addresses.fitting(NodeKey(Role.CONTROLLER, NodeId(2)), LOGIN) == ()


def test_what_is_remembered_is_bounded_and_usable() -> None:
    """A cluster that registers any number of nodes fills nothing; what is no address is left out.

    Nodes of the other role are not displaced.
    """
    addresses = learned(registered(1, endpoint("c"), role=Role.CONTROLLER))
    for first in range(0, 10 * MAX_NODES, MAX_NODES):
        nodes = range(first, first + MAX_NODES)
        addresses.apply(r.commit(first, *(registered(n, endpoint(f"n{n}")) for n in nodes)))
    assert hosts(addresses) == [f"n{n}" for n in reversed(nodes)]
    assert hosts(addresses, Role.CONTROLLER) == ["c"]
    odd = (endpoint("x", port=0), endpoint(""), endpoint("a b"), endpoint("good"))
    assert hosts(learned(registered(1, *odd))) == ["good"]
    assert len(hosts(learned(registered(1, *(endpoint(f"h{n}") for n in range(99)))))) < 10
