"""Voters with metadata controllers over a faulty network, disk and clock, driven by a seed.

Each process of `tests.simulation.kraft.world` has a controller, which loses everything with it.
Brokers and administrators ask any of the controllers, and their requests and answers get lost.
"""

from collections import deque
from collections.abc import Callable
from functools import cached_property, partial

from featurewatch.reference.kraft.machines.controller.controller import (
    ControllerSettings,
    MetadataController,
)
from featurewatch.reference.kraft.machines.controller.protocol import (
    Answer,
    Applied,
    ControllerEffect,
    ControllerEvent,
    PeerVersions,
    Register,
    RequestReceived,
    SnapshotLoaded,
)
from featurewatch.reference.kraft.machines.controller.requests import (
    ControllerRequest,
    ControllerResponse,
)
from featurewatch.reference.kraft.machines.controller.settings import Form
from featurewatch.reference.kraft.machines.metadata.state import (
    EMPTY,
    Feature,
    Listener,
    MetadataState,
)
from featurewatch.reference.kraft.machines.protocol import (
    BecameLeader,
    Committed,
    Effect,
    Halt,
    InstallSnapshot,
    LostLeadership,
    Propose,
    Proposed,
    Resign,
    SnapshotTaken,
    Tick,
)
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, SupportedRanges
from tests.reference.kraft.machines.controller.driven import uuid
from tests.simulation.kraft.controllers.auditor import MetadataAuditor
from tests.simulation.kraft.controllers.clients import SimulatedBroker, administration
from tests.simulation.kraft.process import CLUSTER, Process
from tests.simulation.kraft.world import World

_NEWEST, _OLD = 21, 19
"""Levels of a controller of 3.9 in the form of KIP-778, and of one that is older."""


