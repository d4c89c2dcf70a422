"""Which znodes are wanted, what is to be read next, and what of it is under way."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from featurewatch.streams.zookeeper.paths import TargetKind, WatchTarget, child_target
from featurewatch.streams.zookeeper.watcher.requests import ReadOperation


def first_step(target: WatchTarget) -> ReadOperation:
    """How a target is read."""
    return ReadOperation.GET if target.kind is TargetKind.DATA else ReadOperation.LIST


@dataclass(slots=True)
class _QueuedTarget:
    step: ReadOperation
    sweep: int
    queued: bool = False
    asked: int = 0
    """The token under which it is being read."""
    dirty: bool = False
    """A watch fired while the target was being read: what is answered may be old."""
    names: dict[str, WatchTarget] = field(default_factory=dict)
    """What is wanted below a directory."""


class ReadQueue:
    """The wanted targets. A sweep reads all of them, beginning with those that it is given."""

    def __init__(self) -> None:
        self._wanted: dict[WatchTarget, _QueuedTarget] = {}
        self._queue: deque[WatchTarget] = deque()
        self._unread: set[WatchTarget] = set()
        self._sweep = 0
        self._asked = 0

    def __contains__(self, target: WatchTarget) -> bool:
        return target in self._wanted

    @property
    def sweep_complete(self) -> bool:
        """Whether everything was read once since the sweep began."""
        return not self._unread

    @property
    def idle(self) -> bool:
        """Whether nothing is to be read and nothing is under way."""
        return not self._queue and not self._asked

    def start_sweep(self, targets: Iterable[WatchTarget]) -> None:
        """Begins a sweep: what was under way is forgotten, what is wanted is wanted still."""
        self._sweep += 1
        self._queue.clear()
        self._unread.clear()
        self._asked = 0
        for wanted in self._wanted.values():
            wanted.queued = wanted.dirty = False
            wanted.asked = 0
        for target in targets:
            self.add(target)

    def add(self, target: WatchTarget) -> None:
        """Reads a target once in this sweep."""
        wanted = self._wanted.get(target)
        if wanted is None:
            wanted = self._wanted[target] = _QueuedTarget(first_step(target), self._sweep)
        elif wanted.sweep == self._sweep:
            return
        wanted.sweep = self._sweep
        self._unread.add(target)
        self._put(target, wanted, first_step(target))

    def requeue(self, target: WatchTarget, step: ReadOperation | None = None) -> None:
        """Reads a target again, at once or, if that is under way, after it."""
        wanted = self._wanted.get(target)
        if wanted is None:
            return
        if wanted.asked:
            wanted.dirty = True
        else:
            self._put(target, wanted, step or first_step(target))

    def next(self, token: int) -> tuple[WatchTarget, ReadOperation] | None:
        """What to read now, if anything; it is under way as ``token`` until `complete`."""
        while self._queue:
            target = self._queue.popleft()
            wanted = self._wanted.get(target)
            if wanted is not None and wanted.queued:
                wanted.queued, wanted.asked = False, token
                self._asked += 1
                return target, wanted.step
        return None

    def complete(self, target: WatchTarget, token: int) -> bool:
        """Takes note of an answer; whether anybody still waits for it."""
        wanted = self._wanted.get(target)
        if wanted is None or wanted.asked != token:
            return False
        self._asked -= 1
        wanted.asked = 0
        if wanted.dirty:
            wanted.dirty = False
            self._put(target, wanted, first_step(target))
        return True

    def read(self, target: WatchTarget) -> None:
        """The answer was conclusive, though a watch may have fired since."""
        self._unread.discard(target)

    def listed(self, directory: WatchTarget, names: Iterable[str]) -> Iterator[WatchTarget]:
        """Takes the names below a directory; gives the targets that are no longer wanted."""
        wanted = self._wanted[directory]
        before, wanted.names = wanted.names, {}
        for name in names:
            target = before.pop(name, None) or child_target(directory.path, name)
            wanted.names[name] = target
            self.add(target)
        for target in before.values():
            yield from self.drop(target)

    def below(self, directory: WatchTarget) -> Iterable[WatchTarget]:
        """What is wanted below a directory."""
        return list(self._wanted[directory].names.values())

    def drop(self, target: WatchTarget) -> Iterator[WatchTarget]:
        """Wants a target, and what is below it, no longer; gives each of them."""
        wanted = self._wanted.pop(target, None)
        if wanted is None:
            return
        self._asked -= wanted.asked > 0
        self._unread.discard(target)
        yield target
        for inner in wanted.names.values():
            yield from self.drop(inner)

    def _put(self, target: WatchTarget, wanted: _QueuedTarget, step: ReadOperation) -> None:
        wanted.step = step
        if not wanted.queued:
            wanted.queued = True
            self._queue.append(target)
