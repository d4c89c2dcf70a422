"""Discovers the nodes of a cluster. A shell around `streams.apiversions.membership`."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain

from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import Connection
from featurewatch.kafka.node_errors import LocalResourceError, NodeError
from featurewatch.streams.apiversions import membership
from featurewatch.streams.apiversions.connections import ConnectionPool
from featurewatch.streams.apiversions.membership import NodeListing
from featurewatch.streams.apiversions.settings import ApiVersionsSettings
from featurewatch.streams.quorum import QuorumDescription
from featurewatch.streams.types import ClusterId, NodeId, NodeKey, Role


@dataclass(frozen=True, slots=True)
class DiscoveredNodes:
    """The nodes of a cluster as far as they could be listed.

    ``listed`` are the roles whose nodes are all in ``nodes``; a missing node of another role
    may still exist. Each of ``warnings`` is one line: what is not covered, and what to do.
    ``quorum`` is None where it could not be described; ``quorum_error`` is why, in one line, and
    empty where nobody has one.
    """

    cluster: ClusterId | None = None
    nodes: dict[NodeKey, Address] = field(default_factory=dict)
    listed: frozenset[Role] = frozenset()
    leader_id: int = -1
    leader_epoch: int = -1
    warnings: tuple[str, ...] = ()
    quorum: QuorumDescription | None = None
    quorum_error: str = ""


async def discover_nodes(
    settings: ApiVersionsSettings,
    peers: ConnectionPool,
    known_nodes: Iterable[tuple[NodeKey, Address]],
) -> DiscoveredNodes:
    """Query brokers, known ones first, and controllers; never raises for a silent node.

    Addresses that the cluster learned (`NodeAddresses`) come after the configured ones.

    Raises `LocalResourceError`, which says nothing about any node.
    """
    known_nodes = tuple(known_nodes)
    brokers = [address for key, address in known_nodes if key.role is Role.BROKER]
    controllers = [address for key, address in known_nodes if key.role is Role.CONTROLLER]
    configured = {c.address: c.node_id for c in settings.bootstrap_controllers}
    all_listings: list[NodeListing] = []
    warnings: list[str] = []
    if settings.bootstrap_servers:
        learned = settings.addresses.of(Role.BROKER, settings.security_of(Role.BROKER))
        given = settings.bootstrap_servers
        listings, errors = await _ask_brokers(peers, [*brokers, *given, *learned])
        all_listings += listings
        warnings += errors
    if settings.bootstrap_controllers:
        # Controllers with ids need no listing, but only a listing shows that others came or went.
        learned = settings.addresses.of(Role.CONTROLLER, settings.security_of(Role.CONTROLLER))
        listings, errors = await _ask_controllers(peers, [*controllers, *configured, *learned])
        if listings and not any(result.quorum for result in all_listings):
            listings.append(await _describe_quorum(peers, listings[0]))
        is_listed = any(key.role is Role.CONTROLLER for of in all_listings for key in of.nodes)
        all_listings += listings
        if not is_listed and not (settings.bootstrap_servers and None not in configured.values()):
            warnings += errors
    nodes = {key: address for result in all_listings for key, address in result.nodes.items()}
    listed = frozenset(key.role for key in nodes)
    nodes |= _by_protocol(nodes, settings)
    for address, node_id in configured.items():
        if node_id is not None:
            nodes[NodeKey(Role.CONTROLLER, node_id)] = address
    warnings += uncovered_nodes(all_listings, nodes, settings)
    quorum = next((result.quorum for result in all_listings if result.quorum), None)
    with_leader = next((result for result in all_listings if result.leader_id >= 0), NodeListing())
    return DiscoveredNodes(
        cluster=next((r.cluster for r in all_listings if r.cluster), None),
        nodes=nodes,
        listed=listed,
        leader_id=with_leader.leader_id,
        leader_epoch=with_leader.leader_epoch,
        warnings=tuple(dict.fromkeys(warnings)),
        quorum=quorum,
        quorum_error="" if quorum else _quorum_error(all_listings, warnings),
    )


def _quorum_error(listings: Iterable[NodeListing], warnings: Iterable[str]) -> str:
    """Why no node described the quorum: of several reasons the first."""
    reasons = (result.quorum_error for result in listings if result.quorum_error)
    return next(chain(reasons, warnings), "")


def _by_protocol(
    nodes: Mapping[NodeKey, Address], settings: ApiVersionsSettings
) -> dict[NodeKey, Address]:
    """Other listeners of controllers than those that a broker lists.

    DescribeQuorum has the listener by which controllers reach each other, and not its security
    protocol: a login there may be impossible where the metadata log has one that takes it.
    """
    security = settings.security_of(Role.CONTROLLER)
    found: dict[NodeKey, Address] = {}
    for key, address in nodes.items():
        if key.role is Role.CONTROLLER:
            fitting = settings.addresses.fitting(key, security)
            if fitting and address not in fitting:
                found[key] = fitting[0]
    return found


async def _ask_brokers(
    peers: ConnectionPool, addresses: Iterable[Address]
) -> tuple[list[NodeListing], list[str]]:
    """The listings of the first broker that responds, and the errors of those before it."""
    errors: list[str] = []
    for address in dict.fromkeys(addresses):
        try:
            connection = await peers.connection(Role.BROKER, address)
            return await _list_from_broker(connection, peers.timeout_s), []
        except LocalResourceError:
            raise
        except NodeError as error:
            errors.append(str(error))
    return [], errors


async def _list_from_broker(connection: Connection, timeout_s: float) -> list[NodeListing]:
    version = connection.version_of(
        membership.DESCRIBE_CLUSTER, membership.DESCRIBE_CLUSTER_VERSIONS
    )
    if version is None:
        raise NodeError(
            f"{connection.address} does not offer DescribeCluster: brokers of 2.8 and later do"
        )
    response = await connection.request(membership.brokers_request(version), timeout_s)
    brokers = membership.read_cluster(response, Role.BROKER)
    if brokers.error is not None:
        raise NodeError(f"{connection.address}: {brokers.error}")
    listings = [brokers]
    version = connection.version_of(membership.DESCRIBE_QUORUM, membership.DESCRIBE_QUORUM_VERSIONS)
    if version is not None:
        quorum = await connection.request(membership.quorum_request(version), timeout_s)
        listings.append(membership.read_quorum(quorum))
    return listings


async def _ask_controllers(
    peers: ConnectionPool, addresses: Iterable[Address]
) -> tuple[list[NodeListing], list[str]]:
    errors: list[str] = []
    for address in dict.fromkeys(addresses):
        try:
            connection = await peers.connection(Role.CONTROLLER, address)
            if connection.version_of(membership.DESCRIBE_CLUSTER, (1, 1)) is None:
                errors.append(f"{address} lists no controllers: those of 3.7 and later do")
                continue
            request = membership.controllers_request()
            response = await connection.request(request, peers.timeout_s)
            listing = membership.read_cluster(response, Role.CONTROLLER)
            if listing.error is None:
                return [listing], []
            errors.append(f"{address}: {listing.error}")
        except LocalResourceError:
            raise
        except NodeError as error:
            errors.append(str(error))
    return [], errors


async def _describe_quorum(peers: ConnectionPool, controllers: NodeListing) -> NodeListing:
    """The quorum by the active controller, which alone answers; without nodes."""
    address = controllers.nodes.get(NodeKey(Role.CONTROLLER, NodeId(controllers.active_id)))
    if address is None:
        return NodeListing(quorum_error="no controller is active")
    try:
        connection = await peers.connection(Role.CONTROLLER, address)
        version = connection.version_of(
            membership.DESCRIBE_QUORUM, membership.DESCRIBE_QUORUM_VERSIONS
        )
        if version is None:
            return NodeListing()
        response = await connection.request(membership.quorum_request(version), peers.timeout_s)
    except LocalResourceError:
        raise
    except NodeError as error:
        return NodeListing(quorum_error=str(error))
    listing = membership.read_quorum(response)
    return NodeListing(quorum=listing.quorum, quorum_error=listing.error or "")


def uncovered_nodes(
    all_listings: Iterable[NodeListing],
    nodes: dict[NodeKey, Address],
    settings: ApiVersionsSettings,
) -> list[str]:
    """One line for each node that gets no request, or shares its address, and what to do."""
    warnings = []
    if not any(key.role is Role.CONTROLLER for key in nodes):
        warnings += [result.error for result in all_listings if result.error is not None]
    hidden = sorted(
        node_id
        for result in all_listings
        for node_id in result.without_address
        if NodeKey(Role.CONTROLLER, node_id) not in nodes
    )
    if hidden:
        warnings.append(
            f"controllers {', '.join(map(str, hidden))} are not asked, their addresses are not "
            "known: set polled_controllers to id@host:port,... of each"
        )
    warnings += _shared_addresses(nodes)
    addresses = set(nodes.values())
    warnings += [
        f"the controller at {controller.address} is not asked, its id is not known: write it as "
        "id@host:port"
        for controller in settings.bootstrap_controllers
        if controller.address not in addresses
    ]
    return warnings


def _shared_addresses(nodes: dict[NodeKey, Address]) -> Iterable[str]:
    """A response does not name its node: nodes of one address cannot be distinguished."""
    keys_by_address: defaultdict[tuple[Role, Address], list[NodeKey]] = defaultdict(list)
    for key, address in sorted(nodes.items()):
        keys_by_address[key.role, address].append(key)
    for (_, address), keys in keys_by_address.items():
        if len(keys) > 1:
            yield (
                f"{' and '.join(map(str, keys))} all advertise {address}, so one of them answers "
                "for all: correct their advertised.listeners"
            )
