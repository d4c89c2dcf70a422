"""The cluster of a rehearsal between two steps: a controller's state, and who is alive."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from featurewatch.controller.kraft import ControllerState, RegisteredBroker, RegisteredController
from featurewatch.controller.kraft.voters import voters_not_reporting
from featurewatch.controller.software import release_name_of_ranges
from featurewatch.streams.types import FeatureLevel, NodeId, NodeKey, Role, SupportedRanges


@dataclass(frozen=True, slots=True)
class RehearsedCluster:
    """What holds before a step.

    ``release`` is that of the active controller, ``voters`` the ids of those who elect it,
    ``stopped`` the nodes that do not run. ``has_leader`` says that a majority of the voters lives.
    ``epoch`` is the broker epoch that the next registration gets. ``software`` are the ranges of
    controllers that were started and could not register.
    """

    release: str
    state: ControllerState
    voters: tuple[NodeId, ...]
    stopped: frozenset[NodeKey] = frozenset()
    has_leader: bool = True
    epoch: int = 0
    software: Mapping[NodeId, SupportedRanges] = field(default_factory=dict)

    @classmethod
    def of(cls, release: str, state: ControllerState, voters: Sequence[NodeId] = ()) -> Self:
        """A cluster whose fenced brokers do not run, and whose controllers all do.

        ``voters`` are taken from the state if they are not given.
        """
        known = tuple(voters) or state.quorum or (state.id,)
        fenced = frozenset(NodeKey(Role.BROKER, one.id) for one in state.brokers if one.fenced)
        newest = max((one.epoch for one in state.brokers), default=0)
        return cls(release, state, known, fenced, epoch=newest + 1)

    @property
    def active(self) -> NodeKey:
        """The active controller."""
        return NodeKey(Role.CONTROLLER, self.state.id)

    @property
    def controller_label(self) -> str:
        """The active controller, as it is called in answers."""
        return f"controller {self.state.id} (Kafka {self.release})"

    def broker(self, node_id: NodeId) -> RegisteredBroker | None:
        """A broker's registration."""
        return next((one for one in self.state.brokers if one.id == node_id), None)

    def controller(self, node_id: NodeId) -> RegisteredController | None:
        """A controller's registration."""
        return next((one for one in self.state.controllers if one.id == node_id), None)

    def knows(self, key: NodeKey) -> bool:
        """Whether there is such a node: registered, or a voter."""
        if key.role is Role.BROKER:
            return self.broker(key.node_id) is not None
        started = key.node_id in self.voters or key.node_id in self.software
        return started or self.controller(key.node_id) is not None

    def ranges(self, key: NodeKey) -> SupportedRanges | None:
        """What a node supports, as far as it is known."""
        if key.role is Role.BROKER:
            broker = self.broker(key.node_id)
            return broker.ranges if broker else None
        if key == self.active:
            return self.state.local
        controller = self.controller(key.node_id)
        return controller.ranges if controller else self.software.get(key.node_id)

    def with_broker(self, broker: RegisteredBroker) -> Self:
        """With a broker set; one that was there keeps its place."""
        before = self.state.brokers
        at = [one.id for one in before]
        brokers = (
            (*before, broker)
            if broker.id not in at
            else tuple(broker if one.id == broker.id else one for one in before)
        )
        return replace(self, state=replace(self.state, brokers=brokers))

    def without_broker(self, node_id: NodeId) -> Self:
        """Without a broker's registration."""
        brokers = tuple(one for one in self.state.brokers if one.id != node_id)
        return replace(self, state=replace(self.state, brokers=brokers))

    def with_controller(self, node_id: NodeId, ranges: SupportedRanges) -> Self:
        """With a controller's registration set; one that was there keeps its place."""
        before, new = self.state.controllers, RegisteredController(node_id, ranges)
        controllers = (
            (*before, new)
            if self.controller(node_id) is None
            else tuple(new if one.id == node_id else one for one in before)
        )
        after = replace(self, state=replace(self.state, controllers=controllers))
        # A voter that is away stays as the leader knows it.
        told = not after._untold() and (self.state.voters_support_kraft or not after._away())
        return replace(after, state=replace(after.state, voters_support_kraft=told))

    def with_stopped(self, key: NodeKey) -> Self:
        """After a node stopped: without the active controller another voter takes its place."""
        after = replace(self, stopped=self.stopped | {key})
        return after._elected() if key == self.active or not after._majority() else after

    def with_started(self, key: NodeKey, ranges: SupportedRanges) -> Self:
        """After a node was started with these ranges; a quorum without leader may have one now."""
        after = replace(self, stopped=self.stopped - {key})
        if key.role is Role.CONTROLLER:
            after = replace(after, software={**self.software, key.node_id: ranges})
        return after if after.has_leader else after._elected()

    def _living(self) -> list[NodeId]:
        return [one for one in self.voters if NodeKey(Role.CONTROLLER, one) not in self.stopped]

    def _away(self) -> bool:
        return len(self._living()) < len(self.voters)

    def _untold(self) -> tuple[NodeId, ...]:
        """The voters of which no leader hears that they support the next kraft.version."""
        registered = {one.id: one.ranges for one in self.state.controllers}
        return voters_not_reporting(
            self.voters, registered, FeatureLevel(self.state.kraft_version + 1)
        )

    def _majority(self) -> bool:
        return 2 * len(self._living()) > len(self.voters)

    def _elected(self) -> Self:
        """With the living voter of the lowest id active; any of them could be."""
        if not self._majority():
            return replace(self, has_leader=False)
        chosen = min(self._living())
        registered = self.controller(chosen)
        local = self.software.get(chosen) or (registered.ranges if registered else None)
        if local is None:
            local = self.state.local  # nothing is known of it: as the one before
        # Voters tell each new leader what they support, and none that is away does.
        told = not self._untold() and not self._away()
        return replace(
            self,
            release=release_name_of_ranges(local) or self.release,
            state=replace(self.state, id=chosen, local=local, voters_support_kraft=told),
            has_leader=True,
        )
