"""Faults of a ZooKeeper ensemble, and between it and the source."""

from functools import partial
from typing import Final

from tests.faults.ensemble import ENSEMBLE_LINKS, EnsembleStack
from tests.faults.fault import Fault
from tests.faults.rows.network import in_mode
from tests.faults.rows.processes import BUS_BACK_S, STALLED, killed, servers_killed, stopped
from tests.faults.stack import Stack

MISSED: Final = (*STALLED, "znode-missed")
"""Watches show the newest state: what came in between is reported as missed."""


def _of(stack: Stack) -> EnsembleStack:
    assert isinstance(stack, EnsembleStack)
    return stack


ROWS: Final = (
    Fault(
        "ensemble-kill-source",
        "kill -9 of the source that watches ZooKeeper",
        lambda s: killed(s, "source"),
        may_fire=MISSED,
        ensemble=True,
    ),
    Fault(
        "ensemble-kill-worker",
        "kill -9 of the worker of a cluster in ZooKeeper",
        lambda s: killed(s, "worker"),
        may_fire=MISSED,
        ensemble=True,
    ),
    Fault(
        "ensemble-kill-leader",
        "kill -9 of the ensemble's leader",
        lambda s: servers_killed(_of(s).ensemble.leader()),
        may_fire=MISSED,
        ensemble=True,
    ),
    Fault(
        "ensemble-kill-all",
        "kill -9 of all ZooKeeper servers, back after 10 s",
        lambda s: servers_killed(*_of(s).ensemble.servers),
        hold_s=10,
        changes=0,
        may_fire=MISSED,
        ensemble=True,
    ),
    Fault(
        "ensemble-stop-source-40s",
        "SIGSTOP of the source for 40 s: its session expires",
        lambda s: stopped(s.source.pid),
        hold_s=40,
        may_fire=MISSED,
        ensemble=True,
    ),
    *(
        Fault(
            f"source-ensemble-{mode}",
            f"source and ensemble: {about}",
            partial(in_mode, mode=mode, links=ENSEMBLE_LINKS),
            hold_s=30,
            limit_s=BUS_BACK_S,
            may_fire=MISSED,
            ensemble=True,
        )
        for mode, about in (
            ("cut", "connections are cut and refused for 30 s"),
            ("half-open", "connections go silent for 30 s, and those that were open stay so"),
            ("garbage", "64 random bytes are inserted once in each connection, for 30 s"),
        )
    ),
)
