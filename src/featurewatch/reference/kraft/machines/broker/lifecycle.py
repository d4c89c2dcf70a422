"""A broker's life: it registers, catches up, is unfenced, reports, and shuts down.

As released it is ``BrokerLifecycleManager`` with ``BrokerRegistrationTracker``. As KIP-778 is
written a broker that is refused stays fenced and keeps trying; one that is registered and meets a
level that it does not support removes its registration and ends; and, since the document says
nothing of them, KIP-631 holds for epochs and sessions: a broker whose epoch is stale registers
again, one that could not reach the controller for a session is fenced.
"""

from random import Random
from typing import Final

from featurewatch.reference.kraft.machines.broker.protocol import (
    Answered,
    Applied,
    BecameState,
    BrokerRequest,
    End,
    LevelUnsupported,
    LifecycleEffect,
    LifecycleEvent,
    Published,
    SendToController,
    ShutDown,
    Start,
    Tick,
    WriteLog,
)
from featurewatch.reference.kraft.machines.broker.reports import (
    backoff_ms,
    heartbeat,
    registration,
)
from featurewatch.reference.kraft.machines.broker.settings import BrokerSettings
from featurewatch.reference.kraft.machines.broker.states import TRANSITIONS, BrokerState
from featurewatch.reference.kraft.machines.controller.requests import (
    BrokerHeartbeat,
    BrokerHeartbeatResponse,
    BrokerRegistration,
    BrokerRegistrationResponse,
    ControllerResponse,
    PlainResponse,
    UnregisterBroker,
)
from featurewatch.reference.kraft.machines.controller.settings import Form

NO_EPOCH: Final = -1
NONE: Final = 0
STALE_BROKER_EPOCH: Final = 77
BROKER_ID_NOT_REGISTERED: Final = 102
_STALE: Final = frozenset({STALE_BROKER_EPOCH, BROKER_ID_NOT_REGISTERED})

DIRECTORIES: Final = 17
"""The level (3.7-IV2) from which a registration has log directories."""
_CATCH_UP_MS: Final = 10
_FIRST_PENDING_MS: Final = 50

_REGISTERED_STATES: Final = frozenset(
    {BrokerState.RECOVERY, BrokerState.RUNNING, BrokerState.FENCED}
)


