"""A page of one large cluster with a year of rolls, in a separate process.

``python -m tests.web.served_roll NODES`` prints its port, and ends with its standard input.
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from featurewatch.common.http.access_rules import AccessSettings
from featurewatch.streams.outputs import CapabilityClass, Snapshot
from featurewatch.streams.types import FeatureLevel, NodeId
from featurewatch.web.model import FleetModel
from featurewatch.web.server import PageServer
from featurewatch.web.settings import PageSettings
from featurewatch.web.worker_rows import WorkerRows
from tests.paths import ROOT
from tests.processes import popen
from tests.web.samples import alert_of, change_of, message_of, nodes_on, state_of
from tests.web.served_page import UNLIMITED, now_ms

CLUSTER: Final = "a-year"
RELEASES: Final = ("3.7", "3.9", "4.0", "4.2", "4.3")
ROLLS: Final = 12
"""Each restarts all nodes; every third one goes to the next release."""

_DAY_MS: Final = 86_400_000
_STEP_MS: Final = 60_000
_RESTART_MS: Final = 20_000


def year(nodes: int, end_ms: int) -> Iterator[Snapshot]:
    """The states of a year: one a minute, and each node fenced, away and back in every roll."""
    running = dict.fromkeys(range(1, nodes + 1), RELEASES[0])
    at_ms, number = end_ms - 365 * _DAY_MS, 0
    made = _state(running, {}, at_ms, number)
    for roll in range(ROLLS):
        roll_ms = end_ms - (365 - 30 * roll - 15) * _DAY_MS
        while at_ms < roll_ms:
            at_ms += _STEP_MS
            yield replace(made, at_ms=at_ms)
        target = RELEASES[1 + roll // 3]
        for node in running:
            for condition in ("fenced", "away", "back"):
                at_ms, number = at_ms + _RESTART_MS, number + 1
                if condition == "back":
                    running[node] = target
                made = _state(running, {node: condition}, at_ms, number)
                yield made
    while at_ms < end_ms:
        at_ms += _STEP_MS
        yield replace(made, at_ms=min(at_ms, end_ms))


def _state(running: dict[int, str], one: dict[int, str], at_ms: int, number: int) -> Snapshot:
    groups: dict[str, list[int]] = {}
    for node, release in running.items():
        if one.get(node) != "away":
            groups.setdefault(release, []).append(node)
    fenced = tuple(NodeId(node) for node, condition in one.items() if condition == "fenced")
    classes: list[CapabilityClass] = [
        replace(nodes_on(release, *ids), fenced=tuple(node for node in fenced if node in ids))
        for release, ids in groups.items()
    ]
    template = state_of(CLUSTER, at_ms=at_ms)
    return replace(template, classes=tuple(classes), at_ms=at_ms, digest=f"{number:x}")


def main(nodes: int) -> None:
    """Serves it."""
    model, rows, end_ms = FleetModel("roll"), WorkerRows(), now_ms()
    model.begin_reading()
    made = None
    for made in year(nodes, end_ms):
        model.rolls.observe(made)
    assert made is not None
    model.apply(*message_of(made), end_ms)
    for revision, level in enumerate((20, 21, 25, 29), start=2):
        append_ms = end_ms - (365 - 90 * (revision - 1)) * _DAY_MS
        before = {20: 19, 21: 20, 25: 21, 29: 25}[level]
        change = change_of(
            CLUSTER, revision, before=FeatureLevel(before), after=FeatureLevel(level)
        )
        model.apply(*message_of(replace(change, append_ms=append_ms)), end_ms)
    for node in range(1, 101):
        since_ms = end_ms - node * 3 * _DAY_MS
        model.apply(*message_of(alert_of(CLUSTER, node, since_ms=since_ms, at_ms=end_ms)), end_ms)
    model.error = None
    model.end_reading(end_ms)
    settings = PageSettings(port=0, access=AccessSettings(max_requests_per_s=UNLIMITED))
    server = PageServer(settings, model, rows, now_ms, lambda: 0.0)

    async def run() -> None:
        async with server.serving():
            print(server.port, flush=True)  # noqa: T201 - its first line
            await asyncio.to_thread(sys.stdin.read)

    asyncio.run(run())


@contextmanager
def served_roll(nodes: int) -> Iterator[int]:
    """The page; gives its port."""
    command = [sys.executable, "-m", "tests.web.served_roll", str(nodes)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with popen(command, cwd=ROOT, **pipes) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())


if __name__ == "__main__":
    main(int(sys.argv[1]))
