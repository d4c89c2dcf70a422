"""Where an upgrade is, what comes next, and what differs from the plan."""

from dataclasses import replace

import pytest

from featurewatch.controller.compatibility import Verdict
from featurewatch.monitor.step import MonitorState
from featurewatch.monitor.upgrade import (
    Plan,
    PlanError,
    ReadPlan,
    UpgradeStatus,
    finalize_preconditions,
    missing_levels,
    status_of,
)
from featurewatch.streams.events import Event
from featurewatch.streams.types import ClusterId, Role
from tests.monitor.readiness.clusters import ranges
from tests.monitor.upgrade.states import (
    BEFORE,
    BROKERS,
    CONTROLLERS,
    HAUNTED,
    LIMITS,
    NEW,
    NOW_MS,
    PLAN,
    after,
    broker,
    kraft,
    planned,
    rolled,
    timed,
)
from tests.simulation import records as r
from tests.simulation.records import MV


def status(state: MonitorState, plan: Plan = PLAN, *, edited: bool = False) -> UpgradeStatus:
    """The status at `NOW_MS`."""
    return status_of(ReadPlan(plan, edited), state, LIMITS, NOW_MS)


@pytest.mark.parametrize(
    ("nodes", "hours", "current", "next_node", "verdict"),
    [
        ((), 60, "roll-controllers", 2, Verdict.YES),
        ((2,), 60, "roll-controllers", 3, Verdict.YES),
        ((2, 3, 1), 60, "roll-brokers", 4, Verdict.YES),
        ((2, 3, 1, 4), 60, "roll-brokers", 5, Verdict.YES),
        ((2, 3, 1, 4, 5), 99, "soak", None, Verdict.NO),
        ((2, 3, 1, 4, 5), 60, "finalize", None, Verdict.YES),
        ((4, 2), 60, "roll-controllers", 3, Verdict.YES),
    ],
)
def test_each_moment_of_a_roll(
    nodes: tuple[int, ...], hours: float, current: str, next_node: int | None, verdict: Verdict
) -> None:
    """The step, the next node with its command, and whether to continue."""
    found = status(rolled(*nodes, hours=hours))
    assert found.current is not None
    assert (found.current.id, found.next_node, found.verdict) == (current, next_node, verdict)
    assert found.changed == ()
    if next_node is not None:
        (command,) = found.commands
        assert f"--node {next_node} " in command


def test_another_controller_became_active() -> None:
    """The plan has it first, and the roll has it last of the controllers."""
    state = after([r.commit(58, r.leader_change(2, [1, 2, 3])), r.following(59)], BEFORE)
    assert PLAN.controllers == (2, 3, 1)
    found = status(state)
    assert found.next_node == 3
    assert "--node 3 " in found.commands[0]


def test_a_finished_upgrade_is_complete() -> None:
    """The optional step does not count."""
    levels = [r.level(name, level) for name, level in PLAN.after.items()]
    state = after([timed(r.commit(80, *levels), 90)], rolled(2, 3, 1, 4, 5))
    found = status(state)
    assert (found.is_complete, found.verdict, found.changed) == (True, Verdict.YES, ())
    assert missing_levels(PLAN, state) == {}


def test_a_soak_cut_short_begins_again() -> None:
    """A node that went back to old software and forth again: the clock starts again."""
    state = rolled(2, 3, 1, 4, 5, hours=60)
    back = after([broker(5, "3.9", 70, 80)], state)
    assert status(back).next_node == 5
    forth = after([broker(5, "4.4", 71, 90)], back)
    found = status(forth)
    assert found.current is not None
    assert found.current.id == "soak"
    assert "10 h of 1 d" in found.steps[3].text


