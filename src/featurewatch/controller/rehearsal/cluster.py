"""The cluster of a rehearsal between two steps: a controller's state, and the stopped nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from featurewatch.controller.kraft import ControllerState, RegisteredBroker, RegisteredController
from featurewatch.controller.kraft.voters import voters_not_reporting
from featurewatch.controller.rehearsal.partitions.state import RehearsedPartitions
from featurewatch.controller.software import release_name_of_ranges, software_name
from featurewatch.streams.types import FeatureLevel, NodeId, NodeKey, Role, SupportedRanges
from featurewatch.tables.image.nodes import intern_capabilities


@dataclass(frozen=True, slots=True)
class RehearsedCluster:
    """The state of the cluster before a step.

    ``release`` is that of the active controller (empty: no known one has its ranges), ``voters``
    are the ids of the quorum, ``stopped`` the nodes that do not run. ``has_leader``: a majority of
    the voters runs. ``epoch`` is the broker epoch of the next registration. ``software`` has the
    ranges of controllers that were started in the rehearsal, whether they could register or not.
    ``partitions`` are None where no step is about them. ``as_written``: the controller decides on
    levels as KIP-778 describes.
    """

    release: str
    state: ControllerState
    voters: tuple[NodeId, ...]
    stopped: frozenset[NodeKey] = frozenset()
    has_leader: bool = True
    epoch: int = 0
    software: Mapping[NodeId, SupportedRanges] = field(default_factory=dict)
    partitions: RehearsedPartitions | None = None
    as_written: bool = False

    @classmethod
    def of(
        cls,
        release: str,
        state: ControllerState,
        voters: Sequence[NodeId] = (),
        partitions: RehearsedPartitions | None = None,
    ) -> Self:
        """A cluster in which fenced brokers are stopped and all controllers run.

        ``voters`` defaults to those of the state.
        """
        voter_ids = tuple(voters) or state.quorum or (state.id,)
        fenced = frozenset(
            NodeKey(Role.BROKER, broker.id) for broker in state.brokers if broker.fenced
        )
        newest = max((broker.epoch for broker in state.brokers), default=0)
        return cls(release, state, voter_ids, fenced, epoch=newest + 1, partitions=partitions)

    @property
    def active(self) -> NodeKey:
        """The active controller."""
        return NodeKey(Role.CONTROLLER, self.state.id)

    @property
    def controller_label(self) -> str:
        """The active controller, as outcomes name it."""
        return f"controller {self.state.id} ({self.active_software})"

    @property
    def active_software(self) -> str:
        """The software of the active controller."""
        if self.release:
            return f"Kafka {self.release}"
        return software_name(intern_capabilities(self.state.local))

    def broker(self, node_id: NodeId) -> RegisteredBroker | None:
        """A broker's registration, None if it has none."""
        return next((broker for broker in self.state.brokers if broker.id == node_id), None)

    def controller(self, node_id: NodeId) -> RegisteredController | None:
        """A controller's registration, None if it has none."""
        return next(
            (controller for controller in self.state.controllers if controller.id == node_id), None
        )

    def knows(self, key: NodeKey) -> bool:
        """Whether the node exists: it is registered, a voter or was started."""
        if key.role is Role.BROKER:
            return self.broker(key.node_id) is not None
        started = key.node_id in self.voters or key.node_id in self.software
        return started or self.controller(key.node_id) is not None

    def ranges(self, key: NodeKey) -> SupportedRanges | None:
        """The ranges that a node supports, None if they are not known."""
        if key.role is Role.BROKER:
            broker = self.broker(key.node_id)
            return broker.ranges if broker else None
        if key == self.active:
            return self.state.local
        controller = self.controller(key.node_id)
        return controller.ranges if controller else self.software.get(key.node_id)

    def with_broker(self, broker: RegisteredBroker) -> Self:
        """The cluster with a broker added, or replaced in the same position."""
        before = self.state.brokers
        ids = [existing.id for existing in before]
        brokers = (
            (*before, broker)
            if broker.id not in ids
            else tuple(broker if existing.id == broker.id else existing for existing in before)
        )
        return replace(self, state=replace(self.state, brokers=brokers))

    def without_broker(self, node_id: NodeId) -> Self:
        """The cluster without a broker's registration."""
        brokers = tuple(broker for broker in self.state.brokers if broker.id != node_id)
        return replace(self, state=replace(self.state, brokers=brokers))

    def with_controller(self, node_id: NodeId, ranges: SupportedRanges) -> Self:
        """The cluster with a controller added, or replaced in the same position."""
        before, controller = self.state.controllers, RegisteredController(node_id, ranges)
        controllers = (
            (*before, controller)
            if self.controller(node_id) is None
            else tuple(controller if existing.id == node_id else existing for existing in before)
        )
        after = replace(self, state=replace(self.state, controllers=controllers))
        # The leader keeps what a stopped voter has reported.
        is_reported = not after._voters_not_reporting() and (
            self.state.voters_support_kraft or not after._has_stopped_voters()
        )
        return replace(after, state=replace(after.state, voters_support_kraft=is_reported))

    def without_controller(self, node_id: NodeId) -> Self:
        """The cluster without a controller's registration."""
        controllers = tuple(
            controller for controller in self.state.controllers if controller.id != node_id
        )
        return replace(self, state=replace(self.state, controllers=controllers))

    def with_stopped(self, key: NodeKey) -> Self:
        """The cluster after a node stopped; another voter replaces the active controller."""
        after = replace(self, stopped=self.stopped | {key})
        return (
            after._with_elected_leader()
            if key == self.active or not after._has_majority()
            else after
        )

    def with_started(self, key: NodeKey, ranges: SupportedRanges) -> Self:
        """The cluster after a node started with these ranges; the quorum may have a leader now."""
        after = replace(self, stopped=self.stopped - {key})
        if key.role is Role.CONTROLLER:
            after = replace(after, software={**self.software, key.node_id: ranges})
        return after if after.has_leader else after._with_elected_leader()

    def _living_voters(self) -> list[NodeId]:
        return [
            voter for voter in self.voters if NodeKey(Role.CONTROLLER, voter) not in self.stopped
        ]

    def _has_stopped_voters(self) -> bool:
        return len(self._living_voters()) < len(self.voters)

    def _voters_not_reporting(self) -> tuple[NodeId, ...]:
        """The voters that do not report support for the next kraft.version to a leader."""
        registered = {controller.id: controller.ranges for controller in self.state.controllers}
        return voters_not_reporting(
            self.voters, registered, FeatureLevel(self.state.kraft_version + 1)
        )

    def _has_majority(self) -> bool:
        return 2 * len(self._living_voters()) > len(self.voters)

    def _with_elected_leader(self) -> Self:
        """The cluster with the living voter of the lowest id active; any of them could be."""
        if not self._has_majority():
            return replace(self, has_leader=False)
        leader = min(self._living_voters())
        registered = self.controller(leader)
        local = self.software.get(leader) or (registered.ranges if registered else None)
        release = release_name_of_ranges(local) or "" if local is not None else self.release
        if local is None:
            local = self.state.local  # unknown: assume the previous leader's
        # Voters report to each new leader; stopped ones cannot.
        is_reported = not self._voters_not_reporting() and not self._has_stopped_voters()
        return replace(
            self,
            release=release,
            state=replace(self.state, id=leader, local=local, voters_support_kraft=is_reported),
            has_leader=True,
        )
