"""A controller's state, as far as the metadata log shows it."""

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
    """The active controller, by the word of the log; where that has none, as after a snapshot or
    where nobody reads it, by that of the nodes (-1: nobody told)."""
    told = image.sources.get(Authority.ANSWERS)
    if image.quorum.leader_id >= 0 or told is None:
        return NodeId(image.quorum.leader_id)
    return NodeId(told.leader_id)


def controller_state(image: ClusterImage, local: SupportedRanges | None = None) -> ControllerState:
    """What the active controller of a followed cluster knows; only it knows more.

    ``local`` are the ranges of its software, to be given where it has not registered (below
    metadata.version 15) or where another release is to be asked; otherwise they are those of its
    registration, and none where there is none.

    Not in the log, and so assumed: that voters whose release tells the leader what they support
    (`controller.kraft.voters`) have told the present one, that unfenced brokers were heard of a
    moment ago, that voters are those of ``controller.quorum.voters`` while kraft.version is 0 and
    nothing is set there otherwise, and where min.insync.replicas is set.
    """
    active = active_controller_id(image)
    brokers, controllers = _nodes(image, Role.BROKER), _nodes(image, Role.CONTROLLER)
    own = image.nodes.get(NodeKey(Role.CONTROLLER, active))
    if local is None:
        local = own.capabilities.ranges if own else SupportedRanges()
    levels = dict(image.features.levels)
    kraft = levels.pop(KRAFT_VERSION, KRAFT_VERSION_0)
    supported = {node.key.node_id: node.capabilities.ranges for node in controllers}
    untold = voters_not_reporting(image.quorum.voters, supported, FeatureLevel(kraft + 1))
    return ControllerState(
        id=active,
        local=local,
        levels=levels,
        brokers=tuple(_broker(node) for node in brokers),
        controllers=tuple(
            RegisteredController(node.key.node_id, node.capabilities.ranges) for node in controllers
        ),
        quorum=image.quorum.voters if kraft == KRAFT_VERSION_0 else (),
        cluster=image.cluster,
        kraft_version=kraft,
        voters_support_kraft=not untold,
        migration=ZkMigrationState(image.migration),
    )


def _nodes(image: ClusterImage, role: Role) -> list[Node]:
    """The nodes of a role in the order of their registration: a broker epoch is its offset."""
    found = [node for node in image.nodes.nodes.values() if node.key.role is role]
    return sorted(found, key=lambda node: (node.epoch, node.key.node_id))


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
