"""Plans: which steps, in which order, where there is no way back."""

import pytest

from featurewatch.controller.compatibility import Verdict
from featurewatch.monitor.upgrade import Plan, PlanError, Step, plan_text
from featurewatch.monitor.upgrade.plan import verdict_of
from featurewatch.streams.types import KRAFT_VERSION, METADATA_VERSION
from tests.monitor.readiness.clusters import ranges
from tests.monitor.upgrade.states import kraft, planned
from tests.simulation import records as r

THREE = dict.fromkeys((1, 2, 3), "3.9")
BROKERS = dict.fromkeys((4, 5), "3.9")
KRAFT_STEPS = ["prepare", "roll-controllers", "roll-brokers", "soak", "finalize"]

RAISED_FIRST = ["prepare", "finalize-minimum", *KRAFT_STEPS[1:], "dynamic-quorum"]


def of(plan: Plan, step_id: str) -> Step:
    """A step that the plan has."""
    step = plan.step(step_id)
    assert step is not None
    return step


@pytest.mark.parametrize(
    ("release", "level", "target", "metadata_version", "steps", "no_return"),
    [
        ("3.9", 21, "4.3", 30, [*KRAFT_STEPS, "dynamic-quorum"], True),
        ("3.9", 21, "4.4", 33, [*KRAFT_STEPS, "dynamic-quorum"], True),
        ("4.0", 25, "4.2", 29, [*KRAFT_STEPS, "dynamic-quorum"], False),
        ("3.7", 19, "3.9", 21, KRAFT_STEPS, False),
        ("3.6", 14, "3.7", 19, KRAFT_STEPS, True),
        ("3.9", 25, "4.0", 25, KRAFT_STEPS, False),
        (
            "3.4",
            5,
            "4.4",
            33,
            ["prepare", "finalize-minimum", *KRAFT_STEPS[1:], "dynamic-quorum"],
            True,
        ),
    ],
)
def test_the_steps_of_a_release(
    release: str, level: int, target: str, metadata_version: int, steps: list[str], no_return: bool
) -> None:
    """Controllers before brokers, levels last; kraft.version is a separate step, from 4.1 on."""
    state = kraft(dict.fromkeys((1, 2, 3), release), {4: release}, level=level)
    plan = planned(state, target)
    assert [step.id for step in plan.steps] == steps
    assert plan.after[METADATA_VERSION] == metadata_version
    assert KRAFT_VERSION not in plan.after
    finalize = of(plan, "finalize")
    assert (finalize.point_of_no_return, finalize.levels) == (no_return, plan.after)
    others = [step.id for step in plan.steps if step.point_of_no_return]
    assert {*others} <= {"finalize-minimum", "finalize", "dynamic-quorum"}
    assert all(step.way_back for step in plan.steps)


def test_the_active_controller_is_restarted_last() -> None:
    """A combined node is restarted once, with the controllers; Kafka's own test of upgrades rolls
    controllers first."""
    plan = planned(kraft(THREE, {3: "3.9", 4: "3.9", 5: "3.9"}, active=2), "4.4")
    assert (plan.controllers, plan.brokers) == ((1, 3, 2), (4, 5))
    assert of(plan, "roll-controllers").nodes == (1, 3, 2)
    assert of(plan, "roll-brokers").nodes == (4, 5)
    assert of(plan, "roll-controllers").commands[0] == (
        "featurewatch upgrade check restart --node 1 --wait --bootstrap-controller c:9093"
    )


def test_commands_are_those_of_the_cluster() -> None:
    """The last step has our command and Kafka's, with every level but kraft.version."""
    finalize = of(planned(kraft(THREE, BROKERS), "4.4"), "finalize")
    assert finalize.commands == (
        "featurewatch upgrade finalize --plan plan.yaml --bootstrap-controller c:9093 "
        "--bootstrap-server b:9092",
        "bin/kafka-features.sh --bootstrap-server b:9092 upgrade "
        "--feature eligible.leader.replicas.version=1 --feature group.version=1 "
        "--feature metadata.version=33 --feature share.version=2 --feature streams.version=1 "
        "--feature transaction.version=2",
    )
    assert any("min.insync.replicas" in text for text in finalize.changes)
    assert "33 (4.4-IV2)" in finalize.way_back