class Lifecycle:
    """The lifecycle of one broker; ``epoch`` is -1 until it has registered."""

    def __init__(self, settings: BrokerSettings, random: Random, applied: Applied) -> None:
        self.settings = settings
        self._applied = applied
        self.state = BrokerState.NOT_RUNNING
        self.epoch = NO_EPOCH
        self._random = random
        self._now_ms = 0
        self._out: list[LifecycleEffect] = []
        self._is_registered = False
        self._unsupported: LevelUnsupported | None = None
        self._refreshed_level = 0
        self._has_pending_response = False
        self._failures = 0
        self._numbers = 0
        self._in_flight: tuple[int, BrokerRequest, int] | None = None
        """The number of the request, the request, and when it was sent."""
        self._next_ms: int | None = None
        self._is_urgent = False
        """Whether the next request follows the one in flight at once."""
        self._deadline_ms: int | None = None
        """Of the first registration, or of the removal of the registration."""
        self._heard_ms = 0
        """When the last request was sent that the controller has accepted."""

    @property
    def is_waiting(self) -> bool:
        """Whether a request is on its way."""
        return self._in_flight is not None

    @property
    def due_ms(self) -> int | None:
        """When it needs its next `Tick`; None: only another event changes anything."""
        times = [self._deadline_ms]
        times += [self._next_ms if self._in_flight is None else None, self._session_end_ms()]
        return min((time for time in times if time is not None), default=None)

    def receive(self, event: LifecycleEvent, now_ms: int) -> list[LifecycleEffect]:
        """Processes one event and returns its effects; none after an `End`."""
        self._now_ms, self._out = now_ms, []
        if self.state is not BrokerState.SHUTTING_DOWN:
            self._on_event(event)
        if self.state is not BrokerState.SHUTTING_DOWN:
            self._communicate()
        return self._out

    def _on_event(self, event: LifecycleEvent) -> None:
        match event:
            case Start():
                if self.state is BrokerState.NOT_RUNNING:
                    self._start()
            case ShutDown():
                self._shut_down()
            case Answered(number, response):
                self._on_answer(number, response)
            case Published():
                self._on_published(event)
            case LevelUnsupported():
                self._unsupported = event
                self._check_level()
            case Tick():
                self._on_time()

    # -- its states --------------------------------------------------------------------------------

    def _enter(self, state: BrokerState) -> None:
        allowed = TRANSITIONS[self.settings.form][self.state]
        assert state in allowed, f"{self.state} to {state}"  # noqa: S101
        self.state = state
        self._out.append(BecameState(state))

    def _start(self) -> None:
        self._enter(BrokerState.STARTING)
        self._next_ms = self._now_ms
        if self.settings.form is Form.RELEASED:
            self._deadline_ms = self._now_ms + self.settings.registration_timeout_ms

    def _end(self, reason: str, *, is_failure: bool = False) -> None:
        self._enter(BrokerState.SHUTTING_DOWN)
        self._next_ms = self._deadline_ms = self._in_flight = None
        self._out.append(End(reason, is_failure))

    def _shut_down(self) -> None:
        match self.state:
            case BrokerState.RUNNING:
                self._enter(BrokerState.PENDING_CONTROLLED_SHUTDOWN)
                self._communicate_at_once()
            case BrokerState.PENDING_CONTROLLED_SHUTDOWN | BrokerState.UNREGISTERING:
                self._log(f"is {self.state} already")
            case _:
                self._end(f"it was told to shut down while {self.state}")

    def _on_published(self, published: Published) -> None:
        self._unsupported = None
        mine, level = published.registration, published.level or 0
        if mine is None or mine.epoch != self.epoch or not self._is_registered:
            return
        needs_directories = level >= DIRECTORIES and not mine.has_log_dirs
        if needs_directories and self.settings.log_dirs and level != self._refreshed_level:
            self._refreshed_level = level
            self._log(f"level {level} has log directories: registering again")
            self._is_registered = False
            self._communicate_at_once()

    def _check_level(self) -> None:
        """Unregisters a registered broker because of its level (KIP-778, compatibility)."""
        if self._unsupported is None or self.settings.form is Form.RELEASED:
            return
        feature, level = self._unsupported.feature, self._unsupported.level
        text = f"{feature} {level} is not supported here ({self.settings.supported.of(feature)})"
        if self.state in (BrokerState.NOT_RUNNING, BrokerState.UNREGISTERING):
            return
        if self.epoch == NO_EPOCH:
            self._log(f"{text}: it stays fenced", is_warning=True)
            return
        self._log(f"{text}: it removes its registration and ends", is_warning=True)
        self._enter(BrokerState.UNREGISTERING)
        self._in_flight, self._failures, self._next_ms = None, 0, self._now_ms
        self._deadline_ms = self._now_ms + self.settings.unregister_timeout_ms

    def _on_time(self) -> None:
        if self._deadline_ms is not None and self._now_ms >= self._deadline_ms:
            if self.state is BrokerState.UNREGISTERING:
                reason = "it met an unsupported level, and its registration may not be removed"
            else:
                reason = "it could not register with the controllers in time"
            self._end(reason, is_failure=True)
            return
        session_end = self._session_end_ms()
        if session_end is not None and self._now_ms >= session_end:
            self._log("no controller has answered for a session: fenced", is_warning=True)
            self._enter(BrokerState.FENCED)

    def _session_end_ms(self) -> int | None:
        if self.state is not BrokerState.RUNNING or self.settings.form is Form.RELEASED:
            return None
        return self._heard_ms + self.settings.session_timeout_ms

    # -- requests ----------------------------------------------------------------------------------

    def _communicate(self) -> None:
        """Sends the next request if it is time, and none is on its way."""
        if self._in_flight is not None or self._next_ms is None or self._now_ms < self._next_ms:
            return
        self._numbers += 1
        request = self._request()
        self._in_flight, self._next_ms = (self._numbers, request, self._now_ms), None
        self._out.append(SendToController(self._numbers, request))

    def _request(self) -> BrokerRequest:
        settings = self.settings
        if self.state is BrokerState.UNREGISTERING:
            return UnregisterBroker(settings.broker_id)
        if self._is_registered:
            return heartbeat(
                settings,
                self.epoch,
                self._applied.offset,
                has_caught_up=self.state is not BrokerState.STARTING,
                wants_end=self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN,
            )
        return registration(settings, self.epoch)

    def _communicate_at_once(self) -> None:
        if self._in_flight is None:
            self._next_ms = self._now_ms
        else:
            self._is_urgent = True

    def _communicate_in(self, delay_ms: int) -> None:
        self._next_ms = self._now_ms + (0 if self._is_urgent else delay_ms)
        self._is_urgent = False

    def _communicate_after_failure(self) -> None:
        delay_ms = backoff_ms(self._failures, self.settings.session_timeout_ms, self._random)
        self._failures += 1
        self._is_urgent = False
        self._communicate_in(delay_ms)

    # -- answers -----------------------------------------------------------------------------------

    def _on_answer(self, number: int, response: ControllerResponse | None) -> None:
        if self._in_flight is None or self._in_flight[0] != number:
            return
        _, request, sent_ms = self._in_flight
        self._in_flight = None
        match request, response:
            case BrokerRegistration(), BrokerRegistrationResponse():
                self._on_registration(response, sent_ms)
            case BrokerHeartbeat(), BrokerHeartbeatResponse():
                self._on_heartbeat(response, sent_ms)
            case UnregisterBroker(), PlainResponse():
                self._on_unregistration(response)
            case _:
                what = "no answer" if response is None else "an answer to another request"
                self._fail(request, what)

    def _fail(self, request: BrokerRequest, what: str) -> None:
        self._log(f"{type(request).__name__}: {what}", is_warning=True)
        self._communicate_after_failure()

    def _on_registration(self, response: BrokerRegistrationResponse, sent_ms: int) -> None:
        request = BrokerRegistration.__name__
        if response.error_code != NONE:
            self._log(f"{request}: error {response.error_code}")
            self._communicate_after_failure()
        elif response.broker_epoch < max(self.epoch, 0):
            # An epoch is an offset of the log, which never goes back.
            epoch = response.broker_epoch
            self._log(f"{request}: epoch {epoch} is before {self.epoch}", is_warning=True)
            self._communicate_after_failure()
        else:
            self.epoch, self._is_registered = response.broker_epoch, True
            self._failures, self._deadline_ms, self._heard_ms = 0, None, sent_ms
            self._log(f"registered with epoch {self.epoch}")
            self._communicate_in(0)
            self._check_level()

    def _on_heartbeat(self, response: BrokerHeartbeatResponse, sent_ms: int) -> None:
        if response.error_code != NONE:
            self._on_heartbeat_error(response.error_code)
            return
        self._failures, self._heard_ms = 0, sent_ms
        match self.state:
            case BrokerState.STARTING:
                self._communicate_in(_CATCH_UP_MS)
                if response.is_caught_up:
                    self._enter(BrokerState.RECOVERY)
                    self._communicate_in(0)
            case BrokerState.RECOVERY | BrokerState.FENCED:
                self._communicate_in(self.settings.heartbeat_ms)
                if not response.is_fenced:
                    self._enter(BrokerState.RUNNING)
            case BrokerState.RUNNING:
                self._communicate_in(self.settings.heartbeat_ms)
                if response.is_fenced and self.settings.form is not Form.RELEASED:
                    self._enter(BrokerState.FENCED)
            case BrokerState.PENDING_CONTROLLED_SHUTDOWN:
                self._on_pending(should_shut_down=response.should_shut_down)
            case _:
                self._communicate_in(0)

    def _on_pending(self, *, should_shut_down: bool) -> None:
        if should_shut_down:
            self._end("the controller lets it shut down")
            return
        first, later = _FIRST_PENDING_MS, self.settings.heartbeat_ms
        self._communicate_in(later if self._has_pending_response else first)
        self._has_pending_response = True

    def _on_heartbeat_error(self, error: int) -> None:
        is_stale = error in _STALE and self.settings.form is not Form.RELEASED
        self._log(f"{BrokerHeartbeat.__name__}: error {error}", is_warning=True)
        if is_stale and self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            self._end("its epoch is stale")
            return
        if is_stale:
            self._is_registered = False
            if self.state in _REGISTERED_STATES:
                self._enter(BrokerState.STARTING)
        self._communicate_after_failure()

    def _on_unregistration(self, response: PlainResponse) -> None:
        if response.error_code in (NONE, BROKER_ID_NOT_REGISTERED):
            self._end("it met an unsupported level, and has unregistered", is_failure=True)
        else:
            self._fail(UnregisterBroker(self.settings.broker_id), f"error {response.error_code}")

    def _log(self, line: str, *, is_warning: bool = False) -> None:
        self._out.append(WriteLog(f"broker {self.settings.broker_id}: {line}", is_warning))
