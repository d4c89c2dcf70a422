"""An observer that follows a simulated quorum under random events, and what must hold."""

import random

from featurewatch.streams.kraft.observer.observer import Observer
from featurewatch.streams.kraft.observer.requests import RequestFailure
from featurewatch.streams.kraft.observer.states import (
    Backoff,
    CommittedBatches,
    MissingOffsets,
    ObserverOutput,
    SnapshotBytes,
)
from featurewatch.streams.kraft.records.batch import RecordBatch
from featurewatch.streams.types import LOG_START, NO_CHECKSUM, OffsetAndEpoch
from tests.streams.kraft.observer.simulated_quorum import Quorum

EVENTS = {
    "ask": 12,
    "fail": 1,
    "append": 4,
    "append_apart": 1,
    "replicate": 2,
    "elect": 1,
    "trim": 1,
    "restart": 1,
}
"""The possible actions, and how often they happen."""

VERSIONS = (13, 17, 18)


class Auditor:
    """Knows the truth and checks each output against it."""

    def __init__(self, quorum: Quorum) -> None:
        self.quorum = quorum
        self.next = 0
        self.watermark = -1

    def check(self, observer: Observer, outputs: list[ObserverOutput]) -> None:
        """Offsets follow each other, what is released is committed, the watermark only grows."""
        for output in outputs:
            match output:
                case CommittedBatches(batches):
                    for batch in batches:
                        assert batch.base_offset == self.next
                        entry = (batch.base_offset, batch.last_offset, batch.leader_epoch)
                        assert entry in self.quorum.committed
                        self.next = batch.last_offset + 1
                case MissingOffsets(first, last, _, reset):
                    assert not reset
                    assert first == self.next
                    assert last < self.quorum.watermark
                case SnapshotBytes(snapshot, _, _, last_part):
                    assert snapshot.offset > self.next
                    if last_part:
                        self.next = snapshot.offset
        assert observer.progress.next_position.offset == self.next
        assert self.watermark <= observer.progress.high_watermark <= self.quorum.watermark
        self.watermark = observer.progress.high_watermark


class Run:
    """An observer, a quorum and an auditor, with a clock."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.quorum = Quorum()
        self.auditor = Auditor(self.quorum)
        self.version = VERSIONS[seed % len(VERSIONS)]
        self.now_ms = 0
        self.last: RecordBatch | None = None
        self.observer = self._observer(LOG_START)

    def _observer(self, place: OffsetAndEpoch) -> Observer:
        bootstrap = [node.address for node in self.quorum.nodes]
        is_known = self.last is not None and self.last.last_offset == place.offset - 1
        checksum = self.last.checksum if self.last and is_known else NO_CHECKSUM
        return Observer(bootstrap, place, "simulated", self.random.random, checksum=checksum)

    def event(self, name: str, number: int) -> None:
        """One thing that happens."""
        if name in ("ask", "fail"):
            self._ask(number, lost=name == "fail")
        elif name == "restart":
            # Only what was passed on survives a crash.
            self.observer = self._observer(self.observer.progress.next_position)
            self.auditor.watermark = -1
        elif name == "append":
            self.quorum.append(1 + number % 4)
        else:
            getattr(self.quorum, name)(number)

    def _ask(self, number: int, *, lost: bool) -> None:
        step = self.observer.next_action(self.now_ms)
        if isinstance(step, Backoff):
            self.now_ms += step.ms
            return
        answer = self.quorum.respond(step, self.version, number)
        if lost or answer is None:
            self.observer.on_failure(RequestFailure("lost"), self.now_ms)
            return
        outputs = self.observer.on_response(answer, self.now_ms)
        for output in outputs:
            self.last = output.batches[-1] if isinstance(output, CommittedBatches) else self.last
        self.auditor.check(self.observer, outputs)

    def settle(self) -> None:
        """Nothing goes wrong any more: the observer must catch up."""
        self.quorum.append(1)
        for number in range(3):
            self.quorum.replicate(number)
        for _ in range(300):
            self._ask(0, lost=False)
            if self.observer.progress.caught_up and self.auditor.next == self.quorum.watermark:
                return
        raise AssertionError(f"stuck: {self.observer.progress}")


def play(seed: int) -> None:
    """Plays one history, and lets the observer catch up at its end."""
    run = Run(seed)
    events = run.random.choices(list(EVENTS), list(EVENTS.values()), k=300)
    for event in events:
        run.event(event, run.random.randrange(1000))
    run.settle()
