"""A broker's replica of the metadata log: an observer of the quorum, and the loader above it.

The observer is the quorum's own replica (`Voter`), which is no voter. It keeps its log in memory
and needs no disk: what is flushed is flushed at once. A snapshot of the loader deletes the log
before it, and one of the leader that is torn makes the observer begin again without a log.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from featurewatch.reference.kraft.machines.batches import Batch
from featurewatch.reference.kraft.machines.broker.loader import (
    Loader,
    LoaderEffect,
    SnapshotMade,
    SnapshotRefused,
)
from featurewatch.reference.kraft.machines.broker.protocol import WriteLog
from featurewatch.reference.kraft.machines.broker.settings import BrokerSettings
from featurewatch.reference.kraft.machines.log import Log
from featurewatch.reference.kraft.machines.protocol import (
    AnswerReceived,
    Committed,
    Effect,
    Event,
    Flush,
    Flushed,
    Halt,
    InstallSnapshot,
    QuorumState,
    Send,
    SnapshotTaken,
    Tick,
)
from featurewatch.reference.kraft.machines.replicas import Endpoint, VoterSet
from featurewatch.reference.kraft.machines.requests import NO_LEADER, FetchAnswer
from featurewatch.reference.kraft.machines.voter import Voter, VoterSettings

RETRY_MS: Final = 1_000
"""How long an observer waits after a torn snapshot."""

ObserverEffect = LoaderEffect | Send | Halt


@dataclass(frozen=True, slots=True)
class Quorum:
    """Where an observer finds the quorum: its configured voters, or some of its listeners."""

    voters: VoterSet = field(default_factory=lambda: VoterSet(()))
    bootstrap: tuple[Endpoint, ...] = ()


class Observer:
    """The machine; its shell is that of a `Voter` without a disk: it sends, and gives the time."""

    def __init__(
        self,
        settings: BrokerSettings,
        raft: VoterSettings,
        quorum: Quorum,
        random: Random,
        now_ms: int,
    ) -> None:
        self.loader = Loader(settings)
        self._settings = settings
        self._raft = replace(raft, bootstrap=quorum.bootstrap)
        self._voters = quorum.voters
        self._random = random
        self._high_watermark = 0
        self._numbers = 0
        self._sent: dict[int, int] = {}
        """The numbers by which the current replica knows the requests that are on their way."""
        self._restart_ms: int | None = None
        self._out: list[ObserverEffect] = []
        self._voter = self._new_voter(now_ms)

    def _new_voter(self, now_ms: int) -> Voter:
        return Voter(self._raft, Log(self._voters), QuorumState(), self._random, now_ms)

    @property
    def leader(self) -> Endpoint | None:
        """The listener of the leader, if it is known: of the active controller."""
        view = self._voter.view
        if view.leader_id == NO_LEADER or not view.endpoints:
            return None
        return view.endpoints[0]

    @property
    def kraft_version(self) -> int:
        """The newest kraft.version in its log, or in the snapshot that it begins with."""
        return self._voter.log.kraft_version

    def receive(self, event: Tick | AnswerReceived, now_ms: int) -> list[ObserverEffect]:
        """Processes one event and returns its effects."""
        self._out = []
        match event:
            case AnswerReceived(number, answer):
                of_voter = self._sent.pop(number, None)
                if of_voter is not None:
                    self._note_high_watermark(answer)
                    self._give(AnswerReceived(of_voter, answer), now_ms)
            case Tick() if self._restart_ms is None:
                self._give(event, now_ms)
            case Tick() if now_ms >= (self._restart_ms or 0):
                self._restart_ms = None
                self._sent.clear()
                self._voter = self._new_voter(now_ms)
                self._give(event, now_ms)
        return self._out

    def _note_high_watermark(self, answer: object) -> None:
        """Remembers how far the leader has committed, so that the first image is whole."""
        if isinstance(answer, FetchAnswer) and not answer.error:
            view, mine = answer.view, self._voter
            if (view.epoch, view.leader_id) == (mine.epoch, mine.leader_id):
                self._high_watermark = answer.high_watermark

    def _give(self, event: Event, now_ms: int) -> None:
        if self._restart_ms is not None:
            return
        for effect in self._voter.receive(event, now_ms):
            self._perform(effect, now_ms)

    def _perform(self, effect: Effect, now_ms: int) -> None:
        match effect:
            case Send(number):
                self._numbers += 1
                self._sent[self._numbers] = number
                self._out.append(replace(effect, number=self._numbers))
            case Flush(offset, epoch):
                self._give(Flushed(offset, epoch), now_ms)
            case InstallSnapshot(snapshot, data):
                self._load(self.loader.load(snapshot, data, self._high_watermark), now_ms)
            case Committed(offset):
                self._apply(offset, now_ms)
            case WriteLog() | Halt():
                self._out.append(effect)
            case _:
                pass

    def _apply(self, offset: int, now_ms: int) -> None:
        log, start = self._voter.log, self.loader.next_offset
        if self._restart_ms is None and log.start.offset <= start < offset:
            batches = _between(log.batches, start, offset)
            self._load(self.loader.apply(batches, max(self._high_watermark, offset)), now_ms)

    def _load(self, effects: list[LoaderEffect], now_ms: int) -> None:
        for effect in effects:
            self._out.append(effect)
            match effect:
                case SnapshotMade() if effect.is_periodic:
                    taken = SnapshotTaken(effect.snapshot, effect.data, trims=True)
                    self._give(taken, now_ms)
                case SnapshotRefused():
                    self._restart_ms = now_ms + RETRY_MS
                case _:
                    pass


def _between(batches: Sequence[Batch], start: int, end: int) -> Sequence[Batch]:
    """The batches that reach beyond one offset and end before another."""
    first = bisect_right(batches, start, key=lambda batch: batch.last + 1)
    return batches[first : bisect_right(batches, end, key=lambda batch: batch.last + 1)]
