"""Addresses that change, come and go, or lead to another cluster."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from featurewatch.stack.process.ports import LOOPBACK
from tests.faults.fault import Fault
from tests.faults.rows.network import in_mode
from tests.faults.rows.processes import STALLED, killed
from tests.faults.servers import ELSEWHERE, QUORUM_LINKS
from tests.faults.stack import Stack, by_names, with_brokers
from tests.processes import free_port

_FLAPS: Final = 6
_DOWN_S: Final = 6.5
"""A source counts as stalled after 5 s, and has an alert after 4 s more."""

_UP_S: Final = 3.0
_MESSAGES_OF_FLAPPING: Final = 2
"""That it flaps, and perhaps a stall that took longer before it was known to flap."""


@contextmanager
def flapping(stack: Stack) -> Iterator[None]:
    """The links to the quorum are cut again and again, each time for less than an alert takes."""
    first = len(stack.reader.outputs.alerts)
    for _ in range(_FLAPS):
        with in_mode(stack, "cut", QUORUM_LINKS):
            time.sleep(_DOWN_S)  # not a condition: the fault itself
        time.sleep(_UP_S)
    yield
    alerts = [alert for alert in stack.reader.outputs.alerts[first:] if alert["rule"] in STALLED]
    if len(alerts) > _MESSAGES_OF_FLAPPING:
        stack.notes.append(f"{len(alerts)} messages about a source that flaps")


@contextmanager
def rolled_to_new_ports(stack: Stack) -> Iterator[None]:
    """Every node is restarted with other addresses; the configured ones lead nowhere afterwards."""
    spec = stack.quorum.spec
    _roll(stack, [f"moved-{time.monotonic_ns()}-{node.id}" for node in spec.nodes])
    try:
        yield
    finally:
        stack.quorum.change(spec)
        for link in QUORUM_LINKS:
            stack.proxy.set_mode(link, "pass")
        for node in stack.quorum.nodes:
            node.stop()
            node.start()


def _roll(stack: Stack, links: Sequence[str]) -> None:
    for old_link, link, node in zip(QUORUM_LINKS, links, stack.quorum.nodes, strict=True):
        port = stack.proxy.listen(link, free_port(), node.addresses.controller or 0)
        advertised = f"PLAINTEXT://{node.broker},CONTROLLER://{LOOPBACK}:{port}"
        spec = stack.quorum.spec
        nodes = [
            replace(one, properties={**one.properties, "advertised.listeners": advertised})
            if one.id == node.id
            else one
            for one in spec.nodes
        ]
        stack.quorum.change(replace(spec, nodes=nodes))
        node.stop()
        node.start()
        stack.proxy.set_mode(old_link, "cut")


@contextmanager
def names_elsewhere(stack: Stack, *, restarted: bool) -> Iterator[None]:
    """The names of the controllers lead to another cluster's, and no other address works."""
    names = stack.directory / "names"
    with in_mode(stack, "cut", QUORUM_LINKS):
        names.write_text(ELSEWHERE)
        if restarted:
            with killed(stack, "source"):
                pass
        try:
            yield
        finally:
            names.write_text(LOOPBACK)


ROWS: Final = (
    Fault(
        "source-quorum-moment",
        "source and quorum: connections are cut and refused for 2 s, as in an election",
        lambda s: in_mode(s, "cut", QUORUM_LINKS),
        hold_s=2,
        limit_s=5,
    ),
    Fault(
        "source-quorum-flaps",
        "source and quorum: connections are cut for 6.5 s, six times in a minute",
        flapping,
        hold_s=0,
        must_fire=STALLED,
        may_stay=STALLED,
    ),
    Fault(
        "roll-new-ports",
        "every node of the watched cluster is rolled to another port",
        rolled_to_new_ports,
        hold_s=20,
        may_fire=STALLED,
        watch=with_brokers,
    ),
    Fault(
        "names-elsewhere",
        "the controllers' names resolve to another cluster for 30 s, and what was open is cut",
        lambda s: names_elsewhere(s, restarted=False),
        hold_s=30,
        must_fire=STALLED,
        watch=by_names,
    ),
    Fault(
        "names-elsewhere-at-start",
        "the source starts while the controllers' names resolve to another cluster, for 30 s",
        lambda s: names_elsewhere(s, restarted=True),
        hold_s=30,
        must_fire=STALLED,
        watch=by_names,
    ),
)
