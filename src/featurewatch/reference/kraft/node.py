"""An asyncio shell around a `Voter`: its disk, its listener, its peers and its clock.

It performs the effects of the machine in order, one after the other (`machines.protocol`). A
reference, not for production: there is no TLS, no login and no limit on what it keeps in memory.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine
from random import Random
from typing import Final

from featurewatch.reference.kraft.machines.protocol import (
    AnswerReceived,
    Append,
    Effect,
    Event,
    Flush,
    Flushed,
    Halt,
    InstallSnapshot,
    Persist,
    Propose,
    Proposed,
    Reply,
    RequestReceived,
    Resign,
    Send,
    Tick,
    Truncate,
    WriteLog,
    WriteSnapshot,
)
from featurewatch.reference.kraft.machines.requests import RaftAnswer, RaftRequest
from featurewatch.reference.kraft.machines.states import State
from featurewatch.reference.kraft.machines.voter import Voter, VoterSettings
from featurewatch.reference.kraft.storage import Storage
from featurewatch.reference.kraft.task_set import TaskSet
from featurewatch.reference.kraft.wire.peers import Peers
from featurewatch.reference.kraft.wire.server import MetadataApi, RaftServer
from featurewatch.reference.zookeeper.machines.requests import FeaturesResponse
from featurewatch.streams.types import KRAFT_VERSION

TICK_S: Final = 0.02
_DURABLE: Final = (Persist, Append, Truncate, Flush, WriteSnapshot, InstallSnapshot)
_log = logging.getLogger("featurewatch.reference.kraft")


class NotLeaderError(Exception):
    """Another replica leads, or none does."""


class RaftNode:
    """One replica that runs; ``watcher`` is given each effect when it is performed.

    What applies the log learns of `Committed`, `BecameLeader` and the like by that. ``metadata`` is
    the controller above the voter, which the listener asks.
    """

    def __init__(
        self,
        storage: Storage,
        settings: VoterSettings,
        watcher: Callable[[Effect], None] = lambda _: None,
        random: Random | None = None,
        metadata: MetadataApi | None = None,
        *,
        as_written: bool = False,
    ) -> None:
        self._started = (time.time(), time.monotonic())
        self.voter = Voter(settings, storage.log, storage.state, random or Random(), self.now_ms())
        endpoint = settings.endpoints[0]
        self._storage = storage
        self._watcher = watcher
        self._server = RaftServer(
            self._answer,
            FeaturesResponse({KRAFT_VERSION: settings.kraft_versions}),
            metadata,
            host=endpoint.host,
            port=endpoint.port,
            name=f"replica {settings.me.id}",
            as_written=as_written,
        )
        self.peers = Peers(
            f"raft-client-{settings.me.id}",
            settings.request_timeout_ms / 1000,
            is_kip_778=as_written,
        )
        self._queue: deque[Effect] = deque()
        self._has_effects = asyncio.Event()
        self._request_id = 0
        self._waiting: dict[int, asyncio.Future[RaftAnswer]] = {}
        self._proposed: dict[int, asyncio.Future[int]] = {}
        self._tasks = TaskSet("the replica", self.halt)
        self.halted: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """The reason for which the process must end."""

    def now_ms(self) -> int:
        """The time of day as it was at the start, plus what has passed: it never goes back."""
        wall, monotonic = self._started
        return int((wall + time.monotonic() - monotonic) * 1000)

    async def start(self) -> None:
        """Begins to listen, and to take part in the quorum.

        Raises:
            OSError: if the port is not available.
        """
        await self._server.start()
        self.spawn(self._perform_all())
        self.spawn(self._tick())

    async def close(self) -> None:
        """Resigns if it leads, performs what is queued, and ends everything."""
        if self.voter.state is State.LEADER:
            self.receive(Resign())
            await self._until_resigned()
        await self._tasks.close()
        await self._server.close()
        await self.peers.close()
        self._storage.close()

    async def _until_resigned(self) -> None:
        """Waits until the others know, for as long as an election takes at most."""
        deadline = time.monotonic() + 2 * self.voter.settings.election_timeout_ms / 1000
        while self.voter.state is State.RESIGNED and time.monotonic() < deadline:
            await asyncio.sleep(TICK_S)

    async def propose(self, values: tuple[bytes, ...]) -> int:
        """Appends a batch as the leader; returns the offset of its last record.

        Raises:
            NotLeaderError: if this replica does not lead.
        """
        self._request_id += 1
        token = self._request_id
        self._proposed[token] = asyncio.get_running_loop().create_future()
        self.receive(Propose(token, values))
        last_offset = await self._proposed[token]
        if last_offset < 0:
            raise NotLeaderError
        return last_offset

    def halt(self, reason: str) -> None:
        """Ends the node's work for a reason; `halted` has the first one."""
        if not self.halted.done():
            self.halted.set_result(reason)

    # -- events ------------------------------------------------------------------------------------

    def receive(self, event: Event) -> None:
        """Gives the voter an event; what follows is performed after what was queued before."""
        self._queue.extend(self.voter.receive(event, self.now_ms()))
        if self._queue:
            self._has_effects.set()

    async def _tick(self) -> None:
        while True:
            self.receive(Tick())
            await asyncio.sleep(TICK_S)

    async def _answer(self, request: RaftRequest) -> RaftAnswer:
        self._request_id += 1
        request_id = self._request_id
        answer: asyncio.Future[RaftAnswer] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = answer
        self.receive(RequestReceived(request_id, request))
        return await answer

    async def _send(self, send: Send) -> None:
        answer = await self.peers.ask(send.endpoint, send.request)
        self.receive(AnswerReceived(send.number, answer))

    def spawn(self, work: Coroutine[None, None, None]) -> None:
        """Runs a task until it ends or the node is closed; if it fails, the node is halted."""
        self._tasks.spawn(work)

    # -- effects -----------------------------------------------------------------------------------

    async def _perform_all(self) -> None:
        while True:
            await self._has_effects.wait()
            self._has_effects.clear()
            while self._queue:
                effect = self._queue.popleft()
                if isinstance(effect, _DURABLE):
                    await self._perform_durable([effect, *self._following_durable()])
                else:
                    self._perform(effect)

    def _following_durable(self) -> list[Effect]:
        """The effects on the disk that follow without another between them."""
        found: list[Effect] = []
        while self._queue and isinstance(self._queue[0], _DURABLE):
            found.append(self._queue.popleft())
        return found

    async def _perform_durable(self, effects: list[Effect]) -> None:
        """Performs effects on the disk in a thread; of several flushes in a row one is enough."""
        flushes = [effect for effect in effects if isinstance(effect, Flush)]
        needed = [effect for effect in effects if effect not in flushes[:-1]]
        await asyncio.to_thread(self._write, needed)
        for effect in effects:
            self._watcher(effect)
        for flush in flushes:
            self.receive(Flushed(flush.offset, flush.epoch))

    def _write(self, effects: list[Effect]) -> None:
        for effect in effects:
            self._storage.perform(effect, self.voter.log)

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Send():
                self.spawn(self._send(effect))
            case Reply(request_id, answer):
                waiting = self._waiting.pop(request_id)
                if not waiting.done():  # else its connection has ended
                    waiting.set_result(answer)
            case Proposed(token, last_offset, _):
                proposed = self._proposed.pop(token, None)  # none: that of a controller
                if proposed is not None and not proposed.done():
                    proposed.set_result(last_offset)
            case WriteLog(line, is_warning):
                _log.log(logging.WARNING if is_warning else logging.INFO, "%s", line)
            case Halt(reason):
                self.halt(reason)
            case _:
                pass
        self._watcher(effect)