def test_a_lossless_way_back_is_a_command() -> None:
    """From 4.0 to 4.2 the levels can be lowered again, and old software started."""
    finalize = of(
        planned(kraft(dict.fromkeys((1, 2, 3), "4.0"), {4: "4.0"}, level=25), "4.2"), "finalize"
    )
    assert "downgrade --feature" in finalize.way_back
    assert "metadata.version=25" in finalize.way_back
    check = "check restart --node ID --release 4.0 --node-directory DIRECTORY --wait"
    assert check in finalize.way_back
    assert finalize.way_back.endswith("and restart it on Kafka 4.0")


def test_restarts_after_the_lowest_level_was_raised_look_at_what_a_node_replays() -> None:
    """Kafka 4.4 does not start on a log with level 5, also if 7 follows; 3.9 starts on both."""
    state = kraft(dict.fromkeys((1, 2, 3), "3.4"), {4: "3.4"}, level=5)
    raised = planned(state, "4.4")
    for step_id, node in (("roll-controllers", 2), ("roll-brokers", 4)):
        step = of(raised, step_id)
        assert step.commands[0] == (
            f"featurewatch upgrade check restart --node {node} --release 4.4 "
            "--node-directory DIRECTORY --wait --bootstrap-controller c:9093"
        )
        assert step.by_hand[0].startswith("run each check on the machine of its node")
    assert "--release" not in str([step.commands for step in planned(state, "3.9").steps])


def test_the_first_step_names_the_known_faults_on_the_way() -> None:
    """Those that readiness lists, of nodes now and of the target; none of another way."""
    way = planned(kraft(dict.fromkeys((1, 2, 3), "4.0"), {4: "4.0"}, level=25), "4.2")
    faults = [text for text in of(way, "prepare").by_hand if text.startswith("known fault ")]
    assert any("KAFKA-20115" in text for text in faults)
    other = planned(kraft(dict.fromkeys((1, 2, 3), "3.6"), {4: "3.6"}, level=14), "3.7")
    assert not any("KAFKA-20115" in text for text in of(other, "prepare").by_hand)


def test_a_plan_says_what_is_in_the_way() -> None:
    """A ghost, a fenced broker, and an unknown release are failed or unknown checks."""
    good = planned(kraft(THREE, BROKERS), "4.4")
    assert verdict_of(good.checks) is Verdict.YES
    fenced = kraft(THREE, BROKERS, r.fence(5), at=100)
    found = {check.name: check.verdict for check in planned(fenced, "4.4").checks}
    assert found["brokers"] is Verdict.NO
    ghost = kraft(THREE, BROKERS, r.register_controller(9, ranges("3.9")))
    checks = {check.name: check for check in planned(ghost, "4.4").checks}
    assert checks["ghosts"].verdict is Verdict.NO
    assert checks["ghosts"].remedy
    assert 9 not in planned(ghost, "4.4").controllers
    strange = kraft(THREE, {4: "3.9"}, r.register(5, {"metadata.version": (1, 99)}, fenced=False))
    found = {check.name: check.verdict for check in planned(strange, "4.4").checks}
    assert found["releases"] is Verdict.NO


def test_there_is_no_plan_downwards_or_of_an_unknown_cluster() -> None:
    """One line each."""
    state = kraft(dict.fromkeys((1, 2, 3), "4.4"), {4: "4.4"}, level=33)
    with pytest.raises(PlanError, match=r"there is no upgrade to 4\.3"):
        planned(state, "4.3")
    migrating = kraft(THREE, BROKERS, r.migration_state(1))
    with pytest.raises(PlanError, match="a migration from ZooKeeper is in progress"):
        planned(migrating, "4.4")


def test_a_patch_release_changes_no_level() -> None:
    """All levels are finalized already: the last step has nothing to send."""
    state = kraft(
        dict.fromkeys((1, 2, 3), "4.4"),
        {4: "4.4"},
        *(r.level(name, level) for name, level in {
            "eligible.leader.replicas.version": 1, "group.version": 1, "share.version": 2,
            "streams.version": 1, "transaction.version": 2,
        }.items()),
        level=33,
    )  # fmt: skip
    finalize = of(planned(state, "4.4"), "finalize")
    assert (finalize.commands, finalize.point_of_no_return) == ((), False)
    assert "nothing" in finalize.changes[0]


def test_a_large_cluster_has_one_step_for_its_brokers() -> None:
    """Steps do not grow in number with the nodes, and every node has its command."""
    plan = planned(kraft(THREE, dict.fromkeys(range(10, 310), "3.9")), "4.4")
    assert len(of(plan, "roll-brokers").commands) == 300
    assert len(plan.steps) == 6
    assert len(plan_text(plan)) < 100_000
