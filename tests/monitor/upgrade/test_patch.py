"""A roll to another patch of the same release, which nothing but the restarts shows."""

import pytest

from featurewatch.controller.compatibility import Verdict
from featurewatch.controller.kraft import release_of
from featurewatch.monitor.step import MonitorState
from featurewatch.monitor.upgrade import (
    HOUR_MS,
    Plan,
    PlanRequest,
    ReadPlan,
    UpgradeStatus,
    make_plan,
    parse_plan,
    plan_text,
    status_of,
)
from tests.monitor.readiness.clusters import ranges
from tests.monitor.upgrade.states import LIMITS, NOW_MS, OPTIONS, after, broker, kraft, timed
from tests.simulation import records as r

BEFORE = kraft(dict.fromkeys((1, 2, 3), "4.3"), {4: "4.3", 5: "4.3"}, level=30, active=1)
MADE_MS = 60 * HOUR_MS


def planned(state: MonitorState, patch: str, target: str = "4.3") -> Plan:
    """The plan that was made in hour 60."""
    request = PlanRequest(release_of(target), MADE_MS, "0.1.0", options=OPTIONS, patch=patch)
    return make_plan(state, request, LIMITS)


PLAN = planned(BEFORE, "4.3.1")


def restarted(*nodes: int, state: MonitorState = BEFORE) -> MonitorState:
    """These nodes registered again after the plan was made, one an hour."""
    events: list[object] = []
    for hour, node in enumerate(nodes, start=61):
        if node < 4:
            again = r.register_controller(node, ranges("4.3"))
            events.append(timed(r.commit(hour, again), hour))
        else:
            events.append(broker(node, "4.3", hour, hour))
    events.append(r.following(96, seen_ms=NOW_MS))
    return after(events, state)  # type: ignore[arg-type]


def status(state: MonitorState, plan: Plan = PLAN) -> UpgradeStatus:
    """The status now."""
    return status_of(ReadPlan(plan, False), state, LIMITS, NOW_MS)


def test_the_plan_has_restarts_alone() -> None:
    """It survives its file, names the patch, and says what is not known."""
    assert [step.id for step in PLAN.steps] == ["prepare", "roll-controllers", "roll-brokers"]
    assert [step.nodes for step in PLAN.steps[1:]] == [(2, 3, 1), (4, 5)]
    title = "Restart the controllers on Kafka 4.3.1, one at a time, the active one last"
    assert PLAN.steps[1].title == title
    assert "install Kafka 4.3.1" in PLAN.steps[1].by_hand[0]
    assert "which patch release a node runs is not known" in PLAN.steps[1].by_hand[1]
    read = parse_plan(plan_text(PLAN).encode(), "plan.yaml")
    assert (read.plan.steps, read.edited) == (PLAN.steps, False)


@pytest.mark.parametrize(
    ("nodes", "current", "next_node", "texts"),
    [
        ((), "roll-controllers", 2, ["0 of 3 nodes", "0 of 2 nodes"]),
        ((2,), "roll-controllers", 3, ["1 of 3 nodes", "0 of 2 nodes"]),
        ((3, 4), "roll-controllers", 2, ["1 of 3 nodes", "1 of 2 nodes"]),
        ((2, 3, 1), "roll-brokers", 4, ["3 of 3 nodes", "0 of 2 nodes"]),
        ((2, 3, 1, 5), "roll-brokers", 4, ["3 of 3 nodes", "1 of 2 nodes"]),
        ((2, 3, 1, 4, 5), None, None, ["3 of 3 nodes", "2 of 2 nodes"]),
    ],
)
def test_each_moment(
    nodes: tuple[int, ...], current: str | None, next_node: int | None, texts: list[str]
) -> None:
    """Led by the registrations; that these show no patch is said each time."""
    found = status(restarted(*nodes))
    assert (found.current.id if found.current else None, found.next_node) == (current, next_node)
    assert [step.text for step in found.steps[1:]] == texts
    assert found.verdict is Verdict.YES
    assert found.changed[0].startswith("which patch release a node runs is not known")
    if next_node is not None:
        assert found.commands[0].startswith(
            f"featurewatch upgrade check restart --node {next_node} --wait"
        )


def test_controllers_that_do_not_register_are_not_guessed() -> None:
    """Below metadata.version 15 nothing shows that a controller was restarted."""
    state = after(
        [
            r.commit(1, r.leader_change(1, [1, 2, 3])),
            timed(
                r.commit(
                    50,
                    r.level(r.MV, 14),
                    r.register(4, ranges("3.9"), fenced=False, epoch=4),
                ),
                50,
            ),
            r.following(96, seen_ms=NOW_MS),
        ]
    )
    found = status(state, planned(state, "3.9.2", "3.9"))
    assert found.verdict is Verdict.UNKNOWN
    (check,) = (one for one in found.checks if one.name == "restarts")
    assert check.text.startswith("when node 1-3 was restarted is not known")


@pytest.mark.parametrize(("patch", "target"), [("", "4.3"), ("4.4.1", "4.4")])
def test_other_plans_are_as_before(patch: str, target: str) -> None:
    """Without a patch, or to a newer release, the levels show the way."""
    assert "finalize" in {step.id for step in planned(BEFORE, patch, target).steps}
