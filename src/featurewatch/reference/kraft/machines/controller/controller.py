"""The metadata controller of one node: active while its voter leads, and replaying always.

Follows ``QuorumController``. Requests are decided one after the other on the state that is ahead of
the committed one, and what they write is proposed as one batch; the next batch is decided when the
log has this one. An answer waits until everything that it depends on is committed. When the
leadership is lost, the state ahead is dropped, and whoever waits is told to look elsewhere.
"""

from collections import deque
from dataclasses import dataclass, field
from random import Random
from typing import Final

from featurewatch.controller.kraft import rules_of
from featurewatch.reference.kraft.machines.controller import nodes
from featurewatch.reference.kraft.machines.controller.committed import Committed
from featurewatch.reference.kraft.machines.controller.description import describe_cluster
from featurewatch.reference.kraft.machines.controller.errors import (
    NOT_CONTROLLER,
    failed,
)
from featurewatch.reference.kraft.machines.controller.gates import gates_of
from featurewatch.reference.kraft.machines.controller.operations import (
    UNNUMBERED,
    Balance,
    Bootstrap,
    FenceStale,
    Operation,
)
from featurewatch.reference.kraft.machines.controller.protocol import (
    Answer,
    Applied,
    BecameLeader,
    ControllerEffect,
    ControllerEvent,
    Halt,
    LostLeadership,
    PeerVersions,
    Propose,
    Proposed,
    Register,
    RequestReceived,
    Resign,
    SnapshotLoaded,
    Tick,
    WriteLog,
)
from featurewatch.reference.kraft.machines.controller.requests import (
    ControllerRegistration,
    ControllerRequest,
    DescribeCluster,
)
from featurewatch.reference.kraft.machines.controller.sessions import Sessions
from featurewatch.reference.kraft.machines.controller.settings import ControllerSettings, Form
from featurewatch.reference.kraft.machines.controller.work import Work
from featurewatch.reference.kraft.machines.metadata.records import record_bytes
from featurewatch.reference.kraft.machines.metadata.state import Feature, MetadataState, ranges_of
from featurewatch.streams.types import FeatureLevel, FeatureName, SupportedRanges

__all__ = ["ControllerSettings", "MetadataController"]

MAX_BATCH_RECORDS: Final = 10_000
"""A batch takes no further request when it has this many records (``MAX_RECORDS_PER_BATCH``)."""


@dataclass(slots=True)
class _Group:
    """Operations whose records are one batch; ``before`` is the state that they were decided on."""

    token: int
    before: MetadataState
    last_offset: int
    operations: list[Operation]
    answers: list[Answer]


@dataclass(slots=True)
class _Leadership:
    """An active controller: ``state`` has everything that it proposed."""

    epoch: int
    state: MetadataState
    sessions: Sessions
    balance_ms: int
    queue: deque[Operation] = field(default_factory=deque)
    proposed: _Group | None = None
    appended: deque[_Group] = field(default_factory=deque)


