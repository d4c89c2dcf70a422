"""The lifecycle of a broker, in both forms: each transition, backoff, and hostile answers."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Final

import pytest

from featurewatch.reference.kraft.machines.broker.lifecycle import Lifecycle
from featurewatch.reference.kraft.machines.broker.protocol import (
    Answered,
    Applied,
    BecameState,
    BrokerRequest,
    End,
    LevelUnsupported,
    LifecycleEffect,
    Published,
    Registration,
    SendToController,
    ShutDown,
    Start,
    Tick,
    WriteLog,
)
from featurewatch.reference.kraft.machines.broker.settings import BrokerSettings
from featurewatch.reference.kraft.machines.broker.states import TRANSITIONS, BrokerState
from featurewatch.reference.kraft.machines.controller.requests import (
    BrokerHeartbeat,
    BrokerHeartbeatResponse,
    BrokerRegistration,
    BrokerRegistrationResponse,
    ControllerResponse,
    DescribeClusterResponse,
    PlainResponse,
    UnregisterBroker,
)
from featurewatch.reference.kraft.machines.controller.settings import Form
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel

RELEASED: Final = Form.RELEASED
AS_WRITTEN: Final = Form.KIP_778
BOTH: Final = (RELEASED, AS_WRITTEN)
EPOCH: Final = 40
STALE: Final = 77
UNSUPPORTED: Final = LevelUnsupported(METADATA_VERSION, FeatureLevel(99))
CAUGHT_UP: Final = BrokerHeartbeatResponse(0, is_caught_up=True)
UNFENCED: Final = BrokerHeartbeatResponse(0, is_caught_up=True, is_fenced=False)
FENCED: Final = BrokerHeartbeatResponse(0, is_caught_up=True)
MAY_END: Final = BrokerHeartbeatResponse(0, is_caught_up=True, should_shut_down=True)


class Driven:
    """A lifecycle, its effects, and the request that waits for an answer."""

    def __init__(self, form: Form) -> None:
        settings = BrokerSettings(1, "c", "i" * 22, (), log_dirs=("d" * 22,), form=form)
        self.applied = Applied(EPOCH + 1)
        self.lifecycle = Lifecycle(settings, Random(0), self.applied)
        self.now_ms = 1_000_000
        self.effects: list[LifecycleEffect] = []
        self.sent: list[SendToController] = []
        self.visited = [BrokerState.NOT_RUNNING]

    def receive(self, event: object, later_ms: int = 0) -> None:
        """Gives it an event after a while."""
        self.now_ms += later_ms
        effects = self.lifecycle.receive(event, self.now_ms)  # type: ignore[arg-type]
        self.effects += effects
        self.sent += [effect for effect in effects if isinstance(effect, SendToController)]
        self.visited += [effect.state for effect in effects if isinstance(effect, BecameState)]

    def wait(self) -> int:
        """Lets time pass until it is due; returns how long that took, in ms."""
        due_ms = self.lifecycle.due_ms
        assert due_ms is not None
        waited_ms = due_ms - self.now_ms
        self.receive(Tick(), max(0, waited_ms))
        return waited_ms

    def answer(self, response: ControllerResponse | None, later_ms: int = 1) -> None:
        """Answers the last request."""
        self.receive(Answered(self.sent[-1].number, response), later_ms)

    @property
    def request(self) -> BrokerRequest:
        """The last request."""
        return self.sent[-1].request

    @property
    def state(self) -> BrokerState:
        """Its state."""
        return self.lifecycle.state

    @property
    def end(self) -> End | None:
        """Its end, if it has one."""
        return next((effect for effect in self.effects if isinstance(effect, End)), None)

    @property
    def lines(self) -> list[str]:
        """What it has logged."""
        return [effect.line for effect in self.effects if isinstance(effect, WriteLog)]


def _starting(form: Form) -> Driven:
    driven = Driven(form)
    driven.receive(Start())
    return driven


def _registered(form: Form) -> Driven:
    driven = _starting(form)
    driven.answer(BrokerRegistrationResponse(0, EPOCH))
    return driven


def _recovering(form: Form) -> Driven:
    driven = _registered(form)
    driven.answer(CAUGHT_UP)
    return driven


def _running(form: Form) -> Driven:
    driven = _recovering(form)
    driven.answer(UNFENCED)
    return driven


def _fenced(form: Form) -> Driven:
    driven = _running(form)
    driven.wait()
    driven.answer(FENCED)
    return driven


def _pending(form: Form) -> Driven:
    driven = _running(form)
    driven.receive(ShutDown())
    return driven


def _unregistering(form: Form) -> Driven:
    driven = _running(form)
    driven.receive(UNSUPPORTED)
    return driven


AT: Final[dict[BrokerState, Callable[[Form], Driven]]] = {
    BrokerState.NOT_RUNNING: Driven,
    BrokerState.STARTING: _registered,
    BrokerState.RECOVERY: _recovering,
    BrokerState.RUNNING: _running,
    BrokerState.FENCED: _fenced,
    BrokerState.PENDING_CONTROLLED_SHUTDOWN: _pending,
    BrokerState.UNREGISTERING: _unregistering,
}


def _stale(driven: Driven) -> None:
    _beat(driven, BrokerHeartbeatResponse(STALE))


WAYS: Final[dict[str, Callable[[Driven], None]]] = {
    "starts": lambda it: it.receive(Start()),
    "the controller says that it has caught up": lambda it: it.answer(CAUGHT_UP),
    "the controller unfences it": lambda it: _beat(it, UNFENCED),
    "the controller has fenced it, or its session is over": lambda it: _beat(it, FENCED),
    "is told to shut down": lambda it: it.receive(ShutDown()),
    "is told to shut down, or could not register in time": lambda it: it.receive(ShutDown()),
    "the controller lets it shut down": lambda it: it.answer(MAY_END),
    "the controller lets it shut down, or its epoch is stale": lambda it: it.answer(MAY_END),
    "meets a level that it does not support": lambda it: it.receive(UNSUPPORTED),
    "its epoch is stale": _stale,
    "its registration is removed, or that took too long": lambda it: it.answer(PlainResponse(0)),
}


def _beat(driven: Driven, response: ControllerResponse | None) -> None:
    """Answers a heartbeat, after the time to it if none is on its way."""
    if not driven.lifecycle.is_waiting:
        driven.wait()
    driven.answer(response)


def _transitions() -> Iterator[tuple[Form, BrokerState, BrokerState, str]]:
    for form, table in TRANSITIONS.items():
        for before, followers in table.items():
            for after, why in followers.items():
                yield form, before, after, why


@pytest.mark.parametrize(("form", "before", "after", "why"), [*_transitions()])
def test_each_transition_of_the_table(
    form: Form, before: BrokerState, after: BrokerState, why: str
) -> None:
    """It happens for the reason that the table gives."""
    driven = AT[before](form)
    assert driven.state is before
    WAYS[why](driven)
    assert driven.state is after
    assert (driven.end is not None) == (after is BrokerState.SHUTTING_DOWN)


@pytest.mark.parametrize("form", BOTH)
def test_a_broker_starts(form: Form) -> None:
    """It registers, reports every 10 ms until it has caught up, then asks to be unfenced."""
    driven = _starting(form)
    registration = driven.request
    assert isinstance(registration, BrokerRegistration)
    assert {feature.name for feature in registration.features} >= {METADATA_VERSION}
    assert registration.log_dirs == ("d" * 22,)
    driven.answer(BrokerRegistrationResponse(0, EPOCH))
    assert driven.request == BrokerHeartbeat(1, EPOCH, EPOCH, True, False)
    driven.answer(BrokerHeartbeatResponse(0))
    assert driven.wait() == 10
    driven.applied.offset += 5
    driven.answer(CAUGHT_UP)
    assert driven.request == BrokerHeartbeat(1, EPOCH, EPOCH + 5, False, False)
    driven.answer(FENCED)
    assert driven.state is BrokerState.RECOVERY
    assert driven.wait() == 2_000
    driven.answer(UNFENCED)
    assert driven.wait() == 2_000
    assert driven.visited == [
        BrokerState.NOT_RUNNING,
        BrokerState.STARTING,
        BrokerState.RECOVERY,
        BrokerState.RUNNING,
    ]


@pytest.mark.parametrize("form", BOTH)
def test_a_controlled_shutdown(form: Form) -> None:
    """The broker asks at once, soon again, then as often as it reports, until it may end."""
    driven = _running(form)
    driven.receive(ShutDown())
    assert driven.request == BrokerHeartbeat(1, EPOCH, EPOCH, False, True)
    driven.receive(ShutDown())
    waits = []
    for _ in range(3):
        driven.answer(UNFENCED)
        waits.append(driven.wait())
    assert waits == [50, 2_000, 2_000]
    driven.answer(MAY_END)
    assert driven.end == End("the controller lets it shut down")
    driven.receive(Tick(), 60_000)
    assert driven.effects[-1] == driven.end


@pytest.mark.parametrize("form", BOTH)
def test_a_shutdown_waits_for_the_answer_that_is_on_its_way(form: Form) -> None:
    """Then the next heartbeat follows at once, but not after a failure."""
    driven = _running(form)
    driven.wait()
    driven.receive(ShutDown())
    assert driven.request == BrokerHeartbeat(1, EPOCH, EPOCH, False, False)
    driven.answer(UNFENCED)
    assert driven.request == BrokerHeartbeat(1, EPOCH, EPOCH, False, True)
    failing = _running(form)
    failing.wait()
    failing.receive(ShutDown())
    failing.answer(None)
    assert failing.wait() > 90


@pytest.mark.form("released")
def test_a_refused_broker_ends_after_a_minute() -> None:
    """It retries, ever more slowly, then exits (M-42 as released)."""
    driven = _starting(RELEASED)
    waits: list[int] = []
    while driven.end is None and len(waits) < 100:
        driven.answer(BrokerRegistrationResponse(35))
        waits.append(driven.wait())
    assert driven.end is not None
    assert driven.end.is_failure
    assert driven.now_ms == 1_060_000
    expected = [100, 200, 400, 800, 1600, 3200, 6400, 9000]
    for waited_ms, term in zip(waits, expected, strict=False):
        assert 0.98 * term - 1 <= waited_ms <= min(1.02 * term, 9000)
    assert len(waits) > len(expected)


@pytest.mark.form("document")
def test_a_refused_broker_stays_fenced() -> None:
    """It retries for hours, and registers once the controller accepts it; the level in the log is
    none of its business until then, since it has no registration to remove (M-42)."""
    driven = _starting(AS_WRITTEN)
    driven.receive(UNSUPPORTED)
    for _ in range(1000):
        driven.answer(BrokerRegistrationResponse(35))
        assert driven.wait() <= 9_000
        assert isinstance(driven.request, BrokerRegistration)
    assert driven.now_ms > 1_000_000 + 3_600_000
    assert (driven.state, driven.end) == (BrokerState.STARTING, None)
    driven.receive(Published(8, None))
    driven.answer(BrokerRegistrationResponse(0, EPOCH))
    driven.answer(CAUGHT_UP)
    driven.answer(UNFENCED)
    assert driven.state is BrokerState.RUNNING


@pytest.mark.form("document")
@pytest.mark.parametrize("state", [*AT][1:6])
def test_a_broker_that_meets_an_unsupported_level_unregisters_and_ends(state: BrokerState) -> None:
    """Registered, in whatever state; it exits with an error when the controller has removed its
    registration (M-47)."""
    driven = AT[state](AS_WRITTEN)
    driven.receive(UNSUPPORTED)
    assert driven.state is BrokerState.UNREGISTERING
    assert driven.request == UnregisterBroker(1)
    assert driven.end is None
    driven.answer(PlainResponse(0))
    assert driven.end == End("it met an unsupported level, and has unregistered", is_failure=True)
    assert "metadata.version 99 is not supported here" in "".join(driven.lines)


@pytest.mark.form("released")
@pytest.mark.parametrize("state", [*AT][1:4])
def test_a_released_broker_stays_at_an_unsupported_level(state: BrokerState) -> None:
    """It neither unregisters nor ends (M-47 as released)."""
    driven = AT[state](RELEASED)
    sent = len(driven.sent)
    driven.receive(UNSUPPORTED)
    assert (driven.state, driven.end, len(driven.sent)) == (state, None, sent)


@pytest.mark.form("document")
def test_an_unregistration_is_repeated_until_it_took_too_long() -> None:
    """A controller that is not active, or none: then the registration may remain, which it says.
    One that is unregistered already is done (M-47)."""
    driven = _unregistering(AS_WRITTEN)
    driven.answer(PlainResponse(41, "This is not the correct controller"))
    assert 98 <= driven.wait() <= 102
    assert driven.request == UnregisterBroker(1)
    driven.answer(PlainResponse(102))
    assert driven.end is not None
    without = _unregistering(AS_WRITTEN)
    for _ in range(100):
        if without.end is None:
            without.answer(None)
            without.wait()
    assert without.end is not None
    assert without.now_ms - 1_000_000 < 11_000
    assert "may not be removed" in without.end.reason
    assert without.end.is_failure


@pytest.mark.form("document")
def test_an_answer_to_an_earlier_request_does_not_stop_the_end() -> None:
    """A heartbeat was on its way when the broker met the level (M-47)."""
    driven = _running(AS_WRITTEN)
    driven.wait()
    heartbeat = driven.sent[-1].number
    driven.receive(UNSUPPORTED)
    driven.receive(Answered(heartbeat, UNFENCED))
    assert driven.state is BrokerState.UNREGISTERING
    assert driven.request == UnregisterBroker(1)


@pytest.mark.parametrize("error", [STALE, 102])
def test_a_broker_whose_epoch_is_stale_registers_again(error: int) -> None:
    """As written, after a while; it needs to catch up and to be unfenced again."""
    driven = _running(AS_WRITTEN)
    driven.wait()
    driven.answer(BrokerHeartbeatResponse(error))
    assert driven.state is BrokerState.STARTING
    assert 98 <= driven.wait() <= 102
    registration = driven.request
    assert isinstance(registration, BrokerRegistration)
    assert registration.previous_broker_epoch == EPOCH
    driven.answer(BrokerRegistrationResponse(0, EPOCH + 60))
    assert driven.request == BrokerHeartbeat(1, EPOCH + 60, EPOCH, True, False)


def test_a_released_broker_with_a_stale_epoch_retries() -> None:
    """With the epoch that it has, ever more slowly."""
    driven = _running(RELEASED)
    driven.wait()
    for _ in range(20):
        driven.answer(BrokerHeartbeatResponse(STALE))
        driven.wait()
        assert driven.request == BrokerHeartbeat(1, EPOCH, EPOCH, False, False)
    assert driven.state is BrokerState.RUNNING


def test_a_broker_without_controllers_for_a_session_is_fenced() -> None:
    """As written, 9 s after its last request that was answered; any good answer unfences it."""
    driven = _running(AS_WRITTEN)
    driven.wait()
    beat_ms = driven.now_ms
    driven.answer(UNFENCED)
    while driven.state is BrokerState.RUNNING:
        if driven.lifecycle.is_waiting:
            driven.answer(None)
        driven.wait()
    assert driven.now_ms - beat_ms == 9_000
    _beat(driven, UNFENCED)
    assert driven.visited[-2:] == [BrokerState.FENCED, BrokerState.RUNNING]


def test_a_released_broker_does_not_know_that_it_is_fenced() -> None:
    """It stays as it is without controllers, and when one says that it is fenced."""
    driven = _running(RELEASED)
    _beat(driven, FENCED)
    for _ in range(30):
        _beat(driven, None)
    assert driven.state is BrokerState.RUNNING


@pytest.mark.parametrize("form", BOTH)
def test_a_level_with_directories_makes_a_broker_register_again(form: Form) -> None:
    """Once, at once, with the same incarnation; its state does not change (3.7-IV2)."""
    driven = _running(form)
    driven.receive(Published(16, Registration(EPOCH, has_log_dirs=False)))
    assert len(driven.sent) == 3
    for _ in range(3):
        driven.receive(Published(17, Registration(EPOCH, has_log_dirs=False)))
    assert isinstance(driven.request, BrokerRegistration)
    assert len(driven.sent) == 4
    driven.answer(BrokerRegistrationResponse(0, EPOCH))
    assert isinstance(driven.request, BrokerHeartbeat)
    driven.receive(Published(17, Registration(EPOCH, has_log_dirs=True)))
    driven.answer(UNFENCED)
    assert driven.wait() == 2_000
    assert driven.state is BrokerState.RUNNING
    assert driven.visited.count(BrokerState.RUNNING) == 1


HOSTILE: Final = (
    None,
    BrokerRegistrationResponse(-32768),
    BrokerRegistrationResponse(32767, 99),
    BrokerRegistrationResponse(0, -1),
    BrokerRegistrationResponse(0, -(1 << 63)),
    BrokerRegistrationResponse(0, EPOCH - 1),
    PlainResponse(0),
    DescribeClusterResponse(0),
    BrokerHeartbeatResponse(-1, is_caught_up=True, is_fenced=False, should_shut_down=True),
    BrokerHeartbeatResponse(12345, is_caught_up=True, is_fenced=False, should_shut_down=True),
)


@pytest.mark.parametrize("form", BOTH)
@pytest.mark.parametrize("response", HOSTILE)
def test_a_hostile_answer_is_a_failure(form: Form, response: ControllerResponse | None) -> None:
    """Unknown errors, epochs from the past, answers to something else: the broker waits and
    retries with the epoch that it had."""
    driven = _running(form)
    driven.receive(Published(17, Registration(EPOCH, has_log_dirs=False)))
    assert isinstance(driven.request, BrokerRegistration)
    driven.answer(response)
    assert driven.wait() >= 98
    assert isinstance(driven.request, BrokerRegistration)
    beating = _running(form)
    beating.wait()
    beating.answer(response)
    assert beating.wait() >= 98
    assert beating.request == BrokerHeartbeat(1, EPOCH, EPOCH, False, False)
    assert (beating.state, beating.end) == (BrokerState.RUNNING, None)


@pytest.mark.parametrize("form", BOTH)
def test_answers_that_nobody_waits_for_are_ignored(form: Form) -> None:
    """Late ones, doubled ones, and ones with a number that was never used."""
    driven = _running(form)
    effects = len(driven.effects)
    for number in (0, 1, driven.sent[-1].number, 99, -1):
        driven.receive(Answered(number, MAY_END))
        driven.receive(Answered(number, BrokerRegistrationResponse(0, 1 << 62)))
    assert len(driven.effects) == effects
    assert driven.lifecycle.epoch == EPOCH


@pytest.mark.parametrize("form", BOTH)
def test_random_histories_keep_to_the_table(form: Form) -> None:
    """Any events at any time: at most one request is on its way, and none after the end."""
    responses: list[ControllerResponse | None] = [*HOSTILE, CAUGHT_UP, UNFENCED, FENCED, MAY_END]
    responses += [BrokerHeartbeatResponse(STALE), BrokerRegistrationResponse(0, EPOCH)]
    responses += [PlainResponse(102)]
    for seed in range(300):
        random = Random(seed)
        driven = _starting(form)
        for _ in range(60):
            choice = random.random()
            if choice < 0.7:
                _beat_any(driven, random.choice(responses))
            elif choice < 0.9:
                driven.receive(Tick(), random.randrange(5_000))
            elif choice < 0.95:
                driven.receive(Published(random.choice((8, 17)), Registration(EPOCH, False)))
            else:
                driven.receive(random.choice((ShutDown(), UNSUPPORTED, Start())))
        for before, after in zip(driven.visited, driven.visited[1:], strict=False):
            assert after in TRANSITIONS[form][before], f"seed {seed}"
        numbers = [sent.number for sent in driven.sent]
        assert numbers == sorted(set(numbers)), f"seed {seed}"
        if driven.end is not None:
            assert driven.effects[-1] == driven.end, f"seed {seed}"


def _beat_any(driven: Driven, response: ControllerResponse | None) -> None:
    if driven.end is None and not driven.lifecycle.is_waiting and driven.lifecycle.due_ms:
        driven.wait()
    driven.answer(response)
