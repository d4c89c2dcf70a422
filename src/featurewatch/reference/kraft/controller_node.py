"""An asyncio shell around a voter and the metadata controller above it.

It carries events and effects between the two machines (`machines.controller.protocol`), and holds
the requests that wait until their records are committed. A reference, not for production.
"""

import asyncio
import logging
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Final

from featurewatch.reference.kraft.machines.batches import Batch
from featurewatch.reference.kraft.machines.controller.controller import MetadataController
from featurewatch.reference.kraft.machines.controller.errors import failed
from featurewatch.reference.kraft.machines.controller.protocol import (
    Answer,
    Applied,
    ControllerEffect,
    ControllerEvent,
    PeerVersions,
    Register,
    RequestReceived,
    SnapshotLoaded,
)
from featurewatch.reference.kraft.machines.controller.requests import (
    ControllerRegistration,
    ControllerRequest,
    ControllerResponse,
    DescribeClusterResponse,
)
from featurewatch.reference.kraft.machines.controller.settings import Form
from featurewatch.reference.kraft.machines.protocol import (
    BecameLeader,
    Committed,
    Effect,
    Halt,
    InstallSnapshot,
    LostLeadership,
    Propose,
    Proposed,
    Resign,
    SnapshotTaken,
    Tick,
    WriteLog,
)
from featurewatch.reference.kraft.machines.requests import NO_LEADER, REQUEST_TIMED_OUT
from featurewatch.reference.kraft.machines.voter import VoterSettings
from featurewatch.reference.kraft.node import RaftNode
from featurewatch.reference.kraft.storage import Storage
from featurewatch.reference.zookeeper.machines.requests import FeaturesResponse
from featurewatch.streams.types import KRAFT_VERSION

MAX_WAITING: Final = 10_000
"""More requests than this do not wait at once; they are answered with REQUEST_TIMED_OUT."""
MAX_WAIT_S: Final = 60.0
"""No request waits longer; the default of ``request.timeout.ms`` of brokers is half of it."""
_TICK_S: Final = 0.1
_PEERS_S: Final = 1.0
_log = logging.getLogger("featurewatch.reference.kraft")


