"""What ``featurewatch upgrade`` prints in the middle of a roll, as the page shows it.

The cluster is a model: real rolls, which take minutes, are those of
`tests.cli.test_led_upgrades` and `test_upgrade_pages`.
"""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from featurewatch.cli.app import app
from featurewatch.cli.commands.upgrade import finalization, reading
from featurewatch.cli.commands.upgrade.reading import ReadState
from featurewatch.monitor.step import MonitorState
from featurewatch.monitor.upgrade import QuorumView, plan_text
from featurewatch.streams.types import NodeId
from tests.documents.blocks import shown
from tests.documents.session import assert_shown
from tests.monitor.upgrade.states import (
    LIMITS,
    NOW_MS,
    PLAN,
    after,
    rolled,
    timed,
    with_partitions,
)
from tests.simulation import records as r

PAGE = "how-to/upgrade.md"
AT = ("--bootstrap-controller", "kafka-1:9093", "--bootstrap-server", "kafka-1:9092")
VOTERS = frozenset(map(NodeId, (1, 2, 3)))

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command while a cluster is in some state; returns what it prints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(time, "time", lambda: NOW_MS / 1000)
    (tmp_path / "plan.yaml").write_text(plan_text(PLAN))

    def print_of(state: MonitorState, *arguments: str, code: int) -> str:
        for module in (reading, finalization):
            monkeypatch.setattr(module, "read_state", lambda _: ReadState(state, LIMITS))
        monkeypatch.setattr(reading, "ask_quorum", lambda _: QuorumView(VOTERS, VOTERS))
        result = CliRunner().invoke(app, ["upgrade", *arguments, *AT])
        assert result.exit_code == code, result.output
        return result.stdout

    return print_of


def test_a_node_that_must_not_be_restarted(run: Run) -> None:
    """Broker 5, while broker 4 is unavailable."""
    away = after(
        [timed(r.commit(90, r.fence(4)), 99.9), r.following(96, seen_ms=NOW_MS)], rolled(2, 3, 1)
    )
    state = with_partitions(away, ([4, 5], [5]), ([5, 4], [5]), cluster=1)
    printed = run(state, "check", "restart", "--node", "5", code=3)
    assert_shown(shown(PAGE, "Node 5 must not"), printed)


def test_the_status_of_a_soak(run: Run) -> None:
    """All nodes were restarted an hour ago."""
    printed = run(rolled(2, 3, 1, 4, 5, hours=99), "status", "--plan", "plan.yaml", code=3)
    assert_shown(shown(PAGE, "Upgrade of cluster k3nk"), printed)


def test_a_ghost_is_in_the_way_of_the_last_step(run: Run) -> None:
    """Broker 5 never started on the new release."""
    dead = after(
        [timed(r.commit(90, r.fence(5)), 61), r.following(96, seen_ms=NOW_MS)], rolled(2, 3, 1, 4)
    )
    printed = run(dead, "finalize", "--plan", "plan.yaml", "--dry-run", code=3)
    begins = "\n".join(printed.splitlines()[:3])  # in another sample all nodes are three
    assert_shown(shown(PAGE, begins), printed)
