"""The part of a readiness report that is the same for every target. Pure."""

from functools import cached_property

from immutables import Map

from featurewatch.controller.kraft.state import ControllerState
from featurewatch.monitor.readiness.active_controller import (
    ActiveController,
    active_controller,
    active_state,
)
from featurewatch.monitor.readiness.blockers import ReadinessContext, ghosts_of
from featurewatch.monitor.readiness.divergence import NodeDivergence, divergences
from featurewatch.monitor.readiness.state_timers import Limits, StateTimers
from featurewatch.monitor.readiness.upgrade_state import (
    ClusterUpgradeState,
    newest_running,
    upgrade_state_of,
)
from featurewatch.streams.types import NodeKey
from featurewatch.tables.image.cluster import ClusterImage
from featurewatch.tables.image.nodes import Capabilities


class ClusterFacts:
    """What is known of a cluster at ``now_ms`` (since the Unix epoch), derived once when needed.

    A list of releases is assessed for one image: some of these cost as much as the cluster has
    nodes.
    """

    def __init__(
        self, image: ClusterImage, times: StateTimers, limits: Limits, now_ms: int
    ) -> None:
        self.image = image
        self.times = times
        self.limits = limits
        self.now_ms = now_ms

    @cached_property
    def ghosts(self) -> tuple[NodeKey, ...]:
        """The registrations without a living node."""
        context = ReadinessContext(self.image, Map(), self.times, self.limits, self.now_ms)
        return ghosts_of(context)

    @cached_property
    def newest(self) -> Capabilities | None:
        """The newest software that runs."""
        return newest_running(self.image.nodes.classes.items(), self.ghosts)

    @cached_property
    def upgrade_state(self) -> ClusterUpgradeState:
        """The states of the features."""
        return upgrade_state_of(self.image)

    @cached_property
    def active(self) -> ActiveController:
        """The active controller and its release."""
        return active_controller(self.image)

    @cached_property
    def controller_state(self) -> ControllerState:
        """The state of the active controller."""
        return active_state(self.image, self.active)

    @cached_property
    def divergences(self) -> tuple[NodeDivergence, ...]:
        """The nodes that differ from the log."""
        return divergences(self.image, self.now_ms)
