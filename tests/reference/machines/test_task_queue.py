"""Tasks run one after the other, whatever happens to the connection."""

from typing import Any

from featurewatch.reference.machines.protocol import Effect, ZookeeperRequest
from featurewatch.reference.machines.task_queue import Task, TaskQueue, perform
from featurewatch.reference.machines.zookeeper import (
    Create,
    GetData,
    NoNode,
    OperationDone,
    OutcomeUnknown,
)


class Rig:
    """A serial that is connected, and what it asked for."""

    def __init__(self) -> None:
        self.requests: list[ZookeeperRequest] = []
        self.paths: list[str] = []
        self.done: list[Any] = []
        self.serial = TaskQueue(self._emit)
        self.serial.connected()

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
        """A task whose reads go out together."""
        self.done.append((yield tuple(GetData(path, watch=True) for path in paths)))


def test_the_next_begins_when_the_last_has_ended() -> None:
    """Never between."""
    rig = Rig()
    rig.serial.add(rig.reader("/a"))
    rig.serial.add(rig.reader("/b"))
    assert rig.paths == ["/a"]
    assert rig.serial.busy
    rig.serial.answered(rig.requests[0].token, NoNode())
    assert rig.paths == ["/a", "/b"]
    rig.serial.answered(rig.requests[1].token, NoNode())
    assert not rig.serial.busy


def test_a_thousand_tasks_without_an_operation_take_no_depth() -> None:
    """They run in a loop."""
    rig = Rig()

    def nothing() -> Task[None]:
        rig.done.append(1)
        yield from ()

    rig.serial.add(rig.reader("/a"))
    for _ in range(5000):
        rig.serial.add(nothing())
    rig.serial.answered(rig.requests[0].token, NoNode())
    assert len(rig.done) == 5001


def test_lost_reads_are_asked_again_with_those_beside_them() -> None:
    """Whose watches the lost connection took; an answer to the first attempt is of the past."""
    rig = Rig()
    rig.serial.add(rig.both("/a", "/b"))
    first, second = rig.requests
    rig.serial.answered(first.token, NoNode())
    rig.serial.answered(second.token, OutcomeUnknown())
    rig.serial.disconnected()
    assert len(rig.requests) == 2
    rig.serial.connected()
    assert rig.paths == ["/a", "/b", "/a", "/b"]
    rig.serial.answered(first.token, OperationDone())
    for again in rig.requests[2:]:
        rig.serial.answered(again.token, NoNode())
    assert rig.done == [(NoNode(), NoNode())]


def test_a_lost_write_is_told_when_a_server_is_reached_again() -> None:
    """And is never repeated behind the task's back."""
    rig = Rig()
    rig.serial.add(rig.writer("/a"))
    rig.serial.disconnected()
    rig.serial.retry()
    assert rig.done == []
    rig.serial.connected()
    assert rig.done == [OutcomeUnknown()]
    assert rig.paths == ["/a"]


def test_what_is_asked_without_a_connection_waits_for_it() -> None:
    """Writes too: they were never sent."""
    rig = Rig()
    rig.serial.disconnected()
    rig.serial.add(rig.writer("/a"))
    assert rig.paths == []
    rig.serial.connected()
    assert rig.paths == ["/a"]
    rig.serial.answered(rig.requests[0].token, OperationDone())
    assert rig.done == [OperationDone()]


def test_a_lost_session_ends_all_tasks() -> None:
    """Later answers reach nobody."""
    rig = Rig()
    rig.serial.add(rig.reader("/a"))
    rig.serial.add(rig.reader("/b"))
    rig.serial.cancel_all()
    rig.serial.connected()
    rig.serial.answered(rig.requests[0].token, NoNode())
    assert (rig.paths, rig.done, rig.serial.busy) == (["/a"], [], False)