def test_a_registration_that_is_removed_leaves_the_soak() -> None:
    """The nodes that live ran the release all the time; nor does a restart begin it again."""
    haunted = after([timed(r.commit(94, r.fence(5)), 61)], rolled(2, 3, 1, 4))
    removed = after([timed(r.commit(95, r.unregister(5)), 99)], haunted)
    found = status(after([r.following(96, seen_ms=NOW_MS)], removed))
    assert found.steps[3].text == "all nodes have run Kafka 4.4 for 1 d 16 h of 1 d"
    restarted = after([broker(5, "4.4", 94, 99)], rolled(2, 3, 1, 4, 5))
    found = status(after([r.following(96, seen_ms=NOW_MS)], restarted))
    assert found.steps[3].text == "all nodes have run Kafka 4.4 for 1 d 16 h of 1 d"


def test_what_changed_since_the_plan_is_said() -> None:
    """Nodes that came and went, levels, newer software, and a file that was edited."""
    joined = after([broker(6, "3.9", 60, 60)], BEFORE)
    assert status(joined).changed == ("nodes joined since the plan was made: 6",)
    gone = after([timed(r.commit(60, r.unregister(5)), 60)], BEFORE)
    assert status(gone).changed == ("nodes have left since the plan was made: 5",)
    raised = after([timed(r.commit(60, r.level(MV, 25)), 60)], BEFORE)
    assert status(raised).changed == (
        "metadata.version is 25 (4.0-IV3), and the plan goes from 21 (3.9-IV0) to 33 (4.4-IV2)",
    )
    assert "edited" in status(BEFORE, edited=True).changed[0]
    newer = status(rolled(4), planned(BEFORE, "4.3"))
    assert newer.changed == ("broker 4 runs Kafka 4.4, newer than the plan's 4.3",)


def test_a_broker_that_joined_is_rolled_too() -> None:
    """Its command is made from that of another node."""
    joined = after([broker(6, "3.9", 70, 70)], rolled(2, 3, 1, 4, 5))
    found = status(joined)
    assert found.next_node == 6
    assert found.commands[0].startswith("featurewatch upgrade check restart --node 6 --wait")


def test_a_plan_of_another_cluster_or_target_is_refused() -> None:
    """One line each."""
    with pytest.raises(PlanError, match="the plan is of the cluster other, and this is"):
        status(BEFORE, replace(PLAN, cluster=ClusterId("other")))
    with pytest.raises(PlanError, match=r"the plan's target is not known: Kafka '9\.9'"):
        status(BEFORE, replace(PLAN, target="9.9"))


def test_what_is_not_read_is_unknown() -> None:
    """No step is called done, and nothing is suggested."""
    unread = MonitorState.of(BEFORE.image.cluster)
    found = status(unread)
    assert found.verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("state", "edited", "failing"),
    [
        (rolled(2, 3, 1, 4, 5), False, {}),
        (rolled(2, 3, 1, 4, 5), True, {"plan": "no"}),
        (rolled(2, 3, 1, 4, 5, hours=99), False, {"soak": "no"}),
        (rolled(2, 3, 1, 4), False, {"nodes": "no", "soak": "no", "levels": "no"}),
        (rolled(2, 3, 1, 4, 5, state=HAUNTED), False, {"ghosts": "no", "levels": "no"}),
    ],
)
def test_every_precondition_of_the_last_step(
    state: MonitorState, edited: bool, failing: dict[str, str]
) -> None:
    """At this moment: soak, ghosts, nodes, an edited plan, the controller."""
    checks = finalize_preconditions(ReadPlan(PLAN, edited), state, LIMITS, NOW_MS)
    found = {one.name: str(one.verdict) for one in checks if one.verdict is not Verdict.YES}
    assert found == failing


