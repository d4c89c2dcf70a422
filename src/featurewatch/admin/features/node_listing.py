"""Lists the nodes of a cluster, for requests to all of them or to one by its id."""

from featurewatch.admin.connections import Bootstrap
from featurewatch.admin.errors import UnreachableError
from featurewatch.kafka.address import Address
from featurewatch.streams.apiversions.connections import ConnectionPool
from featurewatch.streams.apiversions.discovery import discover_nodes
from featurewatch.streams.apiversions.settings import ApiVersionsSettings, ControllerAddress
from featurewatch.streams.types import NodeId, Role


async def list_nodes(bootstrap: Bootstrap, timeout_s: float) -> dict[tuple[Role, NodeId], Address]:
    """The address of each node, ordered by role and id.

    Raises:
        UnreachableError: No node lists the nodes.
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
        discovered = await discover_nodes(settings, peers, ())
    finally:
        await peers.retain(())
    if not discovered.nodes:
        raise UnreachableError(
            "; ".join(discovered.warnings) or "no node says who is in the cluster"
        )
    return {(key.role, key.node_id): discovered.nodes[key] for key in sorted(discovered.nodes)}
