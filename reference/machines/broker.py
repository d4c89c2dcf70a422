"""The reference broker of KIP-584: advertises its ranges and guards itself against levels.

It reads the finalized features before it registers, and again whenever their watch fires; levels
that exclude it end it with a non-zero exit code and the reason (KIP-584, broker protections;
``FinalizedFeatureChangeListener``). It writes nothing but its own znode.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from featurewatch.reference.machines import encoding
from featurewatch.reference.machines.compatibility import incompatible_levels
from featurewatch.reference.machines.dialect import Dialect
from featurewatch.reference.machines.encoding import BrokerIdentity
from featurewatch.reference.machines.protocol import (
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
from featurewatch.reference.machines.requests import (
    NOT_CONTROLLER,
    ApiVersions,
    FeaturesResponse,
    Request,
    UpdateResponse,
)
from featurewatch.reference.machines.task_queue import Task, TaskQueue, perform
from featurewatch.reference.machines.zookeeper import (
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
    """A broker's copy of the finalized features; ``epoch`` -1: there are none.

    ``czxid`` is the transaction that made the znode, -1 where they were sent by a controller.
    """

    levels: Mapping[str, int] = field(default_factory=dict)
    epoch: int = -1
    czxid: int = -1


class ReferenceBroker:
    """One broker; a shell runs it in a ZooKeeper session and ends it when it says `ExitProcess`."""

    def __init__(
        self, identity: BrokerIdentity, dialect: Dialect, supported: Mapping[str, SupportedRange]
    ) -> None:
        self._identity = identity
        self._dialect = dialect
        self._supported = dict(supported)
        self._known = intern_capabilities(
            {FeatureName(name): span for name, span in supported.items()}
        )
        self._serial = TaskQueue(self._emit)
        self._out: list[Effect] = []
        self._now_ms = 0
        self._session = 0
        self._over = False
        self.cached = FinalizedFeaturesAndEpoch()
        self.registered = False
        """Its znode stands in the present session."""
        self.controller_id: int | None = None
        """Who is the controller, as last seen; None: nobody, or not known."""

    def receive(self, event: Event, now_ms: int) -> list[Effect]:
        """Take one event; nothing comes any more after an `ExitProcess`."""
        self._out, self._now_ms = [], now_ms
        if not self._over:
            self._take(event)
        return self._out

    def _take(self, event: Event) -> None:
        match event:
            case SessionStarted(session_id):
                self._session = session_id
                self._serial.connected()
                self._serial.add(self._start())
            case SessionLost():
                self._serial.cancel_all()
                self.registered, self.controller_id = False, None
            case Disconnected():
                self._serial.disconnected()
            case Reconnected():
                self._serial.connected()
                self._serial.add(self._refresh())
                self._serial.add(self._look_for_controller())
            case _:
                self._hear(event)

    def _hear(self, event: Event) -> None:
        match event:
            case OperationCompleted(token, outcome):
                self._serial.answered(token, outcome)
            case WatchFired(path):
                watched = self._refresh() if path == self._dialect.path else None
                if path == encoding.CONTROLLER:
                    watched = self._look_for_controller()
                if watched is not None:
                    self._serial.add(watched)
            case RequestReceived(request_id, request):
                self._emit(SendResponse(request_id, self._answer(request)))
            case UpdateMetadataReceived(message):
                if message.epoch > self.cached.epoch:
                    self._hold(message.features, message.epoch, self.cached.czxid)
            case Tick():
                self._serial.retry()

    def _answer(self, request: Request) -> FeaturesResponse | UpdateResponse:
        """From memory alone: no read of ZooKeeper, no call of the controller."""
        if not isinstance(request, ApiVersions):
            return NOT_CONTROLLER
        if request.version < 3:
            return FeaturesResponse()
        return FeaturesResponse(self._supported, dict(self.cached.levels), self.cached.epoch)

    # -- tasks -------------------------------------------------------------------------------------

    def _start(self) -> Task[None]:
        """Check first, register then; a new session of a running broker does the same."""
        yield from self._refresh()
        path = encoding.broker_path(self._identity.broker_id)
        while not (self._over or self.registered):
            data = encoding.encode_broker(
                self._dialect, self._identity, self._supported, self._now_ms
            )
            match (yield from perform(Create(path, data, ephemeral=True))):
                case OperationDone():
                    self.registered = True
                case NodeExists():
                    yield from self._own(path)
                case OutcomeUnknown():
                    continue
                case other:
                    self._exit(f"cannot register at {path}: {_why(other)}")
        if not self._over:
            yield from self._look_for_controller()

    def _own(self, path: str) -> Task[None]:
        """The znode is there: by our own lost `Create`, or by somebody else's."""
        found = yield from perform(GetData(path))
        if isinstance(found, GetDataResult) and found.stat.owner == self._session:
            self.registered = True
        elif isinstance(found, GetDataResult):
            self._exit(
                f"broker id {self._identity.broker_id} is registered by another session;"
                " stop that broker, or wait until its session has expired"
            )

    def _refresh(self) -> Task[None]:
        """Read the finalized features, leave a watch, and adopt them or exit."""
        path = self._dialect.path
        while True:
            found = yield from perform(GetData(path, watch=True))
            match found:
                case GetDataResult(data, stat):
                    self._adopt(data, stat.version, stat.czxid)
                    return
                case NoNode():
                    again = yield from perform(Exists(path, watch=True))
                    if isinstance(again, NoNode):
                        # What a controller sent may be newer than what this server has.
                        self.cached = (
                            FinalizedFeaturesAndEpoch() if self.cached.czxid != -1 else self.cached
                        )
                        return
                case _ if not self.registered:
                    self._exit(f"cannot read {path}, and must before it registers: {_why(found)}")
                    return
                case _:
                    self._emit(WriteLog(f"cannot read {path}: {_why(found)}", warning=True))
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
                self._exit(
                    f"the epoch of {path} is {epoch}, below {self.cached.epoch}, which is held"
                )
            return
        self._hold(encoding.levels_of(znode), epoch, czxid)

    def _hold(self, levels: Mapping[str, int], epoch: int, czxid: int) -> None:
        """Check first, then adopt."""
        against = [*incompatible_levels(self._dialect, self._known, levels)]
        if against:
            self._exit("finalized features exclude this broker: " + self._reasons(against))
            return
        self.cached = FinalizedFeaturesAndEpoch(dict(levels), epoch, czxid)

    def _reasons(self, against: list[tuple[str, int]]) -> str:
        def reason(feature: str, level: int) -> str:
            span = self._supported.get(feature)
            supports = "does not support it" if span is None else f"supports {span[0]}-{span[1]}"
            return f"{feature} is at level {level} and broker {self._identity.broker_id} {supports}"

        return "; ".join(reason(feature, level) for feature, level in against)

    def _look_for_controller(self) -> Task[None]:
        """Learn who is the controller, and hear of the next."""
        while True:
            found = yield from perform(GetData(encoding.CONTROLLER, watch=True))
            if isinstance(found, GetDataResult):
                self.controller_id = encoding.decode_controller(found.data)
                return
            self.controller_id = None
            if not isinstance(found, NoNode):
                return
            again = yield from perform(Exists(encoding.CONTROLLER, watch=True))
            if isinstance(again, NoNode):
                return

    def _exit(self, reason: str) -> None:
        self._over = True
        self._emit(ExitProcess(1, reason))

    def _emit(self, effect: Effect) -> None:
        self._out.append(effect)


def _why(outcome: OperationResult) -> str:
    return outcome.reason if isinstance(outcome, OperationRefused) else type(outcome).__name__
