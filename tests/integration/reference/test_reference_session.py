"""Machines on a real ensemble: what they are told, in which order, and when things break."""

import asyncio
import time
from collections.abc import Callable, Sequence

import pytest
from kazoo.client import KazooClient

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
    WatchFired,
    WatchKind,
    ZookeeperRequest,
)
from featurewatch.reference.zookeeper.machines.requests import ApiVersions, FeaturesResponse
from featurewatch.reference.zookeeper.machines.zookeeper import (
    BadVersion,
    CheckVersion,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetChildrenResult,
    GetData,
    GetDataResult,
    Multi,
    NodeExists,
    NoNode,
    Operation,
    OperationDone,
    OperationResult,
    OutcomeUnknown,
    SetData,
    Stat,
)
from featurewatch.reference.zookeeper.sessions.session import MachineSession
from featurewatch.reference.zookeeper.sessions.slots import (
    MachineExitedError,
    MachineSlot,
    ZookeeperUnavailableError,
)
from featurewatch.stack.zookeeper.ensemble import Ensemble
from tests.conftest import MakeEnsemble
from tests.zookeeper_sessions import expire

pytestmark = pytest.mark.stack

DEADLINE_S = 60.0


class Recorder:
    """A machine that does what it is told by requests, and writes down what it hears."""

    def __init__(self) -> None:
        self.received: list[Event] = []
        self.next: list[Effect] = []
        self.token = 0

    def receive(self, event: Event, now_ms: int) -> Sequence[Effect]:
        """Note the event; at a tick, say what was prepared."""
        assert now_ms > 1_500_000_000_000
        if isinstance(event, RequestReceived):
            return [SendResponse(event.request_id, FeaturesResponse(epoch=event.request_id))]
        if not isinstance(event, Tick):
            self.received.append(event)
        effects, self.next = self.next, []
        return effects

    def request(self, *operations: Operation) -> list[int]:
        """Prepare operations; their tokens."""
        tokens = range(self.token + 1, self.token + 1 + len(operations))
        self.next += [
            ZookeeperRequest(token, operation)
            for token, operation in zip(tokens, operations, strict=True)
        ]
        self.token += len(operations)
        return [*tokens]

    def outcome(self, token: int) -> OperationResult | None:
        """The outcome of an operation, if it is known."""
        for event in self.received:
            if isinstance(event, OperationCompleted) and event.token == token:
                return event.outcome
        return None


class Stage:
    """A session with one recorder on it."""

    def __init__(self, connect: str, timeout_s: float = 4.0) -> None:
        self.machine = Recorder()
        self.exits: list[tuple[int, str]] = []
        self.session = MachineSession(
            connect,
            session_timeout_s=timeout_s,
            on_exit=lambda code, reason: self.exits.append((code, reason)),
        )
        self.seat: MachineSlot = self.session.attach(self.machine)

    async def __aenter__(self) -> "Stage":
        await self.session.open(DEADLINE_S)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits for something; `TimeoutError` if it does not come."""
        async with asyncio.timeout(DEADLINE_S):
            while not condition():
                await asyncio.sleep(0.01)

    async def do(self, *operations: Operation) -> list[OperationResult]:
        """The outcomes of operations that are asked for together."""
        tokens = self.machine.request(*operations)
        await self.until(lambda: all(self.machine.outcome(token) for token in tokens))
        return [outcome for token in tokens if (outcome := self.machine.outcome(token))]

    def has_received(self, kind: type[Event]) -> bool:
        """Whether it has heard such an event."""
        return any(isinstance(event, kind) for event in self.machine.received)


@pytest.fixture
def connect(ensemble: Ensemble) -> str:
    """A chroot of one's own on the shared ensemble."""
    return f"{ensemble.connect_string}/session-{time.time_ns()}"


def other(connect: str) -> KazooClient:
    """Somebody else on the same ensemble."""
    client = KazooClient(connect)
    client.start(DEADLINE_S)
    return client


async def elsewhere(function: Callable[[], object]) -> None:
    """Does something that waits, without holding up the loop."""
    await asyncio.to_thread(function)


