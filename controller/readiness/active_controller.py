"""Which controller would be asked, and as which release it would answer."""

from typing import NamedTuple

from featurewatch.controller.kraft.release_rules import COMPARED
from featurewatch.controller.kraft.releases import Release, release_of
from featurewatch.controller.kraft.state import ControllerState
from featurewatch.controller.kraft.state_from_image import active_controller_id, controller_state
from featurewatch.controller.software import release_of_capabilities
from featurewatch.streams.types import METADATA_VERSION, NodeId, NodeKey, Role
from featurewatch.tables.image.cluster import ClusterImage


class ActiveController(NamedTuple):
    """The active controller (-1: not known) and its release.

    ``assumed`` says that nothing told which release it runs, and the oldest of the cluster is
    taken: below metadata.version 15 controllers do not register. ``exact``: its answers are
    compared with Kafka's own classes.
    """

    node_id: NodeId
    release: Release
    assumed: bool
    exact: bool


def active_controller(image: ClusterImage) -> ActiveController:
    """The active controller, as its registration, its answer or its broker's registration tells.

    Where it is no broker as well, has not registered and was not asked, nobody knows.
    """
    leader = active_controller_id(image)
    for nodes, role in (
        (image.nodes, Role.CONTROLLER),
        (image.answers, Role.CONTROLLER),
        (image.nodes, Role.BROKER),
    ):
        node = nodes.get(NodeKey(role, leader))
        release = node and release_of_capabilities(node.capabilities)
        if release is not None:
            return ActiveController(leader, release, assumed=False, exact=release.name in COMPARED)
    found = [release_of_capabilities(key.capabilities) for key in image.nodes.classes]
    known = [release for release in found if release is not None]
    oldest = min(known, key=lambda one: one.newest(METADATA_VERSION), default=None)
    release = oldest or release_of(COMPARED[-1])
    return ActiveController(leader, release, assumed=True, exact=release.name in COMPARED)


def active_state(image: ClusterImage, active: ActiveController) -> ControllerState:
    """What the active controller knows, with its release's ranges where it has not registered.

    ``active`` is what `active_controller` says of the image.
    """
    registered = NodeKey(Role.CONTROLLER, active.node_id) in image.nodes.nodes
    return controller_state(image, None if registered else active.release.ranges())
