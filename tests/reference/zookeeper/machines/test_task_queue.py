"""Tasks run one after the other, whatever happens to the connection."""

from typing import Any

import pytest

from featurewatch.reference.zookeeper.machines.protocol import Effect, ZookeeperRequest
from featurewatch.reference.zookeeper.machines.task_queue import Task, TaskQueue, perform
from featurewatch.reference.zookeeper.machines.zookeeper import (
    Create,
    GetData,
    NoNode,
    OperationDone,
    OutcomeUnknown,
)


class Rig:
    """A connected task queue, and the operations that it requested."""

    def __init__(self) -> None:
        self.requests: list[ZookeeperRequest] = []
        self.paths: list[str] = []
        self.done: list[Any] = []
        self.tasks = TaskQueue(self._emit)
        self.tasks.on_connected()

    def _emit(self, effect: Effect) -> None:
        assert isinstance(effect, ZookeeperRequest)
        assert isinstance(effect.operation, GetData | Create)
        self.requests.append(effect)
        self.paths.append(effect.operation.path)

    def reader(self, path: str) -> Task[None]:
        """A task that reads once."""
        self.done.append((yield from perform(GetData(path))))

    def writer(self, path: str) -> Task[None]:
        """A task that writes once."""
        self.done.append((yield from perform(Create(path, b""))))

    def both(self, *paths: str) -> Task[None]:
        """A task whose two reads are sent together."""
        self.done.append((yield tuple(GetData(path, watch=True) for path in paths)))


def test_the_next_begins_when_the_last_has_ended() -> None:
    """Tasks never interleave."""
    rig = Rig()
    rig.tasks.add(rig.reader("/a"))
    rig.tasks.add(rig.reader("/b"))
    assert rig.paths == ["/a"]
    assert rig.tasks.busy
    rig.tasks.on_completed(rig.requests[0].token, NoNode())
    assert rig.paths == ["/a", "/b"]
    rig.tasks.on_completed(rig.requests[1].token, NoNode())
    assert not rig.tasks.busy


def test_a_thousand_tasks_without_operations_do_not_recurse() -> None:
    """They run in a loop."""
    rig = Rig()

    def nothing() -> Task[None]:
        rig.done.append(1)
        yield from ()

    rig.tasks.add(rig.reader("/a"))
    for _ in range(5000):
        rig.tasks.add(nothing())
    rig.tasks.on_completed(rig.requests[0].token, NoNode())
    assert len(rig.done) == 5001


def test_lost_reads_are_repeated_with_those_beside_them() -> None:
    """Their watches were lost with the connection; a result of the first attempt is ignored."""
    rig = Rig()
    rig.tasks.add(rig.both("/a", "/b"))
    first, second = rig.requests
    rig.tasks.on_completed(first.token, NoNode())
    rig.tasks.on_completed(second.token, OutcomeUnknown())
    rig.tasks.on_disconnected()
    assert len(rig.requests) == 2
    rig.tasks.on_connected()
    assert rig.paths == ["/a", "/b", "/a", "/b"]
    rig.tasks.on_completed(first.token, OperationDone())
    for request in rig.requests[2:]:
        rig.tasks.on_completed(request.token, NoNode())
    assert rig.done == [(NoNode(), NoNode())]


def test_a_lost_write_completes_after_the_reconnect() -> None:
    """It is never repeated without the task."""
    rig = Rig()
    rig.tasks.add(rig.writer("/a"))
    rig.tasks.on_disconnected()
    rig.tasks.retry()
    assert rig.done == []
    rig.tasks.on_connected()
    assert rig.done == [OutcomeUnknown()]
    assert rig.paths == ["/a"]


def test_operations_without_a_connection_wait_for_it() -> None:
    """Writes wait too, because they were never sent."""
    rig = Rig()
    rig.tasks.on_disconnected()
    rig.tasks.add(rig.writer("/a"))
    assert rig.paths == []
    rig.tasks.on_connected()
    assert rig.paths == ["/a"]
    rig.tasks.on_completed(rig.requests[0].token, OperationDone())
    assert rig.done == [OperationDone()]


def test_a_lost_session_ends_all_tasks() -> None:
    """Later results are ignored."""
    rig = Rig()
    rig.tasks.add(rig.reader("/a"))
    rig.tasks.add(rig.reader("/b"))
    rig.tasks.cancel_all()
    rig.tasks.on_connected()
    rig.tasks.on_completed(rig.requests[0].token, NoNode())
    assert (rig.paths, rig.done, rig.tasks.busy) == (["/a"], [], False)


def test_a_task_with_a_fault_does_not_block_the_others() -> None:
    """The fault is raised, and the next event runs what waits."""
    rig = Rig()

    def faulty() -> Task[None]:
        yield from perform(GetData("/a"))
        raise LookupError("a fault")

    rig.tasks.add(faulty())
    rig.tasks.add(rig.reader("/b"))
    with pytest.raises(LookupError):
        rig.tasks.on_completed(rig.requests[0].token, NoNode())
    rig.tasks.add(rig.reader("/c"))
    assert rig.paths == ["/a", "/b"]
    rig.tasks.on_completed(rig.requests[1].token, NoNode())
    assert rig.paths == ["/a", "/b", "/c"]