class ControllerNode:
    """A node of the role ``controller`` that runs; ``watcher`` sees each effect of its voter."""

    def __init__(
        self,
        storage: Storage,
        settings: VoterSettings,
        controller: MetadataController,
        watcher: Callable[[Effect], None] = lambda _: None,
        random: Random | None = None,
    ) -> None:
        self.controller = controller
        is_written = controller.settings.form is Form.KIP_778
        self.raft = RaftNode(
            storage, settings, self._on_effect, random, self, as_written=is_written
        )
        self._watcher = watcher
        self._applied = 0
        local = controller.settings.local
        self._features = FeaturesResponse(
            {str(name): (low, high) for name, (low, high) in local.items()}
        )
        self._request_id = 0
        self._waiting: dict[int, asyncio.Future[ControllerResponse]] = {}

    @property
    def halted(self) -> asyncio.Future[str]:
        """The reason for which the process must end."""
        return self.raft.halted

    async def start(self) -> None:
        """Loads the snapshot at the start of the log, and begins as `RaftNode.start` does.

        Raises:
            OSError: if the port is not available.
        """
        log = self.raft.voter.log
        if log.start in log.snapshots:  # also that of the format, which may have the voters
            self._load(SnapshotLoaded(log.start, log.snapshots[log.start]))
        await self.raft.start()
        self.raft.spawn(self._tick())
        if self.controller.settings.form is Form.KIP_778:
            self.raft.spawn(self._ask_peers())

    async def close(self) -> None:
        """Resigns if it leads, and ends everything."""
        await self.raft.close()

    # -- what the listener asks for ----------------------------------------------------------------

    def features(self) -> FeaturesResponse:
        """The ranges that this controller supports, and the levels that are committed.

        kraft.version is the newest in the log; 0 is left out (``ControllerServer``,
        ``FinalizedFeatures.setFinalizedLevel``).
        """
        level = self.raft.voter.log.kraft_version
        if level == 0:
            return self._features
        finalized = {**self._features.finalized, KRAFT_VERSION: level}
        return replace(self._features, finalized=finalized)

    async def answer(self, request: ControllerRequest, version: int) -> ControllerResponse:
        """Answers a request, as soon as what follows from it is committed."""
        if len(self._waiting) >= MAX_WAITING:
            return failed(request, REQUEST_TIMED_OUT)
        self._request_id += 1
        request_id = self._request_id
        answer: asyncio.Future[ControllerResponse]
        answer = self._waiting[request_id] = asyncio.get_running_loop().create_future()
        try:
            self._receive(RequestReceived(request_id, request, version))
            async with asyncio.timeout(MAX_WAIT_S):
                return await answer
        except TimeoutError:
            return failed(request, REQUEST_TIMED_OUT)
        finally:
            del self._waiting[request_id]

    # -- events ------------------------------------------------------------------------------------

    def _on_effect(self, effect: Effect) -> None:
        """Gives the controller what the voter did."""
        match effect:
            case BecameLeader() | LostLeadership() | Proposed():
                self._receive(effect)
            case Committed(offset):
                self._apply(offset)
            case InstallSnapshot(snapshot, data):
                self._load(SnapshotLoaded(snapshot, data))
            case _:
                pass
        self._watcher(effect)

    def _apply(self, offset: int) -> None:
        log = self.raft.voter.log
        if log.start.offset > self._applied:
            return  # the voter has installed a snapshot, which comes next
        batches = _between(log.batches, self._applied, offset)
        self._applied = offset
        self._receive(Applied(offset, batches))
        self._note_features()

    def _load(self, event: SnapshotLoaded) -> None:
        self._applied = event.snapshot.offset
        self._receive(event)
        self._note_features()

    def _note_features(self) -> None:
        """Remembers the levels, with the epoch that brokers know (``FeaturesPublisher``)."""
        levels = {str(name): int(level) for name, level in self.controller.finalized[0].items()}
        if levels != self._features.finalized:
            self._features = replace(self._features, finalized=levels, epoch=self._applied - 1)

    async def _tick(self) -> None:
        while True:
            self._receive(Tick())
            await asyncio.sleep(_TICK_S)

    async def _ask_peers(self) -> None:
        """Asks the other voters what they support, again and again: at first none registers."""
        known: dict[int, PeerVersions] = {}
        while True:
            for voter in self.raft.voter.log.voters.nodes:
                if voter.key.id == self.raft.voter.me.id:
                    continue
                features = await self.raft.peers.supported(voter.endpoints[0])
                found = PeerVersions(voter.key.id, features or ())
                if features is not None and known.get(voter.key.id) != found:
                    known[voter.key.id] = found
                    self._receive(found)
            await asyncio.sleep(_PEERS_S)

    def _receive(self, event: ControllerEvent) -> None:
        if self.halted.done():
            return
        for effect in self.controller.receive(event, self.raft.now_ms()):
            self._perform(effect)

    # -- effects -----------------------------------------------------------------------------------

    def _perform(self, effect: ControllerEffect) -> None:
        match effect:
            case Propose() | SnapshotTaken() | Resign():
                self.raft.receive(effect)
            case Answer(request_id, response):
                answer = self._waiting.get(request_id)
                if isinstance(response, DescribeClusterResponse) and not response.error_code:
                    # The machine of a follower does not know who leads.
                    response = replace(response, controller_id=self.raft.voter.leader_id)
                if answer is not None and not answer.done():  # else its connection has ended
                    answer.set_result(response)
            case Register(request):
                self.raft.spawn(self._register(request))
            case WriteLog(line, is_warning):
                _log.log(logging.WARNING if is_warning else logging.INFO, "%s", line)
            case Halt(reason):
                self.raft.halt(reason)

    async def _register(self, request: ControllerRegistration) -> None:
        """Sends a registration to the active controller, which may be this one."""
        leader_id = self.raft.voter.leader_id
        if leader_id == self.raft.voter.me.id:
            await self.answer(request, 0)
            return
        leader = self.raft.voter.log.voters.get(leader_id) if leader_id != NO_LEADER else None
        if leader is not None:
            await self.raft.peers.ask_controller(leader.endpoints[0], request)


def _between(batches: list[Batch], start: int, end: int) -> tuple[Batch, ...]:
    """The batches from one offset to another."""
    first = bisect_left(batches, start, key=lambda batch: batch.base)
    return tuple(batches[first : bisect_left(batches, end, key=lambda batch: batch.base)])
