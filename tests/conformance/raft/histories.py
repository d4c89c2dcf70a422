"""Histories by chance: what happens to a voter, chosen by what our own voter does.

A history is a list of steps as the harness reads them, each with what our voter did. Requests and
answers are mostly what a quorum would send, and sometimes what it never would.
"""

from base64 import b64encode
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from featurewatch.reference.kraft.machines.replicas import text_of
from featurewatch.reference.kraft.machines.requests import AskVersions
from featurewatch.reference.kraft.machines.states import State
from tests.conformance.raft.chance import Chance
from tests.conformance.raft.ours import OurVoter, Request
from tests.conformance.raft.setting import CLUSTER, endpoint

STEPS: Final = 40
_ANSWER_WITHIN_MS: Final = 1_999
"""Less than the request timeout: what takes longer has failed (``machines.protocol``)."""


@dataclass(frozen=True)
class History:
    """A history: the question to the harness, and what our voter did after each step."""

    question: dict[str, Any]
    seen: list[dict[str, Any]]
    names: list[str]
    """What each step is, with the class of the request that arrives or is answered."""
    voter: OurVoter


def history(seed: int, release: str) -> History:
    """The history of a seed."""
    return _Author(Random(f"raft/{seed}"), release).written()


class _Author(Chance):
    """Writes one history."""

    def __init__(self, chance: Random, release: str) -> None:
        super().__init__(chance, release)
        self.steps: list[list[Any]] = []
        self.seen: list[dict[str, Any]] = []
        self.names: list[str] = []

    def written(self) -> History:
        self.ours.now_ms = 1_000_000
        self._step(["start"])
        for _ in range(STEPS):
            if self.ours.halted:
                break
            self._step(self._event())
        setting, stored = self.setting, self.setting.stored
        voted = None if stored is None else stored.voted
        question = {
            "me": setting.me,
            "port": setting.listener.port,
            "snapshots": [
                [at.offset, at.epoch, _text(data)] for at, data in setting.snapshots().items()
            ],
            "directory": text_of(setting.directory),
            "cluster": CLUSTER,
            "voters": []
            if setting.is_formatted
            else [[one, endpoint(one).host, endpoint(one).port] for one in setting.voters],
            "bootstrap": [["", one.host, one.port] for one in setting.bootstrap],
            "retry_backoff_ms": setting.retry_backoff_ms,
            "versions": {str(key): version for key, version in self.ours.versions.items()},
            "state": None
            if stored is None
            else [
                stored.epoch,
                stored.leader_id,
                -1 if voted is None else voted.id,
                text_of(None if voted is None else voted.directory),
            ],
            "log": _text(setting.batches()),
            "steps": self.steps,
        }
        return History(question, self.seen, self.names, self.ours)

    def _step(self, event: list[Any]) -> None:
        """Performs an event with our voter, and writes it down."""
        draw = self.chance.randrange(1 << 20)
        self.ours.draws.draw = draw
        kind, *values = event
        self.names.append(kind)
        written: list[Any] = []
        if kind == "start":
            self.ours.start()
        elif kind == "tick":
            self.ours.now_ms += values[0]
            self.ours.tick()
        elif kind == "ask":
            self.names[-1] = f"ask {type(values[0]).__name__} version {values[1]}"
            key, version, body = self.ours.ask(*values)
            written = [key, version, _text(body)]
        elif kind == "answer":
            request, answer = values
            self.names[-1] = f"answer {type(request.send.request).__name__}"
            version, found = self.ours.answer(request, answer)
            written = [request.number, version, None if found is None else _text(found)]
        elif kind == "append":
            self.ours.append(values[0])
            written = [[_text(value) for value in values[0]]]
        elif kind == "snapshot":
            at, data, trims = values
            self.ours.snapshot(at, data, trims=trims)
            written = [[at.offset, at.epoch, _text(data), trims]]
        elif kind == "resign":
            self.ours.resign()
        self.steps.append([self.ours.now_ms, draw, kind, *written])
        self.seen.append(self.ours.observation())

    # -- events ------------------------------------------------------------------------------------

    def _event(self) -> list[Any]:
        chance, voter = self.chance, self.ours.voter
        waiting = [one for one in self.ours.requests if not one.is_answered]
        is_leader = voter.state is State.LEADER
        kinds = ["tick"] * 4 + ["ask"] * 4 + ["answer"] * (6 if waiting else 0)
        kinds += ["append", "append", "ask", "ask"] if is_leader else []
        kinds += ["ask"] * 8 if is_leader and self.setting.grows else []
        roll = chance.random()
        if roll < 0.02:
            return ["start"]
        if roll < 0.03 and is_leader:
            return ["resign"]
        if roll < 0.08 and (taken := self.snapshot()) is not None:
            return ["snapshot", *taken]
        kind = chance.choice(kinds)
        if kind == "tick":
            return self._tick(waiting)
        if kind == "answer":
            new = [one for one in waiting if isinstance(one.send.request, AskVersions)]
            request = chance.choice(new or waiting)
            return ["answer", request, self.answer(request)]
        if kind == "append":
            return ["append", [b"v"] * chance.randint(1, 3)]
        arriving = self.request()
        return ["ask", arriving, self.version_of(arriving)]

    def _tick(self, waiting: list[Request]) -> list[Any]:
        chance, voter, now = self.chance, self.ours.voter, self.ours.now_ms
        due = max(1, voter._deadline_ms - now)
        wanted = chance.choice(
            (chance.randint(1, 60), 50, 100, 500, 1000, 1500, 2000, due, due, due - 1, due + 1)
        )
        if waiting:
            oldest = min(waiting, key=lambda one: one.sent_ms)
            left = oldest.sent_ms + _ANSWER_WITHIN_MS - now
            if left <= 0:
                return ["answer", oldest, None]
            wanted = min(wanted, left)
        return ["tick", min(max(1, wanted), 5_000)]


def _text(data: bytes) -> str:
    return b64encode(data).decode()
