"""What an answer about one znode means: events, and what is to be read after it."""

from collections.abc import Iterable

from streams.zookeeper.asks import (
    Absent,
    Ask,
    Data,
    Failed,
    Forbidden,
    Names,
    Operation,
    Outcome,
    Pace,
    There,
)
from streams.zookeeper.paths import Kind, Target, listed
from streams.zookeeper.reads import Reads
from streams.zookeeper.record import Output, Record
from streams.zookeeper.troubles import Troubles


class Follower:
    """Takes answers about single targets, whatever the observer is about at the time."""

    def __init__(self, reads: Reads, record: Record, troubles: Troubles, pace: Pace) -> None:
        self._reads = reads
        self._record = record
        self._troubles = troubles
        self._pace = pace

    def take(self, ask: Ask, outcome: Outcome, now_ms: int, seen_ms: int) -> list[Output]:
        """What an answer means; raises `BehindError` if it is older than what is known."""
        target = ask.target
        match outcome:
            case Data():
                return self._read(target, outcome, seen_ms)
            case Names(names):
                self._troubles.mended(target)
                self._reads.read(target)
                return self._gone(self._reads.listed(target, names), seen_ms)
            case There():
                self._reads.again(target)
            case Absent():
                return self._absent(ask, seen_ms)
            case Forbidden():
                return self._forbidden(target, now_ms, seen_ms)
            case Failed(reason):
                self._troubles.failed(target, reason, now_ms, self._pace.retry_ms)
        return []

    def _read(self, target: Target, answer: Data, seen_ms: int) -> list[Output]:
        if self._troubles.mended(target):
            self._record.allowed(target.path)
        said = self._record.read(target.path, answer.data, answer.stat, seen_ms)
        self._reads.read(target)
        return said

    def _gone(self, targets: Iterable[Target], seen_ms: int) -> list[Output]:
        said: list[Output] = []
        for target in targets:
            self._troubles.mended(target)
            if target.kind is Kind.DATA:
                said += self._record.gone(target.path, seen_ms)
        return said

    def _absent(self, ask: Ask, seen_ms: int) -> list[Output]:
        target = ask.target
        self._troubles.mended(target)
        if listed(target):
            return self._gone(self._reads.drop(target), seen_ms)
        if target.kind is Kind.DATA:
            said = self._record.gone(target.path, seen_ms)
        else:
            said = self._gone(self._reads.listed(target, ()), seen_ms)
        if ask.operation is not Operation.EXISTS:
            # Only this leaves a watch on what is not there.
            self._reads.again(target, Operation.EXISTS)
            return said
        self._reads.read(target)
        return said

    def _forbidden(self, target: Target, now_ms: int, seen_ms: int) -> list[Output]:
        """Not even a watch may be left there: it is tried again, and what was known stays."""
        path = target.path
        new = self._troubles.forbidden(target, now_ms, self._pace.forbidden_retry_ms)
        self._reads.read(target)
        for inner in self._reads.below(target):
            self._reads.want(inner)
        if not new:
            return []
        said = self._record.forbidden(path, seen_ms) if target.kind is Kind.DATA else []
        reason = f"reading {path} is forbidden: give READ on it to the login in use"
        return [*said, self._record.dead_letter(f"znode {path}", reason, b"", seen_ms)]
