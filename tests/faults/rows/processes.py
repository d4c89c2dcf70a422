"""Processes that are killed, stopped for longer than a timeout, or run twice."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from featurewatch.stack.process.server import Server
from tests.faults.fault import Fault
from tests.faults.stack import Stack
from tests.processes import Process

STALLED: Final = ("source-stalled",)
BUS_BACK_S: Final = 5.0
"""Time in which featurewatch recovers after the bus has, however long the bus was down."""


@contextmanager
def killed(stack: Stack, *names: str) -> Iterator[None]:
    """featurewatch's own processes, with SIGKILL."""
    victims = [process for process in stack.processes if process.name in names]
    stack.hold(*victims)
    try:
        yield
    finally:
        stack.release(*victims)


@contextmanager
def killed_repeatedly(stack: Stack) -> Iterator[None]:
    """Source and worker in turns, each started again at once."""
    for number in range(12):
        victim = stack.processes[number % 2]
        stack.hold(victim)
        stack.release(victim)
        time.sleep(0.5 + number % 5 * 0.4)  # not a condition: kills fall anywhere in a start
    yield


@contextmanager
def stopped(*pids: int | None) -> Iterator[None]:
    """Processes with SIGSTOP, until SIGCONT."""
    for pid in pids:
        if pid is not None:
            os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            if pid is not None:
                os.kill(pid, signal.SIGCONT)


@contextmanager
def servers_killed(*servers: Server) -> Iterator[None]:
    """Servers with SIGKILL; they are started and ready at the end."""
    for server in servers:
        server.kill()
    try:
        yield
    finally:
        for server in servers:
            server.start(wait=False)  # type: ignore[attr-defined]
        for server in servers:
            server.wait_ready()


@contextmanager
def started_beside_a_dead_bus(stack: Stack) -> Iterator[None]:
    """The bus is killed, and source and worker start while it is down."""
    stack.hold(stack.source, stack.worker)
    with servers_killed(*stack.bus.nodes):
        stack.release(stack.source, stack.worker)
        yield


@contextmanager
def second_worker(stack: Stack, worker_id: str, *, kill_first: bool = False) -> Iterator[None]:
    """Another worker beside the first; with the same id, only one of them can work."""
    second = stack.add("worker-2", "worker", ["worker", "--id", worker_id])
    second.start()
    try:
        if kill_first:
            with killed(stack, "worker"):
                yield
        else:
            yield
    finally:
        stack.hold(second)
        stack.processes.remove(second)


def _stop(
    victim: Callable[[Stack], Process | Server],
) -> Callable[[Stack], AbstractContextManager[None]]:
    return lambda stack: stopped(victim(stack).pid)


def _source(stack: Stack) -> Process:
    return stack.source


def _worker(stack: Stack) -> Process:
    return stack.worker


ROWS: Final = (
    Fault(
        "kill-source",
        "kill -9 of the source",
        lambda s: killed(s, "source"),
        may_fire=STALLED,  # on a busy machine its start takes longer than 20 s
        quick=True,
    ),
    Fault("kill-worker", "kill -9 of the worker", lambda s: killed(s, "worker"), quick=True),
    Fault(
        "kill-worker-rocksdb",
        "kill -9 of a worker with RocksDB",
        lambda s: killed(s, "worker"),
        store="rocksdb",
    ),
    Fault(
        "kill-both",
        "kill -9 of source and worker",
        lambda s: killed(s, "source", "worker"),
        may_fire=STALLED,
        quick=True,
    ),
    Fault(
        "kill-in-turns",
        "kill -9 of source and worker, 12 times in turns",
        killed_repeatedly,
        may_fire=STALLED,
    ),
    Fault(
        "kill-leader", "kill -9 of the quorum's leader", lambda s: servers_killed(s.quorum.leader())
    ),
    Fault(
        "kill-bus-20s",
        "kill -9 of the bus, back after 20 s",
        lambda s: servers_killed(*s.bus.nodes),
        hold_s=20,
        limit_s=BUS_BACK_S,
        may_fire=STALLED,
    ),
    Fault(
        "kill-bus-60s",
        "kill -9 of the bus, back after 60 s",
        lambda s: servers_killed(*s.bus.nodes),
        hold_s=60,
        limit_s=BUS_BACK_S,
        may_fire=STALLED,
    ),
    Fault(
        "kill-bus-120s",
        "kill -9 of the bus, back after 120 s",
        lambda s: servers_killed(*s.bus.nodes),
        hold_s=120,
        limit_s=BUS_BACK_S,
        may_fire=STALLED,
    ),
    Fault(
        "start-without-bus",
        "source and worker start while the bus is down for 20 s",
        started_beside_a_dead_bus,
        hold_s=20,
        may_fire=STALLED,
    ),
    Fault(
        "stop-source-40s",
        "SIGSTOP of the source for 40 s (it counts as silent after 20 s)",
        _stop(_source),
        hold_s=40,
        may_fire=STALLED,
    ),
    Fault(
        "stop-worker-15s",
        "SIGSTOP of the worker for 15 s (its session ends after 10 s)",
        _stop(_worker),
        hold_s=15,
        may_end=True,
    ),
    Fault(
        "stop-worker-70s",
        "SIGSTOP of the worker for 70 s (its transactions end after 60 s)",
        _stop(_worker),
        hold_s=70,
        may_end=True,
        may_fire=STALLED,
    ),
    Fault(
        "stop-leader-20s",
        "SIGSTOP of the quorum's leader for 20 s",
        _stop(lambda s: s.quorum.leader()),
        hold_s=20,
        may_fire=STALLED,
    ),
    Fault(
        "stop-bus-30s",
        "SIGSTOP of the bus for 30 s",
        _stop(lambda s: s.bus.node(1)),
        hold_s=30,
        limit_s=BUS_BACK_S,
        may_fire=STALLED,
    ),
    Fault(
        "stop-bus-70s",
        "SIGSTOP of the bus for 70 s",
        _stop(lambda s: s.bus.node(1)),
        hold_s=70,
        limit_s=BUS_BACK_S,
        may_fire=STALLED,
    ),
    Fault(
        "two-workers",
        "a second worker with its own id",
        lambda s: second_worker(s, "2"),
        hold_s=10,
    ),
    Fault(
        "two-workers-owner-killed",
        "a second worker; the first is killed",
        lambda s: second_worker(s, "2", kill_first=True),
        hold_s=15,
    ),
    Fault(
        "two-workers-one-id",
        "a second worker with the id of the first, for 20 s",
        lambda s: second_worker(s, "1"),
        hold_s=20,
        may_end=True,
    ),
)
