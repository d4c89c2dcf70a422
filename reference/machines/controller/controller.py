"""The reference controller of KIP-584: elected through ZooKeeper, the only one that finalizes.

It is elected as ``KafkaController`` is: one transaction makes the ephemeral ``/controller`` and
raises ``/controller_epoch``. Every write of the finalized features is a transaction too, which
checks the version of ``/controller_epoch``: who has been deposed cannot write, whether or not it
knows. Nothing is decided between a write and its outcome, so that a broker that joins meanwhile is
judged by what the write left.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from featurewatch.reference.machines import encoding
from featurewatch.reference.machines.controller.election import ControllerElection
from featurewatch.reference.machines.controller.membership import BrokerMembership
from featurewatch.reference.machines.controller.pending import (
    PendingRequest,
    PendingRequests,
    RequestStage,
    outcome_unknown,
)
from featurewatch.reference.machines.dialect import Dialect
from featurewatch.reference.machines.features.items import UpdateContext
from featurewatch.reference.machines.features.store import FinalizedFeatureStore, WriteResult
from featurewatch.reference.machines.features.updates import decide, not_written
from featurewatch.reference.machines.protocol import (
    Disconnected,
    Effect,
    Event,
    OperationCompleted,
    Reconnected,
    RequestReceived,
    SendResponse,
    SendUpdateMetadata,
    SessionLost,
    SessionStarted,
    Tick,
    WatchFired,
    WriteLog,
)
from featurewatch.reference.machines.requests import (
    NOT_CONTROLLER,
    ApiVersions,
    DeleteFeatures,
    ErrorCode,
    FeaturesResponse,
    Request,
    UpdateFeatures,
    UpdateMetadata,
    UpdateResponse,
)
from featurewatch.reference.machines.task_queue import Task, TaskQueue
from featurewatch.streams.types import FeatureName, SupportedRange
from featurewatch.tables.image.nodes import intern_capabilities

IN_PROGRESS: Final = UpdateResponse(
    ErrorCode.FEATURE_UPDATE_IN_PROGRESS, "Another update of features is in progress."
)


class ReferenceController:
    """One candidate for the controller; start it when its broker is registered."""

    def __init__(
        self, broker_id: int, dialect: Dialect, supported: Mapping[str, SupportedRange]
    ) -> None:
        self._dialect = dialect
        self._supported = dict(supported)
        self._local = intern_capabilities(
            {FeatureName(name): span for name, span in supported.items()}
        )
        self._out: list[Effect] = []
        self._now_ms = 0
        self._serial = TaskQueue(self._emit)
        self._answering = PendingRequests(self._emit)
        self._election = ControllerElection(broker_id, dialect, self._emit)
        self._finalized = FinalizedFeatureStore(dialect, supported, self._emit)
        self._members = BrokerMembership(dialect, self._emit)
        self._looking = self._campaigning = False
        self._processing: set[int] = set()
        self.active = False
        """Elected, and through with its start-up; what it decides is written only if still so."""

    @property
    def controller_id(self) -> int | None:
        """Who is the controller, as last seen; None: nobody, or not known."""
        return self._election.controller_id

    @property
    def epoch(self) -> int:
        """The controller epoch that it was elected with last; -1: never."""
        return self._election.epoch

    @property
    def accepted(self) -> dict[int, dict[str, SupportedRange]]:
        """The live set: broker ids and their ranges."""
        groups = self._members.live.accepted.items()
        return {
            broker_id: {str(name): span for name, span in known.ranges.items()}
            for known, group in groups
            for broker_id in group
        }

    @property
    def levels(self) -> Mapping[str, int]:
        """The finalized levels as this controller knows them."""
        return self._finalized.levels

    def receive(self, event: Event, now_ms: int) -> list[Effect]:
        """Take one event."""
        self._out, self._now_ms = [], now_ms
        match event:
            case SessionStarted(session_id):
                self._election.new_session(session_id)
                self._serial.connected()
                self._campaign()
            case SessionLost():
                self._serial.cancel_all()
                self._looking = self._campaigning = False
                self._processing.clear()
                self._resign()
                self._answering.fail_all()
            case Disconnected():
                self._serial.disconnected()
            case Reconnected():
                self._serial.connected()
                self._campaign()
                self._look(everything=True)
            case OperationCompleted(token, outcome):
                self._serial.answered(token, outcome)
            case WatchFired(path):
                self._watch(path)
            case RequestReceived(request_id, request):
                self._request(request_id, request)
            case Tick():
                self._answering.expire(now_ms)
                self._serial.retry()
        return self._out

    def _request(self, request_id: int, request: Request) -> None:
        match request:
            case ApiVersions(version):
                known = self._finalized
                answer = FeaturesResponse(self._supported, dict(known.levels), known.epoch)
                self._emit(SendResponse(request_id, answer if version >= 3 else FeaturesResponse()))
            case UpdateFeatures() | DeleteFeatures() if not self.active:
                self._emit(SendResponse(request_id, NOT_CONTROLLER))
            case UpdateFeatures() if self._processing and not self._dialect.queues:
                self._emit(SendResponse(request_id, IN_PROGRESS))
            case UpdateFeatures() | DeleteFeatures():
                taken = self._answering.add(request_id, request, self._now_ms)
                self._processing.add(request_id)
                self._serial.add(self._process(taken))

    # -- standing ----------------------------------------------------------------------------------

    def _campaign(self) -> None:
        if not self._campaigning:
            self._campaigning = True
            self._serial.add(self._stand())

    def _stand(self) -> Task[None]:
        """Be elected, or learn who is; once elected, start up before anything is served."""
        self._campaigning = False
        while True:
            if self.active and (yield from self._election.is_controller()):
                return
            self._resign()
            if not (yield from self._election.elect(lambda: self._now_ms)):
                return
            fate = yield from self._finalized.initialize(self._election.epoch_version)
            if fate is WriteResult.DEPOSED:
                continue
            if fate is not WriteResult.WRITTEN:
                return
            yield from self._members.read_all(self._finalized.levels)
            self.active = True
            self._push(self._members.joined)
            self._emit(WriteLog(f"elected as the controller, epoch {self.epoch}"))
            return

    def _resign(self) -> None:
        self.active = False
        self._members.forget()
        self._finalized.forget()

    # -- watching ----------------------------------------------------------------------------------

    def _watch(self, path: str) -> None:
        if path == encoding.CONTROLLER:
            self._campaign()
        elif path == self._dialect.path:
            self._finalized.stale = True
            self._look()
        elif self._members.on_watch(path):
            self._look()

    def _look(self, *, everything: bool = False) -> None:
        if everything:
            self._finalized.stale = True
            self._members.all_stale()
        if not self._looking:
            self._looking = True
            self._serial.add(self._catch_up())

    def _catch_up(self) -> Task[None]:
        """Read what watches said has changed."""
        self._looking = False
        if self.active and self._finalized.stale:
            yield from self._finalized.read()
            self._members.reevaluate(self._finalized.levels)
        if self.active:
            yield from self._members.read_changes(self._finalized.levels)
            self._push(self._members.joined)

    # -- updates -----------------------------------------------------------------------------------

    def _process(self, taken: PendingRequest) -> Task[None]:
        """Decide, write if nobody was elected since, read back, answer."""
        while self._answering.is_pending(taken) and not self._refused(taken):
            here = UpdateContext(
                self._dialect, self._finalized.levels, self._members.live.accepted, self._local
            )
            decision = decide(here, taken.request)
            if decision.levels is None:
                self._answering.answer(taken, decision.response)
                break
            taken.stage = RequestStage.WRITING
            fate = yield from self._finalized.write(decision.levels, self._election.epoch_version)
            if fate is WriteResult.WRITTEN:
                taken.stage, taken.success = RequestStage.WRITTEN, decision.response
            elif fate is WriteResult.OVERTAKEN:
                taken.stage = RequestStage.WAITING
            else:
                refusal = not_written(here, decision.response, str(fate.value))
                self._failed(taken, fate, refusal)
                break
            # Kafka answers after its own copy has the new epoch: who asks this node sees it.
            yield from self._finalized.read()
            self._members.reevaluate(self._finalized.levels)
            if fate is WriteResult.WRITTEN:
                told = self._push(self._everybody() if self._dialect.pushes else [])
                self._answering.answer(taken, replace(decision.response, finalized=told))
        self._processing.discard(taken.request_id)

    def _everybody(self) -> list[int]:
        return sorted(set[int]().union(*self._members.live.accepted.values()))

    def _push(self, broker_ids: list[int]) -> UpdateMetadata | None:
        """UPDATE_METADATA, with the levels, to live brokers, in the dialect that has it so."""
        self._members.joined = []
        if not self._dialect.pushes:
            return None
        message = UpdateMetadata(self._finalized.epoch, dict(self._finalized.levels))
        for broker_id in broker_ids:
            self._emit(SendUpdateMetadata(broker_id, message))
        return message

    def _refused(self, taken: PendingRequest) -> bool:
        """Whether it cannot be decided at all, and has been answered so."""
        if self.active and self._finalized.readable:
            return False
        self._answering.answer(taken, self._unreadable() if self.active else NOT_CONTROLLER)
        return True

    def _failed(self, taken: PendingRequest, fate: WriteResult, refusal: UpdateResponse) -> None:
        if fate in (WriteResult.DEPOSED, WriteResult.DEPOSED_UNKNOWN):
            self._resign()
            self._campaign()
        if fate is WriteResult.DEPOSED:
            self._answering.answer(taken, NOT_CONTROLLER)
        elif fate is WriteResult.REFUSED:
            self._answering.answer(taken, refusal)
        else:
            self._answering.answer(
                taken, outcome_unknown("The connection was lost during the write")
            )

    def _unreadable(self) -> UpdateResponse:
        return UpdateResponse(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"The finalized features at {self._dialect.path} cannot be read; repair that znode.",
        )

    def _emit(self, effect: Effect) -> None:
        self._out.append(effect)
