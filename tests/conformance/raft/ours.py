"""Our voter in the same world of events as Kafka's: what it does after each event, as Kafka would
say it."""

from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from random import Random
from typing import Any

from featurewatch.reference.kraft.machines.batches import read_batches
from featurewatch.reference.kraft.machines.log import Log
from featurewatch.reference.kraft.machines.protocol import (
    AnswerReceived,
    Effect,
    Event,
    Flush,
    Flushed,
    Halt,
    Persist,
    Propose,
    Proposed,
    QuorumState,
    Reply,
    RequestReceived,
    Resign,
    Send,
    SnapshotTaken,
    Tick,
    WriteLog,
)
from featurewatch.reference.kraft.machines.replicas import ReplicaKey, VoterSet
from featurewatch.reference.kraft.machines.requests import RaftAnswer, RaftRequest
from featurewatch.reference.kraft.machines.rules import rules_of
from featurewatch.reference.kraft.machines.states import State
from featurewatch.reference.kraft.machines.voter import Voter, VoterSettings
from featurewatch.streams.types import LOG_START, OffsetAndEpoch
from tests.conformance.raft.forms import (
    answer_bytes,
    answer_in,
    key_of,
    request_bytes,
    request_in,
    versions_of,
)
from tests.conformance.raft.setting import CLUSTER, Setting

_MOST_TICKS = 50
_MAX_FETCH_BYTES = 1 << 20
_MAX_FETCH_BYTES_OF_39 = 8 << 20
"""``MAX_FETCH_SIZE_BYTES``; later releases have a setting."""


class Draws(Random):
    """All numbers drawn within a step follow from one number of the history, as in the harness."""

    draw = 0

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        """The number of the step, within the bound."""
        return self.draw % start


@dataclass
class Request:
    """A request that the voter has sent; ``number`` counts them over the history."""

    number: int
    sent_ms: int
    send: Send
    is_answered: bool = False