class MetadataController:
    """The machine; see `protocol`."""

    def __init__(self, settings: ControllerSettings, random: Random) -> None:
        self.settings = settings
        self._random = random
        self._out: list[ControllerEffect] = []
        self._committed = Committed(settings, self._out_append)
        self._elected: BecameLeader | None = None
        self._leadership: _Leadership | None = None
        self._peers: dict[int, SupportedRanges] = {}
        self._tokens = 0
        self._register_ms = 0
        self._now_ms = 0
        self._is_halted = False
        self._registration = ControllerRegistration(
            settings.node_id,
            settings.incarnation_id,
            False,
            settings.listeners,
            tuple(Feature(str(name), *found) for name, found in sorted(settings.local.items())),
        )

    def _out_append(self, effect: ControllerEffect) -> None:
        self._out.append(effect)

    @property
    def committed(self) -> MetadataState:
        """The committed state, as far as it could be read."""
        return self._committed.state

    @property
    def position(self) -> int:
        """The end of what was applied: where the next `Applied` begins."""
        return self._committed.position

    @property
    def is_active(self) -> bool:
        """Whether it decides requests."""
        return self._leadership is not None

    @property
    def finalized(self) -> tuple[dict[FeatureName, FeatureLevel], int]:
        """The committed levels and their epoch, an offset, as ApiVersions has them."""
        return dict(self.committed.levels), self.committed.offset - 1

    def receive(self, event: ControllerEvent, now_ms: int) -> list[ControllerEffect]:
        """Processes one event and returns its effects; none after a `Halt`."""
        self._now_ms = now_ms
        if not self._is_halted:
            self._committed.trim_lowered(now_ms)
            self._on_event(event)
            self._check()
        if not self._is_halted:
            self._activate()
        if not self._is_halted:
            self._register()
            self._decide()
        out, self._out[:] = [*self._out], []
        return out

    def _on_event(self, event: ControllerEvent) -> None:
        match event:
            case BecameLeader():
                self._drop()
                self._elected = event
            case LostLeadership():
                self._drop()
            case Proposed():
                self._on_proposed(event)
            case Applied(_, batches):
                self._committed.apply(batches)
                self._answer_committed()
            case SnapshotLoaded():
                self._committed.load(event)
            case RequestReceived(request_id, request, version):
                self._on_request(Operation(request_id, request, version))
            case PeerVersions(controller_id, features):
                self._peers[controller_id] = ranges_of(features)
            case Tick():
                self._on_tick()

    # -- leadership --------------------------------------------------------------------------------

    def _activate(self) -> None:
        """Becomes active when everything from before the epoch is applied."""
        elected, state = self._elected, self.committed
        is_due = elected is not None and self._leadership is None
        if elected is None or not is_due or self.position <= elected.start_offset:
            return
        if self._lacks_level(state):
            self._committed.unsupported = (
                f"the log has no metadata.version, which Kafka {self.settings.release} needs"
            )
            self._check()
            return
        sessions = Sessions(state.brokers.values(), self.settings.session_timeout_ms, self._now_ms)
        balance_ms = self._now_ms + self.settings.leader_imbalance_check_ms
        self._leadership = _Leadership(elected.epoch, state, sessions, balance_ms)
        self._log(f"is the active controller of epoch {elected.epoch}")
        self._leadership.queue.append(Operation(UNNUMBERED, Bootstrap()))

    def _lacks_level(self, state: MetadataState) -> bool:
        is_released = self.settings.form is Form.RELEASED
        is_needed = is_released and rules_of(self.settings.release).default_level is None
        return is_needed and state.level is None and not state.is_empty

    def _check(self) -> None:
        """Ends where the committed level is not supported; does not lead without all records."""
        committed = self._committed
        if committed.is_whole:
            return
        if self._elected is not None:
            self._drop()
            self._out.append(Resign())
        if committed.unsupported is not None:
            self._is_halted = True
            self._out.append(Halt(committed.unsupported))

    def _drop(self) -> None:
        """Forgets what is not committed, and sends whoever waits to another controller."""
        leadership, self._leadership, self._elected = self._leadership, None, None
        if leadership is None:
            return
        self._log(f"is no longer the active controller of epoch {leadership.epoch}")
        groups = [*leadership.appended, *([leadership.proposed] if leadership.proposed else [])]
        waiting = [one for group in groups for one in group.operations]
        for one in (*waiting, *leadership.queue):
            if one.request_id != UNNUMBERED:
                self._out.append(Answer(one.request_id, failed(one.request, NOT_CONTROLLER)))

    # -- requests ----------------------------------------------------------------------------------

    def _on_request(self, operation: Operation) -> None:
        request: ControllerRequest = operation.request
        if isinstance(request, DescribeCluster):
            active = self.settings.node_id if self.is_active else -1
            answer = describe_cluster(self.committed, self.settings.cluster_id, request, active)
            self._out.append(Answer(operation.request_id, answer))
        elif self._leadership is None:
            self._out.append(Answer(operation.request_id, failed(request, NOT_CONTROLLER)))
        else:
            self._leadership.queue.append(operation)

    def _decide(self) -> None:
        """Decides the waiting operations, until there is a batch for which it must wait."""
        leadership = self._leadership
        while leadership is not None and leadership.queue and leadership.proposed is None:
            before, taken, answers = leadership.state, list[Operation](), list[Answer]()
            work = Work(
                self.settings,
                before,
                leadership.sessions,
                self._random,
                self._now_ms,
                self._committed.kraft_version,
                self._peers,
            )
            while leadership.queue and len(work.records) < MAX_BATCH_RECORDS:
                is_alone = leadership.queue[0].is_alone
                if is_alone and work.records:
                    break
                one = leadership.queue.popleft()
                response = one.run(work)
                taken.append(one)
                if one.request_id != UNNUMBERED and response is not None:
                    answers.append(Answer(one.request_id, response))
                if is_alone and work.records:
                    break
            for line in work.lines:
                self._log(line)
            self._propose(leadership, work, _Group(-1, before, -1, taken, answers))

    def _propose(self, leadership: _Leadership, work: Work, group: _Group) -> None:
        if work.records:
            self._tokens += 1
            group.token, group.last_offset = self._tokens, work.state.offset - 1
            leadership.state, leadership.proposed = work.state, group
            values = tuple(record_bytes(one) for one in work.records)
            offset = group.before.offset
            self._out.append(Propose(group.token, values, leadership.epoch, offset))
        elif leadership.appended:  # the answers may follow from what is not yet committed
            leadership.appended[-1].operations += group.operations
            leadership.appended[-1].answers += group.answers
        else:
            self._out += group.answers

    def _on_proposed(self, event: Proposed) -> None:
        leadership = self._leadership
        group = leadership.proposed if leadership else None
        if leadership is None or group is None or group.token != event.token:
            return  # of a leadership that was lost
        leadership.proposed = None
        if event.last_offset >= 0:
            leadership.appended.append(group)
            self._answer_committed()
        elif event.end > group.before.offset:  # the voter wrote records of its own before
            leadership.state = group.before._replace(offset=event.end)
            leadership.queue.extendleft(reversed(group.operations))
        else:
            leadership.proposed = group
            self._drop()

    def _answer_committed(self) -> None:
        leadership = self._leadership
        while leadership is not None and leadership.appended:
            if leadership.appended[0].last_offset >= self.committed.offset:
                return
            self._out += leadership.appended.popleft().answers

    # -- time --------------------------------------------------------------------------------------

    def _on_tick(self) -> None:
        leadership, now_ms = self._leadership, self._now_ms
        if leadership is None or leadership.proposed is not None:
            return
        brokers = leadership.state.brokers.values()
        if any(not one.fenced and not leadership.sessions.is_valid(one, now_ms) for one in brokers):
            leadership.queue.append(Operation(UNNUMBERED, FenceStale()))
        if now_ms >= leadership.balance_ms:
            leadership.balance_ms = now_ms + self.settings.leader_imbalance_check_ms
            leadership.queue.append(Operation(UNNUMBERED, Balance()))

    def _register(self) -> None:
        """Registers this controller, where the log does not have it as it is (KIP-919)."""
        state, mine = self.committed, self._registration
        release, level = self.settings.release, state.level or 0
        is_due = gates_of(release, level).controllers and self._now_ms >= self._register_ms
        wanted = nodes.controller_of(mine)
        if not is_due or state.controllers.get(mine.controller_id) == wanted:
            return
        self._register_ms = self._now_ms + self.settings.register_retry_ms
        if self._leadership is not None:
            self._leadership.queue.append(Operation(UNNUMBERED, mine))
        elif self._committed.is_whole:
            self._out.append(Register(mine))

    def _log(self, line: str) -> None:
        self._out.append(WriteLog(f"controller {self.settings.node_id} {line}"))
