"""The reference controller of KIP-584: elected through ZooKeeper, it alone finalizes levels.

The election follows ``KafkaController``: one transaction creates the ephemeral ``/controller`` and
increments ``/controller_epoch``. Every write of the finalized features is a transaction that checks
the version of ``/controller_epoch``, so a deposed controller cannot write, even if it does not know
yet. The controller decides nothing between a write and its outcome, so a broker that joins
meanwhile is checked against the written levels.

The module is above 300 lines, because features and topics have one election and one queue, and the
order of their events is defined only here.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from featurewatch.reference.zookeeper.machines import encoding
from featurewatch.reference.zookeeper.machines.controller.deliveries import LevelDeliveries
from featurewatch.reference.zookeeper.machines.controller.election import ControllerElection
from featurewatch.reference.zookeeper.machines.controller.membership import BrokerMembership
from featurewatch.reference.zookeeper.machines.controller.pending import (
    UNCONFIRMED,
    PendingRequest,
    PendingRequests,
    RequestStage,
    outcome_unknown,
)
from featurewatch.reference.zookeeper.machines.controller.topic_requests import (
    OperationsSettings,
    TopicOperations,
)
from featurewatch.reference.zookeeper.machines.dialect import Dialect
from featurewatch.reference.zookeeper.machines.features.items import UpdateContext
from featurewatch.reference.zookeeper.machines.features.store import (
    FinalizedFeatureStore,
    WriteResult,
)
from featurewatch.reference.zookeeper.machines.features.updates import decide, not_written
from featurewatch.reference.zookeeper.machines.protocol import (
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
    UpdateMetadataDelivered,
    WatchFired,
    WatchKind,
    WriteLog,
)
from featurewatch.reference.zookeeper.machines.requests import (
    NOT_CONTROLLER,
    ApiVersions,
    DeleteFeatures,
    ErrorCode,
    FeaturesResponse,
    Request,
    TopicMessage,
    UpdateFeatures,
    UpdateMetadata,
    UpdateResponse,
)
from featurewatch.reference.zookeeper.machines.task_queue import Task, TaskQueue
from featurewatch.reference.zookeeper.machines.topics.broker_requests import BrokerResponded
from featurewatch.reference.zookeeper.machines.topics.context import (
    ClusterBroker,
    ControllerContext,
)
from featurewatch.reference.zookeeper.machines.topics.requests import (
    NOT_CONTROLLER as TOPICS_NOT_CONTROLLED,
)
from featurewatch.streams.types import FeatureName, SupportedRange
from featurewatch.tables.image.nodes import intern_capabilities

IN_PROGRESS: Final = UpdateResponse(
    ErrorCode.FEATURE_UPDATE_IN_PROGRESS, "Another update of features is in progress."
)


class ReferenceController:
    """A machine that is one candidate for the controller; start it when its broker is registered.

    ``supported`` are the controller's own ranges, both ends inclusive. With ``operations`` it also
    controls topics, partitions and replicas.
    """

    def __init__(
        self,
        broker_id: int,
        dialect: Dialect,
        supported: Mapping[str, SupportedRange],
        operations: OperationsSettings | None = None,
    ) -> None:
        self._dialect = dialect
        self._supported = dict(supported)
        self._local = intern_capabilities(
            {FeatureName(name): span for name, span in supported.items()}
        )
        self._out: list[Effect] = []
        self._now_ms = 0
        self._tasks = TaskQueue(self._emit)
        self._pending = PendingRequests(self._emit)
        self._deliveries = LevelDeliveries(self._pending, self._emit)
        self._election = ControllerElection(broker_id, dialect, self._emit)
        self._store = FinalizedFeatureStore(dialect, supported, self._emit)
        self._membership = BrokerMembership(dialect, self._emit)
        self._topics: TopicOperations | None = None
        if operations is not None:
            self._topics = TopicOperations(
                broker_id, operations, self._tasks, self._emit, self._read_brokers, self._on_deposed
            )
        self._is_catch_up_queued = self._is_election_queued = False
        self._processing: set[int] = set()
        self.active = False
        """Whether it is elected and has completed its start-up; each write checks that again."""

    @property
    def controller_id(self) -> int | None:
        """The id of the controller as last read; None: no controller, or not known."""
        return self._election.controller_id

    @property
    def epoch(self) -> int:
        """The controller epoch of its last election; -1: it was never elected."""
        return self._election.epoch

    @property
    def partitions(self) -> ControllerContext | None:
        """All topics and partitions; None: it does not control them, or has not read them yet."""
        return None if self._topics is None else self._topics.context

    @property
    def accepted(self) -> dict[int, dict[str, SupportedRange]]:
        """The live set: broker ids and their supported ranges."""
        groups = self._membership.live.accepted.items()
        return {
            broker_id: {str(name): span for name, span in capabilities.ranges.items()}
            for capabilities, group in groups
            for broker_id in group
        }

    @property
    def levels(self) -> Mapping[str, int]:
        """The finalized levels as this controller last read or wrote them."""
        return self._store.levels

    def receive(self, event: Event, now_ms: int) -> list[Effect]:
        """Processes one event and returns its effects."""
        self._out, self._now_ms = [], now_ms
        match event:
            case SessionStarted(session_id):
                self._election.on_session_started(session_id)
                self._tasks.on_connected()
                self._queue_election()
            case SessionLost():
                self._tasks.cancel_all()
                self._is_catch_up_queued = self._is_election_queued = False
                self._processing.clear()
                self._resign()
                self._pending.fail_all()
            case Disconnected():
                self._tasks.on_disconnected()
            case Reconnected():
                self._tasks.on_connected()
                self._queue_election()
                self._queue_catch_up(everything=True)
                if self._topics is not None:
                    self._topics.on_reconnected()
            case OperationCompleted(token, outcome):
                self._tasks.on_completed(token, outcome)
            case WatchFired(path, kind):
                self._on_watch(path, kind)
            case RequestReceived(request_id, request):
                self._on_request(request_id, request)
            case Tick():
                self._on_tick()
            case UpdateMetadataDelivered(broker_id, epoch):
                self._deliveries.confirm(broker_id, epoch)
            case BrokerResponded() if self._topics is not None:
                self._topics.on_broker_responded(event)
        return self._out

    def _on_tick(self) -> None:
        self._pending.expire(self._now_ms)
        if self.active:
            self._deliveries.send_again()
        self._tasks.retry()
        if self._topics is not None:
            self._topics.on_tick(self._now_ms)

    def _on_request(self, request_id: int, request: Request | TopicMessage) -> None:
        match request:
            case ApiVersions(version):
                store = self._store
                response = FeaturesResponse(self._supported, dict(store.levels), store.epoch)
                self._emit(
                    SendResponse(request_id, response if version >= 3 else FeaturesResponse())
                )
            case UpdateFeatures() | DeleteFeatures() if not self.active:
                self._emit(SendResponse(request_id, NOT_CONTROLLER))
            case UpdateFeatures() | DeleteFeatures() if (
                self._processing and not self._dialect.queues
            ):
                self._emit(SendResponse(request_id, IN_PROGRESS))
            case UpdateFeatures() | DeleteFeatures():
                pending = self._pending.add(request_id, request, self._now_ms)
                self._processing.add(request_id)
                self._tasks.add(self._process(pending))
            case _ if self._topics is None:
                self._emit(SendResponse(request_id, TOPICS_NOT_CONTROLLED))
            case _:
                self._topics.on_request(request_id, request)

    # -- election ----------------------------------------------------------------------------------

    def _queue_election(self) -> None:
        if not self._is_election_queued:
            self._is_election_queued = True
            self._tasks.add(self._run_election())

    def _run_election(self) -> Task[None]:
        """Becomes the controller or reads its id; completes the start-up before serving."""
        self._is_election_queued = False
        while True:
            if self.active and (yield from self._election.is_controller()):
                return
            self._resign()
            if not (yield from self._election.elect(lambda: self._now_ms)):
                return
            result = yield from self._store.initialize(self._election.epoch_version)
            if result is WriteResult.DEPOSED:
                continue
            if result is not WriteResult.WRITTEN:
                return
            yield from self._membership.read_all(self._store.levels)
            self.active = True
            self._push(self._membership.joined)
            self._emit(WriteLog(f"elected as the controller, epoch {self.epoch}"))
            if self._topics is not None:
                election = self._election
                self._topics.elected(election.epoch, election.epoch_version, self._now_ms)
            return

    def _resign(self) -> None:
        self.active = False
        self._deliveries.abandon()
        self._membership.reset()
        self._store.reset()
        if self._topics is not None:
            self._topics.resign()

    def _on_deposed(self) -> None:
        self._resign()
        self._queue_election()

    # -- watching ----------------------------------------------------------------------------------

    def _on_watch(self, path: str, kind: WatchKind) -> None:
        if path == encoding.CONTROLLER:
            self._queue_election()
        elif path == self._dialect.path:
            self._store.stale = True
            self._queue_catch_up()
        elif self._membership.on_watch(path):
            self._queue_catch_up()
        elif self._topics is not None:
            self._topics.on_watch(path, kind)

    def _queue_catch_up(self, *, everything: bool = False) -> None:
        if everything:
            self._store.stale = True
            self._membership.mark_all_stale()
        if not self._is_catch_up_queued:
            self._is_catch_up_queued = True
            self._tasks.add(self._catch_up())

    def _catch_up(self) -> Task[None]:
        """Reads what has changed according to the fired watches."""
        self._is_catch_up_queued = False
        if self.active and self._store.stale:
            yield from self._store.read()
            self._membership.reevaluate(self._store.levels)
        if self.active:
            yield from self._membership.read_changes(self._store.levels)
            self._push(self._membership.joined)
            self._deliveries.retain({*self._live_broker_ids()})
            if self._topics is not None:
                self._topics.brokers_changed()

    def _read_brokers(self) -> Task[Mapping[int, ClusterBroker] | None]:
        """The live set as the operations on partitions need it; it is read already."""
        yield ()
        return self._membership.live.cluster_brokers()

    # -- updates -----------------------------------------------------------------------------------

    def _process(self, pending: PendingRequest) -> Task[None]:
        """Decides, writes unless deposed, reads back and responds."""
        while self._pending.is_pending(pending) and not self._reject_undecidable(pending):
            context = UpdateContext(
                self._dialect, self._store.levels, self._membership.live.accepted, self._local
            )
            decision = decide(context, pending.request)
            if decision.levels is None:
                self._pending.answer(pending, decision.response)
                break
            pending.stage = RequestStage.WRITING
            result = yield from self._store.write(decision.levels, self._election.epoch_version)
            if result is WriteResult.WRITTEN:
                pending.stage, pending.success = RequestStage.WRITTEN, decision.response
            elif result is WriteResult.OVERTAKEN:
                pending.stage = RequestStage.WAITING
            else:
                response = not_written(context, decision.response, str(result.value))
                self._on_write_failed(pending, result, response)
                break
            # As in Kafka, respond after the own copy has the new epoch, so this node serves it.
            yield from self._store.read()
            self._membership.reevaluate(self._store.levels)
            if result is WriteResult.WRITTEN:
                self._respond(pending, decision.response)
                break
        self._processing.discard(pending.request_id)

    def _respond(self, pending: PendingRequest, response: UpdateResponse) -> None:
        """Responds to a success; where levels are pushed, once all live brokers have confirmed."""
        live_ids = self._live_broker_ids()
        if (pushed := self._push(live_ids)) is None:
            self._pending.answer(pending, response)
        elif self.active:
            self._deliveries.begin(pending, replace(response, finalized=pushed), pushed, live_ids)
        else:
            self._pending.answer(pending, UNCONFIRMED)

    def _live_broker_ids(self) -> list[int]:
        return sorted(set[int]().union(*self._membership.live.accepted.values()))

    def _push(self, broker_ids: list[int]) -> UpdateMetadata | None:
        """Sends the levels to live brokers by UPDATE_METADATA, if the dialect pushes."""
        self._membership.joined = []
        if not self._dialect.pushes:
            return None
        message = UpdateMetadata(self._store.epoch, dict(self._store.levels))
        for broker_id in broker_ids:
            self._emit(SendUpdateMetadata(broker_id, message))
        return message

    def _reject_undecidable(self, pending: PendingRequest) -> bool:
        """Responds with an error if the request cannot be decided; whether that is so."""
        if self.active and self._store.is_readable:
            return False
        self._pending.answer(
            pending, self._unreadable_response() if self.active else NOT_CONTROLLER
        )
        return True

    def _on_write_failed(
        self, pending: PendingRequest, result: WriteResult, response: UpdateResponse
    ) -> None:
        if result in (WriteResult.DEPOSED, WriteResult.DEPOSED_UNKNOWN):
            self._on_deposed()
        if result is WriteResult.DEPOSED:
            self._pending.answer(pending, NOT_CONTROLLER)
        elif result is WriteResult.REFUSED:
            self._pending.answer(pending, response)
        else:
            self._pending.answer(
                pending, outcome_unknown("The connection was lost during the write")
            )

    def _unreadable_response(self) -> UpdateResponse:
        return UpdateResponse(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"The finalized features at {self._dialect.path} cannot be read; repair that znode.",
        )

    def _emit(self, effect: Effect) -> None:
        self._out.append(effect)