@dataclass
class OurVoter:
    """Our voter, of which an event is observed until it does nothing more."""

    setting: Setting
    release: str

    def __post_init__(self) -> None:
        major, minor, _ = self.release.split(".")
        self.line = int(major), int(minor)
        self.versions = versions_of(self.release)
        self.draws = Draws()
        self.now_ms = 0
        self.requests: list[Request] = []
        self.halted = ""
        self._stored = self.setting.stored or QuorumState()
        self._disk = read_batches(self.setting.batches())
        self._kinds: dict[int, tuple[int, int]] = {}
        self._asked = 0
        self._sends: list[Send] = []
        self._replies: list[Reply] = []
        self._appended = -2

    # -- events ------------------------------------------------------------------------------------

    def start(self) -> None:
        """The process starts, or starts again, with what is on disk."""
        setting, log = self.setting, self._log()
        settings = VoterSettings(
            ReplicaKey(setting.me, setting.directory),
            CLUSTER,
            (setting.listener,),
            setting.bootstrap,
            retry_backoff_ms=setting.retry_backoff_ms,
            max_fetch_bytes=_MAX_FETCH_BYTES_OF_39 if self.line == (3, 9) else _MAX_FETCH_BYTES,
            rules=rules_of(self.line),
        )
        self.voter = Voter(settings, log, self._stored, self.draws, self.now_ms)
        self._tokens: dict[int, RaftRequest] = {}
        for request in self.requests:
            request.is_answered = True
        self._observe(Tick())

    def _log(self) -> Log:
        """The log as the disk has it: of the setting at first, then that of the last life."""
        setting, begun = self.setting, self.voter.log if hasattr(self, "voter") else None
        log = Log(VoterSet.of(()) if setting.is_formatted else setting.voter_set())
        snapshots = setting.snapshots() if begun is None else begun.snapshots
        if setting.is_formatted and LOG_START in setting.snapshots():
            log.begin_with(setting.snapshots()[LOG_START])
        start = setting.start if begun is None else begun.start
        if start.offset > 0:
            log.install(start, snapshots[start])
        log.append(self._disk if begun is None else begun.batches)
        for at, data in snapshots.items():
            if at.offset > 0 and at not in log.snapshots:
                log.add_snapshot(at, data, trims=False)
        return log

    def tick(self) -> None:
        """Time has passed."""
        self._observe(Tick())

    def ask(self, request: RaftRequest, version: int) -> tuple[int, int, bytes]:
        """A request arrives in a version; returns its key, version and body."""
        key = key_of(request)
        body = request_bytes(request, version)
        self._kinds[self._asked] = (key, version)
        number, self._asked = self._asked, self._asked + 1
        self._observe(RequestReceived(number, request_in(key, version, body)))
        return key, version, body

    def answer(self, request: Request, answer: RaftAnswer | None) -> tuple[int, bytes | None]:
        """A request is answered; returns the version and the body."""
        request.is_answered = True
        key = key_of(request.send.request)
        version = self.versions[key]
        body = None if answer is None else answer_bytes(key, version, answer)
        read = None if body is None else answer_in(key, version, body)
        self._observe(AnswerReceived(request.send.number, read))
        return version, body

    def append(self, values: Sequence[bytes]) -> None:
        """The leader is given records."""
        self._observe(Propose(0, tuple(values)))

    def snapshot(self, at: OffsetAndEpoch, data: bytes, *, trims: bool) -> None:
        """A snapshot of the log was taken."""
        self._observe(SnapshotTaken(at, data, trims))

    def resign(self) -> None:
        """The leader is told to resign."""
        self._observe(Resign())

    def _observe(self, event: Event) -> None:
        self._perform(event)
        for _ in range(_MOST_TICKS):
            if self.halted or not self._perform(Tick()):
                return
        raise AssertionError("still busy")

    def _perform(self, event: Event) -> bool:
        """Performs an event and what follows from it; True if it did anything."""
        effects: list[Effect] = self.voter.receive(event, self.now_ms)
        has_done = False
        while effects:
            effect = effects.pop(0)
            has_done = has_done or not isinstance(effect, WriteLog)
            match effect:
                case Flush(offset, epoch):
                    effects += self.voter.receive(Flushed(offset, epoch), self.now_ms)
                case Persist(state):
                    self._stored = _kept(state, self.voter.log)
                case Send():
                    self._sends.append(effect)
                case Reply():
                    self._replies.append(effect)
                case Proposed(_, last_offset):
                    self._appended = last_offset
                case Halt(reason):
                    self.halted = reason
                case _:
                    pass
        return has_done

    # -- what is seen ------------------------------------------------------------------------------

    def observation(self) -> dict[str, Any]:
        """What it did since the last observation, and where it is."""
        voter, log = self.voter, self.voter.log
        sends = sorted(self._sends, key=lambda send: (send.node_id, key_of(send.request)))
        first = len(self.requests)
        for number, send in enumerate(sends, first):
            self.requests.append(Request(number, self.now_ms, send))
        state = State.UNATTACHED if voter.state is State.VOTED else voter.state
        seen = {
            "sends": [self._seen_send(send) for send in sends],
            "replies": sorted(map(self._seen_reply, self._replies), key=itemgetter(0)),
            "state": str(state),
            "epoch": voter.epoch,
            "leader": voter.leader_id,
            "appended": self._appended,
            "end": log.end,
            "voters_at": log.voters_offset,
            "is_removed": not voter.is_voter,
            "committed": max(0, log.high_watermark),
            "stored": [
                self._stored.epoch,
                self._stored.leader_id,
                -1 if self._stored.voted is None else self._stored.voted.id,
            ],
            "epochs": epochs_of(log),
            "start": log.start.offset,
            "snapshots": [
                [at.offset, at.epoch, len(data)]
                for at, data in sorted(log.snapshots.items())
                if at.offset > 0
            ],
        }
        if self.halted:
            seen = {"halted": self.halted}
        self._sends, self._replies, self._appended = [], [], -2
        return seen

    def _seen_send(self, send: Send) -> tuple[Any, ...]:
        key = key_of(send.request)
        version = self.versions[key]
        request = request_in(key, version, request_bytes(send.request, version))
        return send.node_id, send.endpoint.port, key, request

    def _seen_reply(self, reply: Reply) -> tuple[Any, ...]:
        key, version = self._kinds[reply.request_id]
        return reply.request_id, answer_in(key, version, answer_bytes(key, version, reply.answer))

    def read_kafka(self, seen: dict[str, Any]) -> dict[str, Any]:
        """Kafka's observation in the same form."""
        return seen | {
            "sends": [
                (
                    one["to"],
                    one["port"],
                    one["key"],
                    request_in(one["key"], self.versions[one["key"]], decoded(one["body"])),
                )
                for one in seen["sends"]
            ],
            "replies": [
                (one["number"], answer_in(*self._kinds[one["number"]], decoded(one["body"])))
                for one in sorted(seen["replies"], key=itemgetter("number"))
            ],
        }


def decoded(text: str) -> bytes:
    """Bytes as JSON has them."""
    return b64decode(text)


def epochs_of(log: Log) -> list[list[int]]:
    """The epochs in a log and their first offsets."""
    found: list[list[int]] = []
    for batch in log.batches:
        if not found or found[-1][0] < batch.epoch:
            found.append([batch.epoch, batch.base])
    return found


def _kept(state: QuorumState, log: Log) -> QuorumState:
    """What the file of a state has: before kraft.version 1 no directory (`formats`)."""
    if state.voted is None or log.kraft_version > 0:
        return state
    return replace(state, voted=ReplicaKey(state.voted.id))
