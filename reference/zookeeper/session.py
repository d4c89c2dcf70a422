"""Machines on a real ZooKeeper ensemble: what they ask for is done, and they are told in order.

One session carries one or several machines of one node (its broker, its candidate for the
controller), as in Kafka. Kazoo runs in threads of its own; everything it says is handed to one
asyncio loop, in the order in which it came from the server, and only that loop drives machines.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from kazoo.exceptions import KazooException
from kazoo.protocol.states import KazooState, WatchedEvent

from featurewatch.reference.machines.encoding import BROKER_IDS
from featurewatch.reference.machines.protocol import (
    Disconnected,
    Effect,
    Event,
    ExitProcess,
    Machine,
    OperationCompleted,
    Reconnected,
    RequestReceived,
    SendResponse,
    SendUpdateMetadata,
    SessionLost,
    SessionStarted,
    Tick,
    Token,
    WatchFired,
    WriteLog,
    ZookeeperRequest,
)
from featurewatch.reference.machines.requests import Request, Response
from featurewatch.reference.machines.zookeeper import (
    Create,
    Exists,
    GetChildren,
    GetData,
    NoNode,
    Operation,
    OperationResult,
    OutcomeUnknown,
)
from featurewatch.reference.zookeeper.client import kazoo_client, monotonic_wall_clock
from featurewatch.reference.zookeeper.operations import WATCH_KINDS, outcome, request
from featurewatch.reference.zookeeper.slots import (
    MachineExitedError,
    MachineSlot,
    SlotToken,
    ZookeeperUnavailableError,
)
from featurewatch.reference.zookeeper.watches import WatchRegistry

TICK_S: Final = 0.1

_log = logging.getLogger("reference")


class MachineSession:
    """One ZooKeeper session at a time, and the machines on it.

    ``on_exit`` is called once, with the code and the reason, when a machine exits: the session is
    closed then. ``on_step`` is called after each stretch of events, ``on_tell`` with what a machine
    sends to a broker. ``clock`` gives milliseconds.
    """

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_s: float = 6.0,
        name: str = "reference",
        on_exit: Callable[[int, str], None],
        on_step: Callable[[], None] = lambda: None,
        on_tell: Callable[[SendUpdateMetadata], None] | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.connect = connect
        self.name = name
        self._on_exit = on_exit
        self._on_step = on_step
        self._on_tell = on_tell
        self._clock = clock or monotonic_wall_clock()
        self._client = kazoo_client(connect, session_timeout_s)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._seats: list[MachineSlot] = []
        self._events: deque[tuple[MachineSlot, Event]] = deque()
        self._pumping = False
        self._open = False
        self._ended = False
        self._request_id = 0
        self._session_id: int | None = None
        """The session that the machines know of."""
        self._connected = False
        """What the loop was told; ``_up`` is what kazoo's thread knows, a moment earlier."""
        self._up = threading.Event()
        self._ticker: asyncio.TimerHandle | None = None
        self._reads: dict[Operation, list[SlotToken]] = {}
        """Reads under way, sent after the last write: who asks for one too, shares its answer."""
        self._watches: WatchRegistry[MachineSlot] = WatchRegistry()

    # -- for the node --

    @property
    def client_id(self) -> tuple[int, bytes] | None:
        """The id and the password of the session; none: there is none."""
        known: tuple[int, bytes] | None = self._client.client_id
        return known

    async def open(self, timeout_s: float = 15.0) -> None:
        """Connects, makes the parents of the brokers' znodes, and starts the machines.

        Raises:
            EnsembleError: if no server is reached in time, or it refuses.
        """
        self._loop = asyncio.get_running_loop()
        self._client.add_listener(self._state_changed)
        try:
            # Not start(): it warns of a chroot that is not there yet.
            if not await asyncio.to_thread(self._client.start_async().wait, timeout_s):
                await self._close_client()
                raise ZookeeperUnavailableError(
                    f"no ZooKeeper server is reached at {self.connect} in {timeout_s:g} s: "
                    "check the connect string"
                )
            await asyncio.to_thread(self._client.ensure_path, BROKER_IDS)
        except KazooException as error:
            await self._close_client()
            raise ZookeeperUnavailableError(
                f"{BROKER_IDS} cannot be made at {self.connect}: ZooKeeper says "
                f"{type(error).__name__}: check the chroot and its rights"
            ) from None
        self._open = True
        self._tick()
        self._told(self._client.state, self._client.client_id)

    def attach(self, machine: Machine, gate: Callable[[], bool] = lambda: True) -> MachineSlot:
        """Puts a machine on the session."""
        seat = MachineSlot(machine, gate)
        self._seats.append(seat)
        if self._connected:
            self._begin()
            self._pump()
        return seat

    def request(self, slot: MachineSlot, asked: Request) -> "asyncio.Future[Response]":
        """A client's request; the answer to come raises `MachineExitedError` if the machine ends
        first."""
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        if self._ended:
            future.set_exception(MachineExitedError(f"{self.name} has ended"))
            return future
        self._request_id += 1
        slot.asked[self._request_id] = future
        self._events.append((slot, RequestReceived(self._request_id, asked)))
        self._pump()
        return future

    def deliver(self, slot: MachineSlot, event: Event) -> None:
        """Something that a machine hears from elsewhere, if it has a session."""
        if slot.started:
            self._events.append((slot, event))
            self._pump()

    async def close(self) -> None:
        """Ends the machines without a word, and the session with its ephemeral znodes."""
        self._end()
        await self._close_client()

    # -- from kazoo, in its thread --

    def _state_changed(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            self._up.set()
        else:
            self._up.clear()
        self._hand(self._told, state, self._client.client_id)

    def _answered(self, places: list[SlotToken], operation: Operation, result: Any) -> None:
        self._hand(self._take, places, operation, outcome(self._client, operation, result))

    def _watched(self, event: WatchedEvent) -> None:
        self._hand(self._fired, event)

    def _hand(self, function: Callable[..., None], *args: Any) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *args)

    # -- in the loop --

    def _told(self, state: str, client_id: tuple[int, bytes] | None) -> None:
        if self._ended or not self._open:
            return
        if state == KazooState.CONNECTED and client_id is not None:
            if self._connected:
                return
            self._connected = True
            if self._session_id == client_id[0]:
                self._tell_all(Reconnected())
            else:
                self._forget_session()
                self._session_id = client_id[0]
            self._begin()
        else:
            if self._connected:
                self._connected = False
                self._disconnect()
            if state == KazooState.LOST:
                self._forget_session()
        self._pump()

    def _disconnect(self) -> None:
        for seat in self._seats:
            for token in sorted(seat.under_way):
                self._events.append((seat, OperationCompleted(token, OutcomeUnknown())))
            seat.under_way.clear()
        self._reads.clear()
        self._watches = WatchRegistry()
        self._tell_all(Disconnected())

    def _forget_session(self) -> None:
        self._session_id = None
        self._tell_all(SessionLost())
        for seat in self._seats:
            seat.started = False

    def _begin(self) -> None:
        """Tells of the session those who may know and do not yet."""
        if not self._connected or self._session_id is None:
            return
        for seat in self._seats:
            if not seat.started and seat.gate():
                seat.started = True
                self._events.append((seat, SessionStarted(self._session_id)))

    def _tell_all(self, event: Event) -> None:
        self._events.extend((seat, event) for seat in self._seats if seat.started)

    def _take(self, places: list[SlotToken], operation: Operation, result: OperationResult) -> None:
        if self._reads.get(operation) is places:
            del self._reads[operation]
        for seat, token in places:
            if token not in seat.under_way:  # answered when the connection was lost
                continue
            if isinstance(result, NoNode) and isinstance(operation, Create):
                self._make_parents(places, operation)
                return
            self._watches.add(seat, operation, result)
            seat.under_way.discard(token)
            self._events.append((seat, OperationCompleted(token, result)))
        self._pump()

    def _make_parents(self, places: list[SlotToken], operation: Create) -> None:
        parent = operation.path.rpartition("/")[0] or "/"

        def made(result: Any) -> None:
            if result.exception is not None:
                self._answered(places, operation, result)
            else:
                self._hand(self._send, *places[0], operation)

        self._client.ensure_path_async(parent).rawlink(made)

    def _fired(self, event: WatchedEvent) -> None:
        kind = WATCH_KINDS.get(event.type)
        if kind is None or not self._connected or self._ended:
            return
        for seat in self._watches.fire(event.path, kind):
            self._events.append((seat, WatchFired(event.path, kind)))
        self._pump()

    def _tick(self) -> None:
        if self._ended:
            return
        self._tell_all(Tick())
        self._pump()
        self._ticker = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _pump(self) -> None:
        """Gives machines their events, one at a time, until there are none."""
        if self._pumping:
            return
        self._pumping = True
        try:
            while self._events and not self._ended:
                seat, event = self._events.popleft()
                for effect in seat.machine.receive(event, int(self._clock())):
                    self._do(seat, effect)
                if not self._events:
                    self._begin()
        finally:
            self._pumping = False
        if not self._ended:
            self._on_step()

    def _do(self, slot: MachineSlot, effect: Effect) -> None:
        match effect:
            case ZookeeperRequest(token, operation):
                slot.under_way.add(token)
                self._send(slot, token, operation)
            case SendResponse(request_id, response):
                future = slot.asked.pop(request_id)
                if not future.done():
                    future.set_result(response)
            case WriteLog(line, warning):
                _log.log(logging.WARNING if warning else logging.INFO, "%s: %s", self.name, line)
            case SendUpdateMetadata():
                if self._on_tell is not None:
                    self._on_tell(effect)
            case ExitProcess(code, reason):
                if not self._ended:
                    self._end()
                    self._on_exit(code, reason)

    def _send(self, slot: MachineSlot, token: Token, operation: Operation) -> None:
        if token not in slot.under_way:
            return
        # Kazoo would keep it for a later connection, where nobody expects it any more.
        if not self._connected or not self._up.is_set():
            slot.under_way.discard(token)
            self._events.append((slot, OperationCompleted(token, OutcomeUnknown())))
            return
        if isinstance(operation, GetData | Exists | GetChildren):
            if (shared := self._reads.get(operation)) is not None:
                shared.append((slot, token))
                return
            places = self._reads[operation] = [(slot, token)]
        else:
            self._reads.clear()
            places = [(slot, token)]
        self._client.handler.send(
            partial(request, self._client, operation, self._watched),
            partial(self._answered, places, operation),
        )

    def _end(self) -> None:
        self._ended = True
        if self._ticker is not None:
            self._ticker.cancel()
        for seat in self._seats:
            seat.end(self.name)

    async def _close_client(self) -> None:
        await asyncio.to_thread(self._client.stop)
        await asyncio.to_thread(self._client.close)