class ControllerWorld(World):
    """One cluster."""

    def __init__(self, seed: int) -> None:
        self.controllers: dict[int, tuple[Process, MetadataController]] = {}
        self.ended: set[int] = set()
        """Controllers that met a level that they do not support."""
        self.form = Form.KIP_778 if seed % 2 else Form.RELEASED
        self._effects: deque[tuple[Process, ControllerEffect]] = deque()
        self._performs = False
        self._asked: dict[int, tuple[ControllerRequest, int, Callable[[ControllerResponse], None]]]
        self._asked = {}
        super().__init__(seed)
        self.brokers = [SimulatedBroker(one, one) for one in (1, 2, 3)]
        for broker in self.brokers:
            self._after(self.random.uniform(0, 500), partial(self._work, broker))

    @cached_property
    def metadata(self) -> MetadataAuditor:
        """Checks what controllers say."""
        return MetadataAuditor(self.auditor)

    def start(self, node_id: int) -> None:
        """Starts a process with its controller, unless its software is too old for the log."""
        if node_id in self.ended:
            return
        super().start(node_id)

    def _settings(self, process: Process) -> ControllerSettings:
        is_kip, node_id = self.form is Form.KIP_778, process.node_id
        is_old = is_kip and not self.changes_voters and len(self.ids) >= 3 and node_id == 3
        newest = _OLD if is_old else _NEWEST
        return ControllerSettings(
            node_id,
            CLUSTER,
            uuid(10_000 + process.incarnation),
            (Listener("CONTROLLER", "simulated", node_id),),
            tuple(self.first.ids),
            release="3.9" if is_kip else "4.3",
            form=self.form,
            ranges=SupportedRanges({METADATA_VERSION: (1, newest)} if is_kip else {}),
            bootstrap={METADATA_VERSION: FeatureLevel(7 if is_kip else 29)},
            session_timeout_ms=int(9_000 * self.pace),
            leader_imbalance_check_ms=int(5_000 * self.pace),
            register_retry_ms=int(1_000 * self.pace),
            snapshot_bytes=4_000,
            retained_bytes=12_000,
        )

    def _controller(self, process: Process) -> MetadataController:
        owner, controller = self.controllers.get(process.node_id, (None, None))
        if owner is not process or controller is None:
            controller = MetadataController(self._settings(process), self.random)
            self.controllers[process.node_id] = (process, controller)
        return controller

    # -- one process -------------------------------------------------------------------------------

    def _tick(self, process: Process) -> None:
        super()._tick(process)
        if self._is_alive(process):
            self._apply(process)
            self._control(process, Tick())
            if self.random.random() < 0.05:
                self._learn(process)

    def _learn(self, process: Process) -> None:
        """A controller asks another one what it supports."""
        peer = self.processes.get(self.random.choice(self.ids))
        if peer is not None and not self._is_lost(process.node_id, peer.node_id):
            ranges = self._settings(peer).local
            features = tuple(Feature(name, *found) for name, found in ranges.items())
            self._control(process, PeerVersions(peer.node_id, features))

    def _perform(self, process: Process, effect: Effect) -> None:
        super()._perform(process, effect)
        if not self._is_alive(process):
            return
        match effect:
            case BecameLeader() | LostLeadership() | Proposed():
                self._control(process, effect)
            case Committed() | InstallSnapshot():
                self._apply(process)
            case _:
                pass

    def _apply(self, process: Process) -> None:
        """Gives a controller what is committed and not yet applied."""
        log, controller = process.voter.log, self._controller(process)
        if controller.position < log.start.offset:
            self._control(process, SnapshotLoaded(log.start, log.snapshots[log.start]))
        position, end = controller.position, log.high_watermark
        new = [batch for batch in log.batches if position <= batch.base and batch.last < end]
        if new:
            self._control(process, Applied(end, tuple(new)))

    def _control(self, process: Process, event: ControllerEvent) -> None:
        """Gives a controller an event; effects are performed in order, those of one event first."""
        if not self._is_alive(process):
            return
        controller = self._controller(process)
        effects = controller.receive(event, process.local_ms(self.now_ms))
        self.metadata.on_state(process.node_id, controller)
        self.metadata.on_idle(controller)
        self._effects.extend((process, effect) for effect in effects)
        if self._performs:
            return
        self._performs = True
        while self._effects:
            owner, effect = self._effects.popleft()
            if self._is_alive(owner):
                self._perform_control(owner, effect)
        self._performs = False

    def _perform_control(self, process: Process, effect: ControllerEffect) -> None:
        match effect:
            case Propose() | SnapshotTaken() | Resign():
                self._give(process, effect)
            case Answer(request_id, response):
                request, asked_at, on_answer = self._asked.pop(request_id)
                self.metadata.on_answer(request, response, asked_at)
                if not (self.is_faulty and self.random.random() < 0.02):
                    self._after(self._delay_ms(), lambda: on_answer(response))
            case Register(request):
                self._ask(request, lambda _: None)
            case Halt():
                self._end(process)
            case _:
                pass

    def _end(self, process: Process) -> None:
        """A controller ends for good, which only one that is too old may do."""
        newest = self._settings(process).local.of(METADATA_VERSION).maximum
        level = max((level for _, _, level in self.metadata.levels), default=0)
        assert level > newest, f"controller {process.node_id} ends without a reason"
        self.ended.add(process.node_id)
        self.crash(process.node_id)

    # -- clients -----------------------------------------------------------------------------------

    def _ask(
        self, request: ControllerRequest, on_answer: Callable[[ControllerResponse], None]
    ) -> None:
        """Sends a request to a controller; more often to one that leads."""
        leading = [one for one, (_, found) in self.controllers.items() if found.is_active]
        targets = leading if leading and self.random.random() < 0.8 else [*self.ids]
        target = self.random.choice(sorted(targets))
        request_id, asked_at = next(self._tokens), self.metadata.end

        def arrive() -> None:
            process = self.processes.get(target)
            if process is not None:
                self._asked[request_id] = (request, asked_at, on_answer)
                self._control(process, RequestReceived(request_id, request, 1))

        if not (self.is_faulty and self.random.random() < 0.02):
            self._after(self._delay_ms(), arrive)

    def _work(self, broker: SimulatedBroker) -> None:
        """A broker asks what it needs; sometimes it ends and begins again."""
        chance = self.random.random()
        if self.is_faulty and chance < 0.02:
            broker.restart()
        broker.stops = broker.stops or (self.is_faulty and 0.02 < chance < 0.04)
        state = self._some_state()
        for request in broker.requests(self.random, self.metadata.end, state):
            self._ask(request, broker.on_answer)
        wait_ms = self.random.uniform(100, 1_500)
        if self.is_faulty and self.random.random() < 0.01:
            wait_ms = 15_000  # its session ends
        self._after(wait_ms * self.pace, partial(self._work, broker))

    def _some_state(self) -> MetadataState:
        """The newest state that a controller has applied."""
        states = [found.committed for _, found in self.controllers.values()]
        return max(states, key=lambda one: one.offset, default=EMPTY)

    def _propose(self) -> None:
        """An administrator asks something, in place of the records of the world below."""
        is_kip = self.form is Form.KIP_778
        levels = (1, _NEWEST + 1) if is_kip else (28, 31)
        self._ask(administration(self.random, levels, is_kip=is_kip), lambda _: None)
        for process in [*self.processes.values()]:
            if self.changes_voters and self.random.random() < 0.1:
                self._change_voters(process)
        self._after(self.random.uniform(1, 1_000) * self.pace, self._propose)

    def crash(self, node_id: int) -> None:
        """Ends a process, and its controller with it."""
        super().crash(node_id)
        self.controllers.pop(node_id, None)
