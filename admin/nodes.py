"""Which nodes a cluster has, for questions that go to all of them or to one by its id."""

from admin.errors import UnreachableError
from admin.reach import Bootstrap
from streams.apiversions.discovery import find_nodes
from streams.apiversions.peers import Peers
from streams.apiversions.settings import ApiVersionsSettings, Controller
from streams.net.address import Address
from streams.types import NodeId, Role


async def list_nodes(bootstrap: Bootstrap, timeout_s: float) -> dict[tuple[Role, NodeId], Address]:
    """Where each node listens, ordered by role and id.

    Raises:
        UnreachableError: Nobody says which nodes there are.
    """
    settings = ApiVersionsSettings(
        bootstrap_servers=() if bootstrap.controllers else bootstrap.addresses,
        bootstrap_controllers=tuple(map(Controller, bootstrap.addresses))
        if bootstrap.controllers
        else (),
        security=bootstrap.security,
        timeout_s=timeout_s,
    )
    peers = Peers(settings)
    try:
        found = await find_nodes(settings, peers, ())
    finally:
        await peers.keep_only(())
    if not found.nodes:
        raise UnreachableError("; ".join(found.remarks) or "no node says who is in the cluster")
    return {(key.role, key.node_id): found.nodes[key] for key in sorted(found.nodes)}
