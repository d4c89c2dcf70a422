"""The active controller of a cluster, and the release that it runs."""

from typing import NamedTuple

from featurewatch.controller.kraft.release_rules import rules_of
from featurewatch.controller.kraft.releases import Release
from featurewatch.controller.kraft.state import ControllerState
from featurewatch.controller.kraft.state_from_image import active_controller_id, controller_state
from featurewatch.controller.software import (
    LEARN,
    is_unknown_release,
    release_of_capabilities,
    software_name,
)
from featurewatch.streams.types import METADATA_VERSION, NodeId, NodeKey, Role
from featurewatch.tables.image.cluster import ClusterImage


class ActiveController(NamedTuple):
    """The active controller (-1: not known) and its release.

    ``assumed``: what it runs is not known, and the oldest release in the cluster is assumed (below
    metadata.version 15 controllers do not register). ``exact``: the model of its release was
    compared with Kafka's own classes. ``release`` is None if nothing may be assumed: no known
    release has its ranges, or those of some node that may be it. ``software`` is what is known
    then.
    """

    node_id: NodeId
    release: Release | None
    assumed: bool
    exact: bool
    software: str = "unknown"

    @property
    def doubt(self) -> str:
        """Why its decisions are not known, as a sentence; empty where its release is known."""
        if self.release is not None:
            return ""
        name = "The active controller" if self.node_id < 0 else f"Controller {self.node_id}"
        if self.software == "unknown":
            return f"{name} decides, but its release is not known, so neither are its decisions."
        return (
            f"{name} decides, and runs a release whose rules are not known here "
            f"({self.software}): {LEARN}."
        )


def active_controller(image: ClusterImage) -> ActiveController:
    """The active controller, with the release of its registration or ApiVersions response.

    A combined node may also be known by its broker's registration. Otherwise the release is
    assumed, unless some node runs an unknown one.
    """
    leader = active_controller_id(image)
    for nodes, role in (
        (image.nodes, Role.CONTROLLER),
        (image.answers.nodes, Role.CONTROLLER),
        (image.nodes, Role.BROKER),
    ):
        node = nodes.get(NodeKey(role, leader))
        if node is None:
            continue
        release = release_of_capabilities(node.capabilities)
        if release is not None:
            return _runs(leader, release, assumed=False)
        if is_unknown_release(node.capabilities):
            return _unknown(leader, software_name(node.capabilities))
    candidates = [key.capabilities for key in image.nodes.classes]
    unknown = sorted({software_name(item) for item in candidates if is_unknown_release(item)})
    if unknown:
        return _unknown(leader, ", ".join(unknown))
    known = [release for item in candidates if (release := release_of_capabilities(item))]
    oldest = min(known, key=lambda release: release.newest(METADATA_VERSION), default=None)
    return _unknown(leader) if oldest is None else _runs(leader, oldest, assumed=True)


def _runs(leader: NodeId, release: Release, *, assumed: bool) -> ActiveController:
    return ActiveController(leader, release, assumed, rules_of(release.name).compared)


def _unknown(leader: NodeId, software: str = "unknown") -> ActiveController:
    return ActiveController(leader, None, assumed=False, exact=False, software=software)


def active_state(image: ClusterImage, active: ActiveController) -> ControllerState:
    """The state of the active controller, with its release's ranges if it has not registered.

    ``active`` is the result of `active_controller` for the same image.
    """
    registered = NodeKey(Role.CONTROLLER, active.node_id) in image.nodes.nodes
    local = None if registered or active.release is None else active.release.ranges()
    return controller_state(image, local)
