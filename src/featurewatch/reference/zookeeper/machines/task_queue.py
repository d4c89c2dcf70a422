"""Runs tasks one at a time: the event thread of a controller or broker, without a thread.

A task is a generator that yields operations and is sent their outcomes. One task runs to its end
before the next begins, so no other task of this machine acts between its reads and its writes
(KIP-584: one thread handles updates and joins).
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import Final, TypeVar

from featurewatch.reference.zookeeper.machines.protocol import Effect, Token, ZookeeperRequest
from featurewatch.reference.zookeeper.machines.zookeeper import (
    Exists,
    GetChildren,
    GetData,
    Operation,
    OperationResult,
    OutcomeUnknown,
)

_T = TypeVar("_T")

_READS: Final = (GetData, Exists, GetChildren)

Task = Generator[tuple[Operation, ...], tuple[OperationResult, ...], _T]
"""Yields operations that are sent together, and receives their outcomes in the same order."""


def perform(operation: Operation) -> Task[OperationResult]:
    """Performs one operation of a task: ``outcome = yield from perform(GetData(path))``."""
    (outcome,) = yield (operation,)
    return outcome


class TaskQueue:
    """Runs tasks in the order in which they were added.

    If the connection is lost during reads, all reads of that step are repeated after the reconnect,
    completed ones too, because their watches are lost. A lost write gives its task `OutcomeUnknown`
    after the reconnect, because only the task can find out what happened to it.
    """

    def __init__(self, emit: Callable[[Effect], None]) -> None:
        self._emit = emit
        self._tasks: deque[Task[None]] = deque()
        self._current: Task[None] | None = None
        self._operations: tuple[Operation, ...] = ()
        self._outcomes: list[OperationResult | None] = []
        self._waiting: dict[Token, int] = {}
        self._token: Token = 0
        self._connected = False
        self._is_stalled = False

    @property
    def busy(self) -> bool:
        """Whether a task is running."""
        return self._current is not None

    def add(self, task: Task[None]) -> None:
        """Appends a task and runs it when all others have ended."""
        self._tasks.append(task)
        if self._current is None:
            self._run(None)

    def on_connected(self) -> None:
        """Resumes the current task; a server is reachable (again)."""
        self._connected = True
        self.retry()

    def on_disconnected(self) -> None:
        """Completes all operations in flight as unknown; no server is reachable."""
        self._connected = False
        for token in [*self._waiting]:
            self.on_completed(token, OutcomeUnknown())

    def cancel_all(self) -> None:
        """Closes all tasks, because the session has expired."""
        current, self._current = self._current, None
        self._tasks.clear()
        self._waiting.clear()
        self._is_stalled = self._connected = False
        if current is not None:
            current.close()

    def on_completed(self, token: Token, outcome: OperationResult) -> None:
        """Records an outcome; the task resumes when all of its step are there.

        Tokens of earlier steps are ignored.
        """
        index = self._waiting.pop(token, None)
        if index is None:
            return
        self._outcomes[index] = outcome
        if self._waiting:
            return
        if any(isinstance(result, OutcomeUnknown) for result in self._outcomes):
            self._is_stalled = True
        else:
            self._deliver()

    def retry(self) -> None:
        """Repeats or resumes a stalled step, if a server is reachable."""
        if not self._is_stalled or not self._connected:
            return
        self._is_stalled = False
        has_results = any(result is not None for result in self._outcomes)
        if has_results and not all(isinstance(result, _READS) for result in self._operations):
            self._deliver()
            return
        self._outcomes = [None] * len(self._operations)
        self._send(range(len(self._operations)))

    def _deliver(self) -> None:
        self._run(tuple(outcome for outcome in self._outcomes if outcome is not None))

    def _run(self, outcomes: tuple[OperationResult, ...] | None) -> None:
        """Runs the current task and those after it until one waits for an outcome."""
        while True:
            if self._current is None:
                if not self._tasks:
                    return
                self._current, outcomes = self._tasks.popleft(), None
            try:
                operations = (
                    next(self._current) if outcomes is None else self._current.send(outcomes)
                )
            except StopIteration:
                self._current = None
                continue
            except BaseException:
                self._current = None  # a task with a fault of its own does not block the others
                raise
            outcomes = ()
            if operations:
                self._operations = operations
                self._outcomes = [None] * len(operations)
                self._is_stalled = not self._connected
                if self._connected:
                    self._send(range(len(operations)))
                return

    def _send(self, indexes: Iterable[int]) -> None:
        for index in indexes:
            self._token += 1
            self._waiting[self._token] = index
            self._emit(ZookeeperRequest(self._token, self._operations[index]))
