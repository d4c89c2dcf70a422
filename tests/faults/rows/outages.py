"""Whole clusters, the bus and featurewatch that are down together, in every order."""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from featurewatch.stack.process.server import Server
from tests.faults.ensemble import EnsembleStack
from tests.faults.fault import Fault
from tests.faults.rows.ensemble import MISSED
from tests.faults.rows.processes import STALLED, servers_killed
from tests.faults.stack import Stack, with_brokers
from tests.processes import Process

_BETWEEN_S: Final = 2.0
"""Between two parts of an outage: what is left notices, and is in the middle of something."""

_PARTS: Final[dict[str, Callable[[Stack], Sequence[Server | Process]]]] = {
    "cluster": lambda stack: stack.quorum.nodes,
    "bus": lambda stack: stack.bus.nodes,
    "worker": lambda stack: [stack.worker],
    "source": lambda stack: [stack.source],
    "controller": lambda stack: stack.quorum.nodes[:1],
    "broker": lambda stack: stack.quorum.nodes[1:],
    "zookeeper": lambda stack: _of(stack).ensemble.servers,
    "brokers": lambda stack: [_of(stack).reference],
}


def _of(stack: Stack) -> EnsembleStack:
    assert isinstance(stack, EnsembleStack)
    return stack


@contextmanager
def outage(
    stack: Stack, order: Sequence[str], *, back: Sequence[str] = (), at_once: bool = False
) -> Iterator[None]:
    """Parts are killed one after the other, and started in the same order or in that of ``back``.

    Without ZooKeeper no node of the reference system starts, so that one is waited for.
    """
    pause_s = 0.0 if at_once else _BETWEEN_S  # not a condition: see above
    for name in order:
        for victim in _PARTS[name](stack):
            _kill(stack, victim)
        time.sleep(pause_s)
    try:
        yield
    finally:
        back = back or order
        for name in back:
            for victim in _PARTS[name](stack):
                _start(stack, victim)
            if name == "zookeeper":
                _wait_ready(stack, name)
            time.sleep(pause_s)
        for name in back:
            _wait_ready(stack, name)


def _kill(stack: Stack, victim: Server | Process) -> None:
    if isinstance(victim, Process):
        stack.hold(victim)
    else:
        victim.kill()


def _start(stack: Stack, victim: Server | Process) -> None:
    if isinstance(victim, Process):
        stack.release(victim)
    else:
        victim.start(wait=False)  # type: ignore[attr-defined]


def _wait_ready(stack: Stack, name: str) -> None:
    for victim in _PARTS[name](stack):
        if isinstance(victim, Server):
            victim.wait_ready()


@contextmanager
def stopped_in_order(stack: Stack) -> Iterator[None]:
    """Every node of the watched cluster is stopped as an operator does, one after the other."""
    nodes = stack.quorum.nodes
    for node in nodes[:-1]:
        node.stop()
    nodes[-1].kill()  # without a majority it would wait for one until it is killed anyway
    try:
        yield
    finally:
        for node in nodes:
            node.start(wait=False)
        for node in nodes:
            node.wait_ready()


def _row(
    name: str, about: str, order: Sequence[str], back: Sequence[str] = (), **more: Any
) -> Fault:
    options: dict[str, Any] = {"hold_s": 10, "changes": 0, "may_fire": STALLED, **more}
    return Fault(f"outage-{name}", about, partial(outage, order=order, back=back), **options)


ROWS: Final = (
    Fault(
        "outage-polled-75s",
        "kill -9 of all nodes of a cluster that is polled too, back after 75 s",
        lambda s: servers_killed(*s.quorum.nodes),
        hold_s=75,
        changes=0,
        must_fire=STALLED,
        watch=with_brokers,
    ),
    Fault(
        "outage-stopped",
        "all nodes of the watched cluster are stopped one after the other, back after 20 s",
        stopped_in_order,
        hold_s=20,
        changes=0,
        must_fire=STALLED,
        watch=with_brokers,
    ),
    *(
        _row(
            "-".join(order),
            f"kill -9 of {', '.join(order[:-1])} and {order[-1]}, back in this order",
            order,
        )
        for order in itertools.permutations(("cluster", "bus", "worker"))
    ),
    Fault(
        "outage-everything",
        "kill -9 of cluster, bus, source and worker at once, back at once",
        lambda s: outage(s, ("cluster", "bus", "source", "worker"), at_once=True),
        changes=0,
        may_fire=STALLED,
    ),
    _row(
        "controller-first",
        "the controller is killed before the broker, and starts before it",
        ("controller", "broker"),
        split=True,
    ),
    _row(
        "broker-first",
        "the broker is killed before the controller, and starts before it",
        ("broker", "controller"),
        split=True,
    ),
    _row(
        "zookeeper-first",
        "kill -9 of the ensemble and then of the brokers, back in this order",
        ("zookeeper", "brokers"),
        may_fire=MISSED,
        ensemble=True,
    ),
    _row(
        "brokers-first",
        "kill -9 of the brokers and then of the ensemble, back in the other order",
        ("brokers", "zookeeper"),
        back=("zookeeper", "brokers"),
        may_fire=MISSED,
        ensemble=True,
    ),
)
