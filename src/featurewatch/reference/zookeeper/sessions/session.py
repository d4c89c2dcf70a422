"""Drives machines on a real ZooKeeper ensemble: sends their requests and delivers events in order.

One session carries all machines of one node (its broker and its candidate for the controller), as
in Kafka. Kazoo runs in its own threads. All its events are passed to one asyncio loop, in the
order in which the server sent them, and only that loop drives machines.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from kazoo.exceptions import KazooException
from kazoo.protocol.states import KazooState, WatchedEvent

from featurewatch.reference.zookeeper.machines.encoding import BROKER_IDS
from featurewatch.reference.zookeeper.machines.protocol import (
    BrokerEffect,
    Disconnected,
    Effect,
    Event,
    ExitProcess,
    Machine,
    OperationCompleted,
    Reconnected,
    RequestReceived,
    SendResponse,
    SessionLost,
    SessionStarted,
    Tick,
    Token,
    WatchFired,
    WriteLog,
    ZookeeperRequest,
)
from featurewatch.reference.zookeeper.machines.requests import Request, Response, TopicMessage
from featurewatch.reference.zookeeper.machines.zookeeper import (
    Create,
    Exists,
    GetChildren,
    GetData,
    NoNode,
    Operation,
    OperationResult,
    OutcomeUnknown,
)
from featurewatch.reference.zookeeper.sessions.client import kazoo_client, monotonic_wall_clock
from featurewatch.reference.zookeeper.sessions.operations import (
    WATCH_KINDS,
    operation_result,
    request,
)
from featurewatch.reference.zookeeper.sessions.slots import (
    MachineExitedError,
    MachineSlot,
    SlotToken,
    ZookeeperUnavailableError,
)
from featurewatch.reference.zookeeper.sessions.watches import WatchRegistry

TICK_S: Final = 0.1

_log = logging.getLogger("featurewatch.reference.zookeeper")


class MachineSession:
    """One ZooKeeper session at a time, and the machines on it.

    ``on_exit`` is called once, with the code and the reason, when a machine exits; the machines
    have been ended then. ``on_step`` is called after each batch of events, ``on_broker_effect``
    with each message from a machine to a broker. ``credential`` is ``user:password`` for
    ZooKeeper's digest scheme. ``paths`` are znodes that are created where they are missing.
    ``clock`` returns milliseconds.
    """

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_s: float = 6.0,
        name: str = "reference",
        on_exit: Callable[[int, str], None],
        on_step: Callable[[], None] = lambda: None,
        on_broker_effect: Callable[[BrokerEffect], None] | None = None,
        credential: str | None = None,
        paths: Sequence[str] = (BROKER_IDS,),
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.connect = connect
        self.name = name
        self._on_exit = on_exit
        self._on_step = on_step
        self._on_broker_effect = on_broker_effect
        self._paths = paths
        self._clock = clock or monotonic_wall_clock()
        self._client = kazoo_client(connect, session_timeout_s, credential)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slots: list[MachineSlot] = []
        self._events: deque[tuple[MachineSlot, Event]] = deque()
        self._pumping = False
        self._open = False
        self._ended = False
        self._request_id = 0
        self._session_id: int | None = None
        """The session that the machines were notified of."""
        self._connected = False
        """The state in the loop; kazoo's thread sets ``_up`` a moment earlier."""
        self._up = threading.Event()
        self._ticker: asyncio.TimerHandle | None = None
        self._reads: dict[Operation, list[SlotToken]] = {}
        """Reads in flight, sent after the last write; an equal read shares the response."""
        self._watches: WatchRegistry[MachineSlot] = WatchRegistry()

    # -- for the node --

    @property
    def client_id(self) -> tuple[int, bytes] | None:
        """The id and the password of the session; None if there is no session."""
        client_id: tuple[int, bytes] | None = self._client.client_id
        return client_id

    async def open(self, timeout_s: float = 15.0) -> None:
        """Connects, creates the parents of the brokers' znodes, and starts the machines.

        Raises:
            ZookeeperUnavailableError: if no server is reached within ``timeout_s``, or it rejects
                the znodes.
        """
        self._loop = asyncio.get_running_loop()
        self._client.add_listener(self._on_kazoo_state)
        try:
            # Not start(), which warns of a chroot that does not exist yet.
            if not await asyncio.to_thread(self._client.start_async().wait, timeout_s):
                await self._close_client()
                raise ZookeeperUnavailableError(
                    f"no ZooKeeper server is reached at {self.connect} in {timeout_s:g} s: "
                    "check the connect string"
                )
            for path in self._paths:
                await asyncio.to_thread(self._client.ensure_path, path)
        except KazooException as error:
            await self._close_client()
            raise ZookeeperUnavailableError(
                f"{', '.join(self._paths)} cannot be created at {self.connect}: ZooKeeper returned "
                f"{type(error).__name__}: check the chroot and its permissions"
            ) from None
        self._open = True
        self._tick()
        self._on_state(self._client.state, self._client.client_id)

    def attach(self, machine: Machine, gate: Callable[[], bool] = lambda: True) -> MachineSlot:
        """Adds a machine to the session; it starts once ``gate`` returns true."""
        slot = MachineSlot(machine, gate)
        self._slots.append(slot)
        if self._connected:
            self._start_machines()
            self._pump()
        return slot

    def request(
        self, slot: MachineSlot, request: Request | TopicMessage
    ) -> "asyncio.Future[Response | TopicMessage]":
        """Passes a client's request to a machine; the future gets the response.

        The future raises `MachineExitedError` if the machine ends first.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Response | TopicMessage] = loop.create_future()
        if self._ended:
            future.set_exception(MachineExitedError(f"{self.name} has ended"))
            return future
        self._request_id += 1
        slot.requests[self._request_id] = future
        self._events.append((slot, RequestReceived(self._request_id, request)))
        self._pump()
        return future

    def deliver(self, slot: MachineSlot, event: Event) -> None:
        """Passes an event from outside ZooKeeper to a machine; ignored if it is not started."""
        if slot.started:
            self._events.append((slot, event))
            self._pump()

    def deliver_soon(self, slot: MachineSlot, event: Event) -> None:
        """As `deliver`, after the caller has returned to the loop."""
        if not self._ended:
            asyncio.get_running_loop().call_soon(self.deliver, slot, event)

    async def close(self) -> None:
        """Ends the machines without calling ``on_exit``, and the session with its ephemerals."""
        self._end()
        await self._close_client()

    # -- from kazoo, in its thread --

    def _on_kazoo_state(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            self._up.set()
        else:
            self._up.clear()
        self._call_in_loop(self._on_state, state, self._client.client_id)

    def _on_kazoo_result(self, waiters: list[SlotToken], operation: Operation, result: Any) -> None:
        self._call_in_loop(
            self._on_result, waiters, operation, operation_result(self._client, operation, result)
        )

    def _on_kazoo_watch(self, event: WatchedEvent) -> None:
        self._call_in_loop(self._on_watch, event)

    def _call_in_loop(self, function: Callable[..., None], *args: Any) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *args)

    # -- in the loop --

    def _on_state(self, state: str, client_id: tuple[int, bytes] | None) -> None:
        if self._ended or not self._open:
            return
        if state == KazooState.CONNECTED and client_id is not None:
            if self._connected:
                return
            self._connected = True
            if self._session_id == client_id[0]:
                self._broadcast(Reconnected())
            else:
                self._end_session()
                self._session_id = client_id[0]
            self._start_machines()
        else:
            if self._connected:
                self._connected = False
                self._disconnect()
            if state == KazooState.LOST:
                self._end_session()
        self._pump()

    def _disconnect(self) -> None:
        for slot in self._slots:
            for token in sorted(slot.in_flight):
                self._events.append((slot, OperationCompleted(token, OutcomeUnknown())))
            slot.in_flight.clear()
        self._reads.clear()
        self._watches = WatchRegistry()
        self._broadcast(Disconnected())

    def _end_session(self) -> None:
        self._session_id = None
        self._broadcast(SessionLost())
        for slot in self._slots:
            slot.started = False

    def _start_machines(self) -> None:
        """Notifies the machines whose gate is open of the session, unless they were before."""
        if not self._connected or self._session_id is None:
            return
        for slot in self._slots:
            if not slot.started and slot.gate():
                slot.started = True
                self._events.append((slot, SessionStarted(self._session_id)))

    def _broadcast(self, event: Event) -> None:
        self._events.extend((slot, event) for slot in self._slots if slot.started)

    def _on_result(
        self, waiters: list[SlotToken], operation: Operation, result: OperationResult
    ) -> None:
        if self._reads.get(operation) is waiters:
            del self._reads[operation]
        for slot, token in waiters:
            if token not in slot.in_flight:  # completed as unknown when the connection was lost
                continue
            if isinstance(result, NoNode) and isinstance(operation, Create):
                self._make_parents(waiters, operation)
                return
            self._watches.add(slot, operation, result)
            slot.in_flight.discard(token)
            self._events.append((slot, OperationCompleted(token, result)))
        self._pump()

    def _make_parents(self, waiters: list[SlotToken], operation: Create) -> None:
        parent = operation.path.rpartition("/")[0] or "/"

        def on_created(result: Any) -> None:
            if result.exception is not None:
                self._on_kazoo_result(waiters, operation, result)
            else:
                self._call_in_loop(self._send, *waiters[0], operation)

        self._client.ensure_path_async(parent).rawlink(on_created)

    def _on_watch(self, event: WatchedEvent) -> None:
        kind = WATCH_KINDS.get(event.type)
        if kind is None or not self._connected or self._ended:
            return
        for slot in self._watches.fire(event.path, kind):
            self._events.append((slot, WatchFired(event.path, kind)))
        self._pump()

    def _tick(self) -> None:
        if self._ended:
            return
        self._broadcast(Tick())
        self._pump()
        self._ticker = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _pump(self) -> None:
        """Delivers queued events, one at a time, until the queue is empty."""
        if self._pumping:
            return
        self._pumping = True
        try:
            while self._events and not self._ended:
                slot, event = self._events.popleft()
                for effect in slot.machine.receive(event, int(self._clock())):
                    self._perform(slot, effect)
                if not self._events:
                    self._start_machines()
        finally:
            self._pumping = False
        if not self._ended:
            self._on_step()

    def _perform(self, slot: MachineSlot, effect: Effect) -> None:
        match effect:
            case ZookeeperRequest(token, operation):
                slot.in_flight.add(token)
                self._send(slot, token, operation)
            case SendResponse(request_id, response):
                future = slot.requests.pop(request_id)
                if not future.done():
                    future.set_result(response)
            case WriteLog(line, warning):
                _log.log(logging.WARNING if warning else logging.INFO, "%s: %s", self.name, line)
            case BrokerEffect():
                if self._on_broker_effect is not None:
                    self._on_broker_effect(effect)
            case ExitProcess(code, reason):
                if not self._ended:
                    self._end()
                    self._on_exit(code, reason)

    def _send(self, slot: MachineSlot, token: Token, operation: Operation) -> None:
        if token not in slot.in_flight:
            return
        # Kazoo would queue it for a later connection, when no machine waits for it any more.
        if not self._connected or not self._up.is_set():
            slot.in_flight.discard(token)
            self._events.append((slot, OperationCompleted(token, OutcomeUnknown())))
            return
        if isinstance(operation, GetData | Exists | GetChildren):
            if (shared := self._reads.get(operation)) is not None:
                shared.append((slot, token))
                return
            waiters = self._reads[operation] = [(slot, token)]
        else:
            self._reads.clear()
            waiters = [(slot, token)]
        self._client.handler.send(
            partial(request, self._client, operation, self._on_kazoo_watch),
            partial(self._on_kazoo_result, waiters, operation),
        )

    def _end(self) -> None:
        self._ended = True
        if self._ticker is not None:
            self._ticker.cancel()
        for slot in self._slots:
            slot.end(self.name)

    async def _close_client(self) -> None:
        await asyncio.to_thread(self._client.stop)
        await asyncio.to_thread(self._client.close)
