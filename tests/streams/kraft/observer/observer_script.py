"""A scripted quorum for the observer: a text table of questions, answers and outputs.

A row is ``question | answer | outputs``. Questions: ``a 5@2 e3 w500`` asks node ``a`` for what
follows offset 5 of epoch 2 in leader epoch 3 and waits 500 ms, ``a snap 9@2+100 e3`` asks for a
snapshot from byte 100. Answers: ``ok hw=4 3-4@2``, an error's name, each with ``leader=2@5`` and
``at 2=b`` (endpoints), ``div=4@1``, ``snap=9@2``, ``start=3``, ``v=17``, ``cut=3`` (bytes off the
end), ``bytes=2048`` (that many meaningless ones); ``part=0+100/200 of 9@2`` for a snapshot;
``gone`` (no answer) and ``hopeless`` (none, and our fault). Outputs: ``commit 0-3``, ``lost 0-8``,
``reset 2-8``, ``bytes 9@2+0``, ``whole 9@2``; and what holds afterwards: ``following``,
``behind``, ``trouble words``. Pauses are waited out; ``pause >=50`` in the outputs checks the last.
"""

import re

from featurewatch.kafka.address import Address
from featurewatch.streams.kraft.observer import requests
from featurewatch.streams.kraft.observer.observer import Observer
from featurewatch.streams.kraft.observer.states import (
    Backoff,
    CommittedBatches,
    MissingOffsets,
    ObserverOutput,
    ObserverTiming,
    SnapshotBytes,
)
from featurewatch.streams.kraft.records.batch import scan_batches
from featurewatch.streams.types import NO_CHECKSUM, LeaderAndEpoch, OffsetAndEpoch
from tests.streams.kraft.log_bytes import log

ERRORS = {
    name: value
    for name, value in vars(requests).items()
    if name.isupper() and isinstance(value, int) and name != "NONE"
}


def node(name: str) -> Address:
    """The address of a scripted node."""
    return Address(name, 9093)


def nodes(names: str) -> tuple[Address, ...]:
    """The addresses of several, one letter each."""
    return tuple(node(name) for name in names)


def place(text: str) -> OffsetAndEpoch:
    """``5@2``."""
    offset, _, epoch = text.partition("@")
    return OffsetAndEpoch(int(offset), int(epoch))


def spell_request(ask: requests.ObserverRequest) -> str:
    """A question as the table has it."""
    if isinstance(ask, requests.FetchRequest):
        at = f"{ask.position.offset}@{ask.position.epoch}"
        return f"{ask.to.host} {at} e{ask.epoch} w{ask.max_wait_ms}"
    snapshot = f"{ask.snapshot.offset}@{ask.snapshot.epoch}"
    return f"{ask.to.host} snap {snapshot}+{ask.position} e{ask.epoch}"


def spell_output(output: ObserverOutput) -> str:
    """An output as the table has it."""
    match output:
        case CommittedBatches(batches):
            return f"commit {batches[0].base_offset}-{batches[-1].last_offset}"
        case MissingOffsets(first, last, _, reset):
            return f"{'reset' if reset else 'lost'} {first}-{last}"
        case SnapshotBytes(snapshot, position, _, last):
            spelled = f"{snapshot.offset}@{snapshot.epoch}"
            return f"whole {spelled}" if last else f"bytes {spelled}+{position}"


def parse_response(
    text: str, ask: requests.ObserverRequest
) -> requests.ObserverResponse | requests.RequestFailure:
    """The answer that the table spells."""
    if text.startswith(("gone", "hopeless")):
        return requests.RequestFailure(f"{ask.to} is down", permanent=text.startswith("hopeless"))
    options = dict(re.findall(r"(\w+)=(\S+)", text))
    error = ERRORS.get(text.split()[0], 0)
    position = place(options["leader"]) if "leader" in options else None
    leader = LeaderAndEpoch(position.offset, position.epoch) if position else LeaderAndEpoch(-1, -1)
    endpoints = {int(id_): node(name) for id_, name in re.findall(r"at (\d+)=(\w+)", text)}
    if isinstance(ask, requests.FetchSnapshotRequest):
        match = re.search(r"part=(\d+)\+(\d+)/(\d+) of (\S+)", text)
        if not match:
            return requests.FetchSnapshotResponse(error, leader, endpoints)
        at, length, size = (int(match[i]) for i in (1, 2, 3))
        data = bytes(length)
        return requests.FetchSnapshotResponse(
            error, leader, endpoints, place(match[4]), size, at, data
        )
    records = log(" ".join(re.findall(r"(?<![=\d])\b\d+(?:-\d+)?@\d+\b", _plain(text))))
    records = records[: len(records) - int(options.get("cut", 0))]
    return requests.FetchResponse(
        error=error,
        version=int(options.get("v", 17)),
        leader=leader,
        endpoints=endpoints,
        high_watermark=int(options.get("hw", -1)),
        log_start=int(options.get("start", -1)),
        diverging=place(options["div"]) if "div" in options else None,
        snapshot=place(options["snap"]) if "snap" in options else None,
        records=records or bytes(int(options.get("bytes", 0))),
    )


def _plain(text: str) -> str:
    return re.sub(r"\w+=\S+", "", text)


CLUSTER = "k3nkSGPhQsiT8EDDBw8qVg"


class Script:
    """Plays a table against an observer, with its own clock."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.now_ms = 1000
        self.waited_ms = 0

    def next_request(self) -> requests.ObserverRequest:
        """The next question, after waiting out pauses."""
        self.waited_ms = 0
        while isinstance(step := self.observer.next_action(self.now_ms), Backoff):
            assert step.ms > 0
            self.waited_ms += step.ms
            self.now_ms += step.ms
        return step

    def reply(self, text: str, ask: requests.ObserverRequest) -> list[ObserverOutput]:
        """Give the spelled answer."""
        answer = parse_response(text, ask)
        if isinstance(answer, requests.RequestFailure):
            self.observer.on_failure(answer, self.now_ms)
            return []
        return self.observer.on_response(answer, self.now_ms)

    def play(self, table: str) -> None:
        """Play all rows; the first that differs fails with its text."""
        for row in filter(None, (line.strip() for line in table.splitlines())):
            question, answer, expected = (part.strip() for part in row.split("|"))
            request = self.next_request()
            assert spell_request(request) == question, row
            outputs = [spell_output(output) for output in self.reply(answer, request)]
            wanted = [part.strip() for part in expected.split(",") if part.strip()]
            lines = [part for part in wanted if not self._holds(part, row)]
            assert outputs == lines, row

    def _holds(self, part: str, row: str) -> bool:
        word, _, rest = part.partition(" ")
        if word == "trouble":
            line = (
                self.observer.progress.stall_reason.message
                if self.observer.progress.stall_reason
                else "none"
            )
            assert rest in line, f"{row}: {line}"
        elif word == "pause":
            assert self.waited_ms >= int(rest.removeprefix(">=")), f"{row}: {self.waited_ms}"
        elif word in ("following", "behind"):
            assert self.observer.progress.caught_up == (word == "following"), row
        else:
            return False
        return True


def script(
    at: str = "0@0", bootstrap: str = "abc", pace: ObserverTiming | None = None, after: str = ""
) -> Script:
    """A script for an observer that begins at a place, which follows the batch ``after``."""
    pace = pace or ObserverTiming()
    checksum = scan_batches(log(after)).batches[0].checksum if after else NO_CHECKSUM
    return Script(Observer(nodes(bootstrap), place(at), CLUSTER, lambda: 1.0, pace, checksum))