async def test_every_operation_has_its_outcome(connect: str) -> None:
    """Done with what it is done to, or why not; in the order asked."""
    async with Stage(connect) as stage:
        made, again, written, stale, read, existing, missing, names, gone, nothing = await stage.do(
            Create("/a", b"0"),
            Create("/a", b"1"),
            SetData("/a", b"2", 0),
            SetData("/a", b"3", 0),
            GetData("/a"),
            Exists("/a"),
            Exists("/b"),
            GetChildren("/"),
            Delete("/a", 1),
            GetData("/a"),
        )
        assert isinstance(made, OperationDone)
        assert isinstance(written, OperationDone)
        (first,), (second,) = made.stats, written.stats
        assert first is not None
        assert second == Stat(1, first.czxid, first.mzxid + 2)  # the failed creation took one
        assert again == NodeExists()
        assert stale == BadVersion()
        assert read == GetDataResult(b"2", second)
        assert existing == OperationDone((second,))
        assert missing == nothing == NoNode()
        assert isinstance(names, GetChildrenResult)
        assert set(names.names) == {"a", "brokers"}
        assert gone == OperationDone()


async def test_missing_parents_are_made(connect: str) -> None:
    """A creation deep below also creates its empty parents."""
    async with Stage(connect) as stage:
        made, _ = await stage.do(Create("/x/y/z", b"deep", ephemeral=True), GetData("/"))
        assert isinstance(made, OperationDone)
        (stat,) = made.stats
        assert stat is not None
        started = stage.machine.received[0]
        assert isinstance(started, SessionStarted)
        assert stat.owner == started.session_id
        (parent,) = await stage.do(GetData("/x/y"))
        assert isinstance(parent, GetDataResult)
        assert parent.data == b""


async def test_a_transaction_is_all_or_nothing(connect: str) -> None:
    """The stats of its parts, as a read shows them; of a failure, which part it was."""
    async with Stage(connect) as stage:
        await stage.do(Create("/epoch", b"1"))
        fenced, done, own = await stage.do(
            Multi((CheckVersion("/epoch", 5), Create("/m", b""))),
            Multi(
                (
                    CheckVersion("/epoch", 0),
                    Create("/m", b"", ephemeral=True),
                    SetData("/epoch", b"2", 0),
                )
            ),
            GetData("/m"),
        )
        assert fenced == BadVersion(0)
        assert isinstance(done, OperationDone)
        assert isinstance(own, GetDataResult)
        check, created, written = done.stats
        assert check is None
        assert created == own.stat
        assert written is not None
        assert written.mzxid == own.stat.czxid
        failed, still = await stage.do(
            Multi((SetData("/epoch", b"3", 1), Create("/m", b""))), GetData("/epoch")
        )
        assert failed == NodeExists(1)
        assert still == GetDataResult(b"2", written)
        missing = await stage.do(Multi((Delete("/epoch"), Delete("/none"))))
        assert missing == [NoNode(1)]


async def test_a_watch_fires_before_its_change_can_be_read(connect: str) -> None:
    """A change by somebody else, with reads under way all the time: never the new content first."""
    async with Stage(connect) as stage:
        await stage.do(Create("/w", b"0"))
        client = await asyncio.to_thread(other, connect)
        try:
            for round_ in range(1, 21):
                await stage.do(GetData("/w", watch=True))
                stage.machine.received.clear()
                written = asyncio.create_task(asyncio.to_thread(client.set, "/w", b"%d" % round_))
                while not stage.has_received(WatchFired):
                    await stage.do(*[GetData("/w")] * 5)
                await written
                fired = next(
                    place
                    for place, event in enumerate(stage.machine.received)
                    if isinstance(event, WatchFired)
                )
                assert stage.machine.received[fired] == WatchFired("/w", WatchKind.CHANGED)
                before = [
                    event.outcome.data
                    for event in stage.machine.received[:fired]
                    if isinstance(event, OperationCompleted)
                    and isinstance(event.outcome, GetDataResult)
                ]
                assert b"%d" % round_ not in before
        finally:
            await elsewhere(client.stop)


