"""Which nodes a cluster has, for questions that go to all of them or to one by its id."""

from admin.errors import UnreachableError
from admin.reach import Bootstrap
from streams.apiversions.discovery import discover_nodes
from streams.apiversions.peers import ConnectionPool
from streams.apiversions.settings import ApiVersionsSettings, ControllerAddress
from streams.net.address import Address
from streams.types import NodeId, Role


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
