"""The page about upgrades, on a real roll: its lines in their order, and what it shows of them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import combined
from tests.conftest import MakeCluster
from tests.documents.blocks import Command, blocks, commands
from tests.documents.following import ended
from tests.documents.scripts import codes_of, place_of
from tests.documents.session import Session, assert_shown
from tests.paths import ROOT
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.nightly]

PAGE: Final = "docs/how-to/upgrade.md"
PLACE: Final = "roll"
RELEASE: Final = "4.3.1"
_AT: Final = "--bootstrap-controller kafka-1:9093 --bootstrap-server kafka-1:9092"


def test_a_roll_that_follows_the_page(make_cluster: MakeCluster, tmp_path: Path) -> None:
    """From 3.9.1 to the last level; each restart is that of the node which the plan names next."""
    cluster = make_cluster(combined(["3.9.1"] * 3))
    names = {"kafka-1:9093": cluster.controllers, "kafka-1:9092": cluster.bootstrap_servers}
    lines = [
        command
        for block in blocks(ROOT / PAGE)
        for command in commands(block)
        if place_of(command) == PLACE
    ]
    assert [line.text.split()[2] for line in lines] == [
        *("plan", "check", "status", "finalize", "finalize")
    ]
    with ended(Session(tmp_path, names)) as session:
        for line in lines:
            if line.text.split()[2] == "status":
                _roll(session, cluster)
            printed = session.run(line, codes_of(line))
            assert line.output, line
            assert_shown(line.output, printed)
        assert _status(session)["complete"]


def _roll(session: Session, cluster: Cluster) -> None:
    """Restarts the nodes as the plan leads, until its last step may be taken."""
    for _ in cluster.nodes:
        found = _until(session, lambda status: status["next_node"] is not None)
        node = found["next_node"]
        session.again(Command(PAGE, 0, f"featurewatch upgrade check restart --node {node} {_AT}"))
        cluster.roll(RELEASE, [node])
    _until(session, lambda status: status["current"] == "finalize")


def _until(session: Session, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The first status that says yes, and for which it holds."""
    found: list[dict[str, Any]] = []

    def holds() -> bool:
        found.append(_status(session))
        return bool(found[-1]["verdict"] == "yes") and condition(found[-1])

    assert eventually(holds, 180), found[-1]
    return found[-1]


def _status(session: Session) -> dict[str, Any]:
    session.done.clear()  # the same question has other answers
    line = f"featurewatch upgrade status --plan plan-4.3.yaml --json {_AT}"
    text = session.run(Command(PAGE, 0, line), frozenset({0, 3, 4}))
    status: dict[str, Any] = json.loads(text)
    return status
