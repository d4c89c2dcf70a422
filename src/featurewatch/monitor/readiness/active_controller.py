"""The active controller of a cluster, and the release that it runs."""

from typing import NamedTuple

from featurewatch.controller.kraft.release_rules import compared
from featurewatch.controller.kraft.releases import Release, release_of
from featurewatch.controller.kraft.state import ControllerState
from featurewatch.controller.kraft.state_from_image import active_controller_id, controller_state
from featurewatch.controller.software import release_of_capabilities
from featurewatch.streams.types import METADATA_VERSION, NodeId, NodeKey, Role
from featurewatch.tables.image.cluster import ClusterImage


class ActiveController(NamedTuple):
    """The active controller (-1: not known) and its release.

    ``assumed``: its release is unknown, and the oldest release in the cluster is assumed (below
    metadata.version 15 controllers do not register). ``exact``: the model of its release was
    compared with Kafka's own classes.
    """

    node_id: NodeId
    release: Release
    assumed: bool
    exact: bool


def active_controller(image: ClusterImage) -> ActiveController:
    """The active controller, with the release of its registration or ApiVersions response.

    A combined node may also be known by its broker's registration. Otherwise the release is
    assumed.
    """
    leader = active_controller_id(image)
    for nodes, role in (
        (image.nodes, Role.CONTROLLER),
        (image.answers.nodes, Role.CONTROLLER),
        (image.nodes, Role.BROKER),
    ):
        node = nodes.get(NodeKey(role, leader))
        release = node and release_of_capabilities(node.capabilities)
        if release is not None:
            return ActiveController(
                leader, release, assumed=False, exact=release.name in compared()
            )
    candidates = [release_of_capabilities(key.capabilities) for key in image.nodes.classes]
    known_releases = [release for release in candidates if release is not None]
    oldest = min(known_releases, key=lambda release: release.newest(METADATA_VERSION), default=None)
    release = oldest or release_of(compared()[-1])
    return ActiveController(leader, release, assumed=True, exact=release.name in compared())


def active_state(image: ClusterImage, active: ActiveController) -> ControllerState:
    """The state of the active controller, with its release's ranges if it has not registered.

    ``active`` is the result of `active_controller` for the same image.
    """
    registered = NodeKey(Role.CONTROLLER, active.node_id) in image.nodes.nodes
    return controller_state(image, None if registered else active.release.ranges())
