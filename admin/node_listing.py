"""Which nodes a cluster has, for questions that go to all of them or to one by its id."""

from featurewatch.admin.connections import Bootstrap
from featurewatch.admin.errors import UnreachableError
from featurewatch.streams.apiversions.connections import ConnectionPool
from featurewatch.streams.apiversions.discovery import discover_nodes
from featurewatch.streams.apiversions.settings import ApiVersionsSettings, ControllerAddress
from featurewatch.streams.net.address import Address
from featurewatch.streams.types import NodeId, Role


async def list_nodes(bootstrap: Bootstrap, timeout_s: float) -> dict[tuple[Role, NodeId], Address]:
    """Where each node listens, ordered by role and id.

    Raises:
        UnreachableError: Nobody says which nodes there are.
    """
    settings = ApiVersionsSettings(
        bootstrap_servers=() if bootstrap.controllers else bootstrap.addresses,
        bootstrap_controllers=tuple(map(ControllerAddress, bootstrap.addresses))
        if bootstrap.controllers
        else (),
        security=bootstrap.security,
        timeout_s=timeout_s,
    )
    peers = ConnectionPool(settings)
    try:
        found = await discover_nodes(settings, peers, ())
    finally:
        await peers.retain(())
    if not found.nodes:
        raise UnreachableError("; ".join(found.warnings) or "no node says who is in the cluster")
    return {(key.role, key.node_id): found.nodes[key] for key in sorted(found.nodes)}