async def test_a_watch_fires_once_whoever_shares_it(connect: str) -> None:
    """Two machines of a session watch one znode: each hears once of it."""
    async with Stage(connect) as stage:
        second = Recorder()
        stage.session.attach(second)
        second.request(GetChildren("/brokers/ids", watch=True))
        await stage.do(*[GetChildren("/brokers/ids", watch=True)] * 3)
        await stage.until(lambda: second.outcome(1) is not None)
        await stage.do(Create("/brokers/ids/1", b""), Create("/brokers/ids/2", b""))
        fired = WatchFired("/brokers/ids", WatchKind.CHILDREN)
        for machine in (stage.machine, second):
            assert [event for event in machine.received if isinstance(event, WatchFired)] == [fired]


async def test_who_may_not_yet_take_part_waits(connect: str) -> None:
    """A machine behind a gate hears of the session when the gate opens, and nothing before."""
    async with Stage(connect) as stage:
        gate: list[bool] = []
        second = Recorder()
        stage.session.attach(second, gate=lambda: bool(gate))
        await stage.do(GetData("/"))
        assert second.received == []
        gate.append(True)
        await stage.do(GetData("/"))
        assert second.received == stage.machine.received[:1]


async def test_a_lost_connection_leaves_outcomes_unknown(make_ensemble: MakeEnsemble) -> None:
    """Operations in flight are unknown, then the machine hears that it is cut off; what it asks for
    meanwhile is unknown too; the session continues, with what it owns, when the server returns."""
    server = (await asyncio.to_thread(make_ensemble)).server(1)
    # A server that has just started may leave a handshake unanswered. kazoo gives each address its
    # share of the session's time, so that with the address twice it asks again in time.
    connect = f"{server.address},{server.address}/lost"
    async with Stage(connect, timeout_s=20.0) as stage:
        await stage.do(Create("/mine", b"", ephemeral=True))
        await elsewhere(server.kill)
        await stage.until(lambda: stage.has_received(Disconnected))
        assert await stage.do(GetData("/mine"), SetData("/mine", b"", 0)) == [
            OutcomeUnknown(),
            OutcomeUnknown(),
        ]
        await elsewhere(server.start)
        await stage.until(lambda: stage.has_received(Reconnected))
        (mine,) = await stage.do(GetData("/mine"))
        assert isinstance(mine, GetDataResult)
        assert not stage.has_received(SessionLost)


async def test_an_expired_session_is_reported(connect: str) -> None:
    """First cut off, then lost, then a new session, which owns nothing of the old one."""
    async with Stage(connect) as stage:
        await stage.do(Create("/mine", b"", ephemeral=True))
        first = stage.machine.received[0]
        assert isinstance(first, SessionStarted)
        stage.machine.received.clear()
        assert stage.session.client_id is not None
        await asyncio.to_thread(expire, connect, stage.session.client_id)
        await stage.until(lambda: stage.has_received(SessionStarted))
        # It may find the session once more before it is closed under it.
        *cuts, lost, started = stage.machine.received
        turns = [Disconnected(), Reconnected()] * len(cuts)
        assert cuts == turns[: len(cuts)]
        assert (cuts[-1], lost) == (Disconnected(), SessionLost())
        assert isinstance(started, SessionStarted)
        assert started.session_id != first.session_id
        assert await stage.do(Exists("/mine")) == [NoNode()]


async def test_an_exit_ends_the_session(connect: str) -> None:
    """Nothing of the machine stays in ZooKeeper, and who asks it something is told of its end."""
    stage = Stage(connect)
    async with stage:
        await stage.do(Create("/mine", b"", ephemeral=True))
        answer = await stage.session.request(stage.seat, ApiVersions())
        assert isinstance(answer, FeaturesResponse)
        stage.machine.next = [ExitProcess(3, "enough")]
        await stage.until(lambda: bool(stage.exits))
        assert stage.exits == [(3, "enough")]
        with pytest.raises(MachineExitedError):
            await stage.session.request(stage.seat, ApiVersions())
    client = await asyncio.to_thread(other, connect)
    assert client.exists("/mine") is None
    await elsewhere(client.stop)


async def test_no_ensemble_is_one_clear_line() -> None:
    """Nobody listens there."""
    stage = Stage("127.0.0.1:1")
    with pytest.raises(
        ZookeeperUnavailableError, match=r"no ZooKeeper server is reached at 127\.0\.0\.1:1"
    ):
        await stage.session.open(0.5)
