"""Builds a controller's state from what the metadata log shows."""

from featurewatch.controller.kraft.state import (
    KRAFT_VERSION_0,
    ControllerState,
    RegisteredBroker,
    RegisteredController,
    ZkMigrationState,
)
from featurewatch.controller.kraft.voters import voters_not_reporting
from featurewatch.streams.types import (
    KRAFT_VERSION,
    FeatureLevel,
    NodeId,
    NodeKey,
    Role,
    SupportedRanges,
)
from featurewatch.tables.image.cluster import Authority, ClusterImage
from featurewatch.tables.image.nodes import Node


def active_controller_id(image: ClusterImage) -> NodeId:
    """The id of the active controller; -1 if it is not known.

    The log decides; if it names none (after a snapshot, or if it is not followed), the nodes'
    responses do.
    """
    status = image.sources.statuses.get(Authority.ANSWERS)
    if image.log.quorum.leader_id >= 0 or status is None:
        return NodeId(image.log.quorum.leader_id)
    return NodeId(status.leader_id)


def controller_state(image: ClusterImage, local: SupportedRanges | None = None) -> ControllerState:
    """The state of the active controller, as far as the image of its cluster has it.

    ``local`` are the ranges of its software. Pass them where it has not registered (below
    metadata.version 15), or to model another release; the default is its registration, or no
    ranges.

    The log lacks some state, which is assumed: voters whose release reports its support to the
    leader (`controller.kraft.voters`) have reported to the present one; unfenced brokers have a
    session; ``controller.quorum.voters`` names the voters while kraft.version is 0, and is empty
    otherwise; min.insync.replicas is 1 and has no dynamic settings.
    """
    active = active_controller_id(image)
    brokers, controllers = _nodes(image, Role.BROKER), _nodes(image, Role.CONTROLLER)
    registration = image.nodes.get(NodeKey(Role.CONTROLLER, active))
    if local is None:
        local = registration.capabilities.ranges if registration else SupportedRanges()
    levels = dict(image.features.levels)
    kraft = levels.pop(KRAFT_VERSION, KRAFT_VERSION_0)
    supported = {node.key.node_id: node.capabilities.ranges for node in controllers}
    voters = image.log.quorum.voters
    not_reporting = voters_not_reporting(voters, supported, FeatureLevel(kraft + 1))
    return ControllerState(
        id=active,
        local=local,
        levels=levels,
        brokers=tuple(_broker(node) for node in brokers),
        controllers=tuple(
            RegisteredController(node.key.node_id, node.capabilities.ranges) for node in controllers
        ),
        quorum=voters if kraft == KRAFT_VERSION_0 else (),
        cluster=image.cluster,
        kraft_version=kraft,
        voters_support_kraft=not not_reporting,
        migration=ZkMigrationState(image.log.migration),
    )


def _nodes(image: ClusterImage, role: Role) -> list[Node]:
    """The nodes of a role in the order of registration: a broker epoch is a log offset."""
    nodes = [node for node in image.nodes.nodes.values() if node.key.role is role]
    return sorted(nodes, key=lambda node: (node.epoch, node.key.node_id))


def _broker(node: Node) -> RegisteredBroker:
    return RegisteredBroker(
        node.key.node_id,
        node.capabilities.ranges,
        node.fenced,
        node.shutting_down,
        node.epoch,
        node.incarnation,
        (),
        not node.fenced,
    )
