"""Which znodes are wanted, what is to be read next, and what of it is under way."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from streams.zookeeper.asks import Operation
from streams.zookeeper.paths import Kind, Target, below


def first_step(target: Target) -> Operation:
    """How a target is read."""
    return Operation.GET if target.kind is Kind.DATA else Operation.LIST


@dataclass(slots=True)
class _Wanted:
    step: Operation
    sweep: int
    queued: bool = False
    asked: int = 0
    """The token under which it is being read."""
    dirty: bool = False
    """A watch fired while the target was being read: what is answered may be old."""
    names: dict[str, Target] = field(default_factory=dict)
    """What is wanted below a directory."""


class Reads:
    """The wanted targets. A sweep reads all of them, beginning with those that it is given."""

    def __init__(self) -> None:
        self._wanted: dict[Target, _Wanted] = {}
        self._queue: deque[Target] = deque()
        self._unread: set[Target] = set()
        self._sweep = 0
        self._asked = 0

    def __contains__(self, target: Target) -> bool:
        return target in self._wanted

    @property
    def swept(self) -> bool:
        """Whether everything was read once since the sweep began."""
        return not self._unread

    @property
    def idle(self) -> bool:
        """Whether nothing is to be read and nothing is under way."""
        return not self._queue and not self._asked

    def begin(self, targets: Iterable[Target]) -> None:
        """Begins a sweep: what was under way is forgotten, what is wanted is wanted still."""
        self._sweep += 1
        self._queue.clear()
        self._unread.clear()
        self._asked = 0
        for wanted in self._wanted.values():
            wanted.queued = wanted.dirty = False
            wanted.asked = 0
        for target in targets:
            self.want(target)

    def want(self, target: Target) -> None:
        """Reads a target once in this sweep."""
        wanted = self._wanted.get(target)
        if wanted is None:
            wanted = self._wanted[target] = _Wanted(first_step(target), self._sweep)
        elif wanted.sweep == self._sweep:
            return
        wanted.sweep = self._sweep
        self._unread.add(target)
        self._put(target, wanted, first_step(target))

    def again(self, target: Target, step: Operation | None = None) -> None:
        """Reads a target again, at once or, if that is under way, after it."""
        wanted = self._wanted.get(target)
        if wanted is None:
            return
        if wanted.asked:
            wanted.dirty = True
        else:
            self._put(target, wanted, step or first_step(target))

    def next(self, token: int) -> tuple[Target, Operation] | None:
        """What to read now, if anything; it is under way as ``token`` until `answered`."""
        while self._queue:
            target = self._queue.popleft()
            wanted = self._wanted.get(target)
            if wanted is not None and wanted.queued:
                wanted.queued, wanted.asked = False, token
                self._asked += 1
                return target, wanted.step
        return None

    def answered(self, target: Target, token: int) -> bool:
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

    def read(self, target: Target) -> None:
        """The answer was conclusive, though a watch may have fired since."""
        self._unread.discard(target)

    def listed(self, directory: Target, names: Iterable[str]) -> Iterator[Target]:
        """Takes the names below a directory; gives the targets that are no longer wanted."""
        wanted = self._wanted[directory]
        before, wanted.names = wanted.names, {}
        for name in names:
            target = before.pop(name, None) or below(directory.path, name)
            wanted.names[name] = target
            self.want(target)
        for target in before.values():
            yield from self.drop(target)

    def below(self, directory: Target) -> Iterable[Target]:
        """What is wanted below a directory."""
        return list(self._wanted[directory].names.values())

    def drop(self, target: Target) -> Iterator[Target]:
        """Wants a target, and what is below it, no longer; gives each of them."""
        wanted = self._wanted.pop(target, None)
        if wanted is None:
            return
        self._asked -= wanted.asked > 0
        self._unread.discard(target)
        yield target
        for inner in wanted.names.values():
            yield from self.drop(inner)

    def _put(self, target: Target, wanted: _Wanted, step: Operation) -> None:
        wanted.step = step
        if not wanted.queued:
            wanted.queued = True
            self._queue.append(target)
