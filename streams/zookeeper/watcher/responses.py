"""What an answer about one znode means: events, and what is to be read after it."""

from collections.abc import Iterable

from featurewatch.streams.zookeeper.paths import TargetKind, WatchTarget, is_listed
from featurewatch.streams.zookeeper.watcher.changes import ChangeRecorder, WatcherEvent
from featurewatch.streams.zookeeper.watcher.failures import ZookeeperFailures
from featurewatch.streams.zookeeper.watcher.read_queue import ReadQueue
from featurewatch.streams.zookeeper.watcher.requests import (
    ReadChildren,
    ReadData,
    ReadExists,
    ReadFailed,
    ReadForbidden,
    ReadOperation,
    ReadRequest,
    ReadResult,
    WatcherTiming,
    ZnodeAbsent,
)


class ResponseHandler:
    """Takes answers about single targets, whatever the observer is about at the time."""

    def __init__(
        self,
        reads: ReadQueue,
        record: ChangeRecorder,
        troubles: ZookeeperFailures,
        pace: WatcherTiming,
    ) -> None:
        self._reads = reads
        self._record = record
        self._troubles = troubles
        self._pace = pace

    def handle(
        self, ask: ReadRequest, outcome: ReadResult, now_ms: int, seen_ms: int
    ) -> list[WatcherEvent]:
        """What an answer means; raises `StaleReadError` if it is older than what is known."""
        target = ask.target
        match outcome:
            case ReadData():
                return self._read(target, outcome, seen_ms)
            case ReadChildren(names):
                self._troubles.mended(target)
                self._reads.read(target)
                return self._gone(self._reads.listed(target, names), seen_ms)
            case ReadExists():
                self._reads.requeue(target)
            case ZnodeAbsent():
                return self._absent(ask, seen_ms)
            case ReadForbidden():
                return self._forbidden(target, now_ms, seen_ms)
            case ReadFailed(reason):
                self._troubles.failed(target, reason, now_ms, self._pace.retry_ms)
        return []

    def _read(self, target: WatchTarget, answer: ReadData, seen_ms: int) -> list[WatcherEvent]:
        if self._troubles.mended(target):
            self._record.allowed(target.path)
        said = self._record.read(target.path, answer.data, answer.stat, seen_ms)
        self._reads.read(target)
        return said

    def _gone(self, targets: Iterable[WatchTarget], seen_ms: int) -> list[WatcherEvent]:
        said: list[WatcherEvent] = []
        for target in targets:
            self._troubles.mended(target)
            if target.kind is TargetKind.DATA:
                said += self._record.gone(target.path, seen_ms)
        return said

    def _absent(self, ask: ReadRequest, seen_ms: int) -> list[WatcherEvent]:
        target = ask.target
        self._troubles.mended(target)
        if is_listed(target):
            return self._gone(self._reads.drop(target), seen_ms)
        if target.kind is TargetKind.DATA:
            said = self._record.gone(target.path, seen_ms)
        else:
            said = self._gone(self._reads.listed(target, ()), seen_ms)
        if ask.operation is not ReadOperation.EXISTS:
            # Only this leaves a watch on what is not there.
            self._reads.requeue(target, ReadOperation.EXISTS)
            return said
        self._reads.read(target)
        return said

    def _forbidden(self, target: WatchTarget, now_ms: int, seen_ms: int) -> list[WatcherEvent]:
        """Not even a watch may be left there: it is tried again, and what was known stays."""
        path = target.path
        new = self._troubles.forbidden(target, now_ms, self._pace.forbidden_retry_ms)
        self._reads.read(target)
        for inner in self._reads.below(target):
            self._reads.add(inner)
        if not new:
            return []
        said = self._record.forbidden(path, seen_ms) if target.kind is TargetKind.DATA else []
        reason = f"reading {path} is forbidden: give READ on it to the login in use"
        return [*said, self._record.dead_letter(f"znode {path}", reason, b"", seen_ms)]
