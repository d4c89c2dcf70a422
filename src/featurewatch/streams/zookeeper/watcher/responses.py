"""Effects of a response about one znode: events, and further reads."""

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
    """Applies responses about single targets, in whatever state the watcher is."""

    def __init__(
        self,
        reads: ReadQueue,
        changes: ChangeRecorder,
        failures: ZookeeperFailures,
        timing: WatcherTiming,
    ) -> None:
        self._reads = reads
        self._changes = changes
        self._failures = failures
        self._timing = timing

    def handle(
        self, request: ReadRequest, result: ReadResult, now_ms: int, seen_ms: int
    ) -> list[WatcherEvent]:
        """The events of a response; raises `StaleReadError` if it is older than what was read."""
        target = request.target
        match result:
            case ReadData():
                return self._read(target, result, seen_ms)
            case ReadChildren(names):
                self._failures.clear(target)
                self._reads.read(target)
                return self._gone(self._reads.listed(target, names), seen_ms)
            case ReadExists():
                self._reads.requeue(target)
            case ZnodeAbsent():
                return self._absent(request, seen_ms)
            case ReadForbidden():
                return self._forbidden(target, now_ms, seen_ms)
            case ReadFailed(reason):
                self._failures.failed(target, reason, now_ms, self._timing.retry_ms)
        return []

    def _read(self, target: WatchTarget, data: ReadData, seen_ms: int) -> list[WatcherEvent]:
        if self._failures.clear(target):
            self._changes.allowed(target.path)
        events = self._changes.read(target.path, data.data, data.stat, seen_ms)
        self._reads.read(target)
        return events

    def _gone(self, targets: Iterable[WatchTarget], seen_ms: int) -> list[WatcherEvent]:
        events: list[WatcherEvent] = []
        for target in targets:
            self._failures.clear(target)
            if target.kind is TargetKind.DATA:
                events += self._changes.deleted(target.path, seen_ms)
        return events

    def _absent(self, request: ReadRequest, seen_ms: int) -> list[WatcherEvent]:
        target = request.target
        self._failures.clear(target)
        if is_listed(target):
            return self._gone(self._reads.drop(target), seen_ms)
        if target.kind is TargetKind.DATA:
            events = self._changes.deleted(target.path, seen_ms)
        else:
            events = self._gone(self._reads.listed(target, ()), seen_ms)
        if request.operation is not ReadOperation.EXISTS:
            # Only this sets a watch on a znode that does not exist.
            self._reads.requeue(target, ReadOperation.EXISTS)
            return events
        self._reads.read(target)
        return events

    def _forbidden(self, target: WatchTarget, now_ms: int, seen_ms: int) -> list[WatcherEvent]:
        """Not even a watch can be set: it is retried later, and what was read before stays."""
        path = target.path
        is_new = self._failures.forbidden(target, now_ms, self._timing.forbidden_retry_ms)
        self._reads.read(target)
        for inner in self._reads.below(target):
            self._reads.add(inner)
        if not is_new:
            return []
        events = self._changes.forbidden(path, seen_ms) if target.kind is TargetKind.DATA else []
        reason = f"reading {path} is forbidden: give READ on it to the login in use"
        return [*events, self._changes.dead_letter(f"znode {path}", reason, b"", seen_ms)]