@pytest.mark.parametrize(
    ("target", "ghost", "remedy", "last"),
    [
        ("4.3", "3.9", "start a controller with node.id 9 on Kafka 4.3, ", "; (3) stop it"),
        ("4.4", "3.9", "start a controller with node.id 9 on Kafka 4.4, ", "controller "),
        ("4.3", "4.3", "start a controller with node.id 9 on Kafka 4.4, ", "controller "),
        ("4.3", "4.4", "finalize that, then: featurewatch cluster unregister-", "controller "),
    ],
)
def test_a_ghost_controller_is_removed_on_the_way(
    target: str, ghost: str, remedy: str, last: str
) -> None:
    """By the software of the plan, where its own supports no level of that."""
    before = kraft(CONTROLLERS, BROKERS, r.register_controller(9, ranges(ghost)))
    found = status(before, planned(BEFORE, target))
    (ghosts,) = (check for check in found.checks if check.name == "ghosts")
    assert ghosts.text == "registered without a living node: controller 9"
    assert remedy in ghosts.remedy
    assert last in ghosts.remedy[-70:]


def test_an_alert_that_matters_is_in_the_way() -> None:
    """A finalized level that a node does not support; finalization-forgotten does not matter."""
    state = rolled(2, 3, 1, 4, 5, hours=1)
    rules = {alert.rule for alerts in state.firing.values() for alert in alerts}
    assert "finalization-forgotten" in rules
    checks = finalize_preconditions(ReadPlan(PLAN, edited=False), state, LIMITS, NOW_MS)
    assert all(check.verdict is Verdict.YES for check in checks), checks
    lying = r.register(5, {MV: (7, 20)}, fenced=False, epoch=91)
    late = after([timed(r.commit(91, lying), 99)], state)
    checks = finalize_preconditions(ReadPlan(PLAN, edited=False), late, LIMITS, NOW_MS)
    assert {one.name for one in checks if one.verdict is Verdict.NO} >= {"alerts", "levels"}


def test_a_node_that_answers_other_ranges_than_it_registered() -> None:
    """Its answers are of older software than its registration, so a check says no."""
    state = rolled(2, 3, 1, 4, 5)
    lying = after([r.answer(5, r.OLD, {MV: 21}, 50, NOW_MS)], state)
    checks = finalize_preconditions(ReadPlan(PLAN, edited=False), lying, LIMITS, NOW_MS)
    found = {one.name: one for one in checks}
    assert found["ranges"].verdict is Verdict.NO
    assert found["ranges"].text.startswith("broker 5 ")


def _answer(node: int, role: Role) -> Event:
    return r.answer(node, NEW, {MV: 21}, 90, NOW_MS, role=role)


_VOTER = r.commit(90, r.leader_change(1, [1, 2, 3, 6]))
"""Of a controller that has not registered."""


@pytest.mark.parametrize(
    ("events", "verdict", "text"),
    [
        ((), Verdict.YES, "5 nodes registered what they support; none was asked whether"),
        ((_answer(5, Role.BROKER),), Verdict.YES, "1 of 5 nodes answer what they registered; the"),
        ((_VOTER,), Verdict.UNKNOWN, "what controller 6 supports is not known"),
        ((_VOTER, _answer(6, Role.CONTROLLER)), Verdict.YES, "1 of 6 nodes answer"),
    ],
)
def test_ranges_are_known_of_every_node(
    events: tuple[Event, ...], verdict: Verdict, text: str
) -> None:
    """By its registration or its answer; a voter that did not register was not asked either."""
    state = after(events, rolled(2, 3, 1, 4, 5))
    checks = finalize_preconditions(ReadPlan(PLAN, edited=False), state, LIMITS, NOW_MS)
    (found,) = (one for one in checks if one.name == "ranges")
    assert (found.verdict, found.text[: len(text)]) == (verdict, text)
    assert ("--bootstrap-server" in found.remedy) is (verdict is Verdict.UNKNOWN)


def test_nothing_follows_from_no_node() -> None:
    """A log without a registration or a voter."""
    empty = after([timed(r.commit(50, r.level(MV, 21)), 50), r.following(50, seen_ms=NOW_MS)])
    checks = finalize_preconditions(ReadPlan(PLAN, edited=False), empty, LIMITS, NOW_MS)
    (found,) = (one for one in checks if one.name == "ranges")
    assert (found.verdict, found.text) == (Verdict.UNKNOWN, "no node is registered")
