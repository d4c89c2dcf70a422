"""The reference broker of KIP-584: advertises its ranges and exits at levels it does not support.

It reads the finalized features before it registers, and again whenever their watch fires. If a
level excludes the broker, it exits with a non-zero code and the reason (KIP-584, broker
protections; ``FinalizedFeatureChangeListener``). It writes only its own znode.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from featurewatch.reference.zookeeper.machines import encoding
from featurewatch.reference.zookeeper.machines.compatibility import incompatible_levels
from featurewatch.reference.zookeeper.machines.dialect import Dialect
from featurewatch.reference.zookeeper.machines.encoding import BrokerIdentity
from featurewatch.reference.zookeeper.machines.protocol import (
    Disconnected,
    Effect,
    Event,
    ExitProcess,
    OperationCompleted,
    Reconnected,
    RequestReceived,
    SendResponse,
    SessionLost,
    SessionStarted,
    Tick,
    UpdateMetadataReceived,
    WatchFired,
    WriteLog,
)
from featurewatch.reference.zookeeper.machines.requests import (
    NOT_CONTROLLER,
    ApiVersions,
    FeaturesResponse,
    Request,
    TopicMessage,
    UpdateResponse,
)
from featurewatch.reference.zookeeper.machines.task_queue import Task, TaskQueue, perform
from featurewatch.reference.zookeeper.machines.zookeeper import (
    Create,
    Exists,
    GetData,
    GetDataResult,
    NodeExists,
    NoNode,
    OperationDone,
    OperationRefused,
    OperationResult,
    OutcomeUnknown,
)
from featurewatch.streams.types import FeatureName, SupportedRange
from featurewatch.tables.image.nodes import intern_capabilities

__all__ = ["BrokerIdentity", "ReferenceBroker"]


@dataclass(frozen=True, slots=True)
class FinalizedFeaturesAndEpoch:
    """A broker's cached finalized features; ``epoch`` -1: nothing is finalized.

    ``czxid`` is the transaction that created the znode, -1 if a controller sent the levels.
    """

    levels: Mapping[str, int] = field(default_factory=dict)
    epoch: int = -1
    czxid: int = -1


class ReferenceBroker:
    """One broker; a shell runs it in a ZooKeeper session and ends it at its `ExitProcess`."""

    def __init__(
        self, identity: BrokerIdentity, dialect: Dialect, supported: Mapping[str, SupportedRange]
    ) -> None:
        self._identity = identity
        self._dialect = dialect
        self._supported = dict(supported)
        self._capabilities = intern_capabilities(
            {FeatureName(name): span for name, span in supported.items()}
        )
        self._tasks = TaskQueue(self._emit)
        self._out: list[Effect] = []
        self._now_ms = 0
        self._session_id = 0
        self._has_exited = False
        self.cached = FinalizedFeaturesAndEpoch()
        self.registered = False
        """Whether its znode exists in the current session."""
        self.controller_id: int | None = None
        """The id of the controller as last read; None: no controller, or not known."""

    def receive(self, event: Event, now_ms: int) -> list[Effect]:
        """Processes one event and returns its effects; none after an `ExitProcess`."""
        self._out, self._now_ms = [], now_ms
        if not self._has_exited:
            self._on_event(event)
        return self._out

    def _on_event(self, event: Event) -> None:
        match event:
            case SessionStarted(session_id):
                self._session_id = session_id
                self._tasks.on_connected()
                self._tasks.add(self._start())
            case SessionLost():
                self._tasks.cancel_all()
                self.registered, self.controller_id = False, None
            case Disconnected():
                self._tasks.on_disconnected()
            case Reconnected():
                self._tasks.on_connected()
                self._tasks.add(self._refresh())
                self._tasks.add(self._read_controller())
            case _:
                self._on_running_event(event)

    def _on_running_event(self, event: Event) -> None:
        match event:
            case OperationCompleted(token, outcome):
                self._tasks.on_completed(token, outcome)
            case WatchFired(path):
                task = self._refresh() if path == self._dialect.path else None
                if path == encoding.CONTROLLER:
                    task = self._read_controller()
                if task is not None:
                    self._tasks.add(task)
            case RequestReceived(request_id, request):
                self._emit(SendResponse(request_id, self._respond(request)))
            case UpdateMetadataReceived(message):
                if self._check_levels(message.features) and message.epoch > self.cached.epoch:
                    self.cached = FinalizedFeaturesAndEpoch(
                        dict(message.features), message.epoch, self.cached.czxid
                    )
            case Tick():
                self._tasks.retry()

    def _respond(self, request: Request | TopicMessage) -> FeaturesResponse | UpdateResponse:
        """Responds from the cache, without a request to ZooKeeper or the controller."""
        if not isinstance(request, ApiVersions):
            return NOT_CONTROLLER
        if request.version < 3:
            return FeaturesResponse()
        return FeaturesResponse(self._supported, dict(self.cached.levels), self.cached.epoch)

    # -- tasks -------------------------------------------------------------------------------------

    def _start(self) -> Task[None]:
        """Checks its ranges and the finalized levels, then registers; also in a new session."""
        if invalid := self._invalid_ranges():
            self._exit(f"{invalid}: ranges run from {self._dialect.lowest_minimum} or more upwards")
            return
        yield from self._refresh()
        path = encoding.broker_path(self._identity.broker_id)
        while not (self._has_exited or self.registered):
            data = encoding.encode_broker(
                self._dialect, self._identity, self._supported, self._now_ms
            )
            match (yield from perform(Create(path, data, ephemeral=True))):
                case OperationDone():
                    self.registered = True
                case NodeExists():
                    yield from self._resolve_existing(path)
                case OutcomeUnknown():
                    continue
                case failure:
                    self._exit(f"cannot register at {path}: {_reason(failure)}")
        if not self._has_exited:
            yield from self._read_controller()

    def _invalid_ranges(self) -> str:
        return ", ".join(
            f"{name} {span}"
            for name, span in sorted(self._supported.items())
            if not self._dialect.is_valid_range(span)
        )

    def _resolve_existing(self, path: str) -> Task[None]:
        """The znode exists: from a lost `Create` of this session, or from another session."""
        result = yield from perform(GetData(path))
        if isinstance(result, GetDataResult) and result.stat.owner == self._session_id:
            self.registered = True
        elif isinstance(result, GetDataResult):
            self._exit(
                f"broker id {self._identity.broker_id} is registered by another session;"
                " stop that broker, or wait until its session has expired"
            )

    def _refresh(self) -> Task[None]:
        """Reads and watches the finalized features, and adopts them or exits."""
        path = self._dialect.path
        while True:
            result = yield from perform(GetData(path, watch=True))
            match result:
                case GetDataResult(data, stat):
                    self._adopt(data, stat.version, stat.czxid)
                    return
                case NoNode():
                    existence = yield from perform(Exists(path, watch=True))
                    if isinstance(existence, NoNode):
                        # Levels that a controller sent may be newer than this server's state.
                        self.cached = (
                            FinalizedFeaturesAndEpoch() if self.cached.czxid != -1 else self.cached
                        )
                        return
                case _ if not self.registered:
                    self._exit(
                        f"cannot read {path}, which must precede registering: {_reason(result)}"
                    )
                    return
                case _:
                    self._emit(WriteLog(f"cannot read {path}: {_reason(result)}", warning=True))
                    return

    def _adopt(self, data: bytes, epoch: int, czxid: int) -> None:
        path = self._dialect.path
        try:
            znode = encoding.decode_features(self._dialect, data)
        except encoding.ZnodeDecodeError as error:
            self.cached = FinalizedFeaturesAndEpoch()
            self._emit(WriteLog(f"cannot read {path}: {error}", warning=True))
            return
        if not znode.enabled:
            self.cached = FinalizedFeaturesAndEpoch()
            return
        if epoch < self.cached.epoch and (
            self._dialect.exits_at_lower_epoch or self.cached.czxid in (czxid, -1)
        ):
            if self._dialect.exits_at_lower_epoch:
                self._exit(f"the epoch of {path} is {epoch}, below the cached {self.cached.epoch}")
            return
        self._adopt_levels(encoding.levels_of(znode), epoch, czxid)

    def _adopt_levels(self, levels: Mapping[str, int], epoch: int, czxid: int) -> None:
        """Adopts levels that this broker supports, and exits at others."""
        if self._check_levels(levels):
            self.cached = FinalizedFeaturesAndEpoch(dict(levels), epoch, czxid)

    def _check_levels(self, levels: Mapping[str, int]) -> bool:
        """Whether this broker supports the levels; it exits if not."""
        incompatible = [*incompatible_levels(self._dialect, self._capabilities, levels)]
        if incompatible:
            self._exit("finalized features exclude this broker: " + self._reasons(incompatible))
        return not incompatible

    def _reasons(self, incompatible: list[tuple[str, int]]) -> str:
        def reason(feature: str, level: int) -> str:
            span = self._supported.get(feature)
            supports = "does not support it" if span is None else f"supports {span[0]}-{span[1]}"
            return f"{feature} is at level {level} and broker {self._identity.broker_id} {supports}"

        return "; ".join(reason(feature, level) for feature, level in incompatible)

    def _read_controller(self) -> Task[None]:
        """Reads the controller's id and leaves a watch for the next change."""
        while True:
            result = yield from perform(GetData(encoding.CONTROLLER, watch=True))
            if isinstance(result, GetDataResult):
                self.controller_id = encoding.decode_controller(result.data)
                return
            self.controller_id = None
            if not isinstance(result, NoNode):
                return
            existence = yield from perform(Exists(encoding.CONTROLLER, watch=True))
            if isinstance(existence, NoNode):
                return

    def _exit(self, reason: str) -> None:
        self._has_exited = True
        self._emit(ExitProcess(1, reason))

    def _emit(self, effect: Effect) -> None:
        self._out.append(effect)


def _reason(outcome: OperationResult) -> str:
    return outcome.reason if isinstance(outcome, OperationRefused) else type(outcome).__name__
