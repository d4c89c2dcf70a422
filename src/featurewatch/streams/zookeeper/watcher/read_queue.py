"""The wanted znodes: which is read next, and which reads are pending."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from featurewatch.streams.zookeeper.paths import TargetKind, WatchTarget, child_target
from featurewatch.streams.zookeeper.watcher.requests import ReadOperation


def first_operation(target: WatchTarget) -> ReadOperation:
    """How a target is read."""
    return ReadOperation.GET if target.kind is TargetKind.DATA else ReadOperation.LIST


@dataclass(slots=True)
class _QueuedTarget:
    operation: ReadOperation
    sweep: int
    queued: bool = False
    pending_token: int = 0
    """The token of its pending read; 0: none."""
    dirty: bool = False
    """A watch triggered while the read was pending: its response may be old."""
    names: dict[str, WatchTarget] = field(default_factory=dict)
    """The wanted targets below a directory, by name."""


class ReadQueue:
    """The wanted targets. A sweep reads all of them, beginning with the given ones."""

    def __init__(self) -> None:
        self._wanted: dict[WatchTarget, _QueuedTarget] = {}
        self._queue: deque[WatchTarget] = deque()
        self._unread: set[WatchTarget] = set()
        self._sweep = 0
        self._pending_count = 0

    def __contains__(self, target: WatchTarget) -> bool:
        return target in self._wanted

    @property
    def sweep_complete(self) -> bool:
        """Whether everything was read once since the sweep began."""
        return not self._unread

    @property
    def idle(self) -> bool:
        """Whether no read is queued and none is pending."""
        return not self._queue and not self._pending_count

    def start_sweep(self, targets: Iterable[WatchTarget]) -> None:
        """Begin a sweep: pending reads are forgotten, wanted targets stay wanted."""
        self._sweep += 1
        self._queue.clear()
        self._unread.clear()
        self._pending_count = 0
        for queued in self._wanted.values():
            queued.queued = queued.dirty = False
            queued.pending_token = 0
        for target in targets:
            self.add(target)

    def add(self, target: WatchTarget) -> None:
        """Read a target once in this sweep."""
        queued = self._wanted.get(target)
        if queued is None:
            queued = self._wanted[target] = _QueuedTarget(first_operation(target), self._sweep)
        elif queued.sweep == self._sweep:
            return
        queued.sweep = self._sweep
        self._unread.add(target)
        self._put(target, queued, first_operation(target))

    def requeue(self, target: WatchTarget, operation: ReadOperation | None = None) -> None:
        """Read a target again, now or after its pending read."""
        queued = self._wanted.get(target)
        if queued is None:
            return
        if queued.pending_token:
            queued.dirty = True
        else:
            self._put(target, queued, operation or first_operation(target))

    def next(self, token: int) -> tuple[WatchTarget, ReadOperation] | None:
        """The target to read now, if any; the read is pending as ``token`` until `complete`."""
        while self._queue:
            target = self._queue.popleft()
            queued = self._wanted.get(target)
            if queued is not None and queued.queued:
                queued.queued, queued.pending_token = False, token
                self._pending_count += 1
                return target, queued.operation
        return None

    def complete(self, target: WatchTarget, token: int) -> bool:
        """A response arrived; returns whether its read was still pending."""
        queued = self._wanted.get(target)
        if queued is None or queued.pending_token != token:
            return False
        self._pending_count -= 1
        queued.pending_token = 0
        if queued.dirty:
            queued.dirty = False
            self._put(target, queued, first_operation(target))
        return True

    def read(self, target: WatchTarget) -> None:
        """The target was read, though a watch may have triggered since."""
        self._unread.discard(target)

    def listed(self, directory: WatchTarget, names: Iterable[str]) -> Iterator[WatchTarget]:
        """Set the names below a directory; yields the targets that are no longer wanted."""
        queued = self._wanted[directory]
        before, queued.names = queued.names, {}
        for name in names:
            target = before.pop(name, None) or child_target(directory.path, name)
            queued.names[name] = target
            self.add(target)
        for target in before.values():
            yield from self.drop(target)

    def below(self, directory: WatchTarget) -> Iterable[WatchTarget]:
        """The wanted targets below a directory."""
        return list(self._wanted[directory].names.values())

    def drop(self, target: WatchTarget) -> Iterator[WatchTarget]:
        """Stop wanting a target and everything below it; yields each of them."""
        queued = self._wanted.pop(target, None)
        if queued is None:
            return
        self._pending_count -= queued.pending_token > 0
        self._unread.discard(target)
        yield target
        for inner in queued.names.values():
            yield from self.drop(inner)

    def _put(self, target: WatchTarget, queued: _QueuedTarget, operation: ReadOperation) -> None:
        queued.operation = operation
        if not queued.queued:
            queued.queued = True
            self._queue.append(target)
