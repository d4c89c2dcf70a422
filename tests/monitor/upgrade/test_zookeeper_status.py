"""The way from ZooKeeper to KRaft, held against its plan: what is current, and who is next."""

from collections.abc import Iterable

import pytest

from featurewatch.controller.compatibility import Verdict
from featurewatch.monitor.step import MonitorState
from featurewatch.monitor.upgrade import (
    Asked,
    BrokerView,
    Plan,
    ReadPlan,
    RestartRequest,
    UpgradeStatus,
    check_restart,
    status_of,
)
from featurewatch.streams.events import RecordJson
from featurewatch.streams.types import NodeId
from tests.monitor.readiness.clusters import ranges
from tests.monitor.upgrade.states import (
    LIMITS,
    NOW_MS,
    after,
    planned,
    timed,
    with_partitions,
    zookeeper,
)
from tests.simulation import records as r
from tests.simulation import znodes as z
from tests.simulation.records import MV

VOTERS = (3001, 3002, 3003)
PLAN = planned(zookeeper(), "4.4", running="3.8")
PROTOCOL = "inter.broker.protocol.version"
IBP = {MV: (21, 21)}
FULL = ([0, 1, 2], [0, 1, 2])


def held(state: MonitorState, asked: Asked | None = None, plan: Plan = PLAN) -> UpgradeStatus:
    """The status of a cluster."""
    return status_of(ReadPlan(plan, edited=False), state, LIMITS, NOW_MS, asked or Asked())


def migrating(
    state: int, zookeeper_mode: Iterable[int] = (), kraft_mode: Iterable[int] = (), on: int = 3
) -> MonitorState:
    """The log in a state of the migration; ``on`` controllers run with migration enabled."""
    records: list[RecordJson] = [r.level(MV, 21), r.migration_state(state)]
    records += [
        r.register_controller(voter, ranges("3.9"), migration_ready=number < on)
        for number, voter in enumerate(VOTERS)
    ]
    records += [r.register(b, IBP, fenced=False, migrating=True) for b in zookeeper_mode]
    records += [r.register(b, ranges("3.9"), fenced=False) for b in kraft_mode]
    commit = timed(r.commit(30, *records), NOW_MS / 3_600_000 - 24)
    leader = r.commit(1, r.leader_change(3001, VOTERS))
    return after([leader, commit, r.following(30, seen_ms=NOW_MS)])


def settings(*values: str) -> Asked:
    """What brokers 0, 1, ... answer of the protocol version."""
    return Asked({NodeId(b): {PROTOCOL: value} for b, value in enumerate(values)})


@pytest.mark.parametrize(
    ("asked", "current", "next_node", "verdict"),
    [
        (Asked(), "bridge-software", None, "unknown"),
        (settings("3.8", "3.8", "3.8"), "bridge-software", None, "unknown"),
        (settings("3.8", "3.8", "3.8")._replace(running="3.9"), "bridge-protocol", 0, "yes"),
        (settings("3.9", "3.8", "3.8")._replace(running="3.9"), "bridge-protocol", 1, "yes"),
        (Asked(None, "3.9"), "bridge-protocol", None, "unknown"),
        (settings("3.9-IV0", "3.9"), "bridge-software", None, "unknown"),
        (settings("3.9-IV0", "3.9", "3.9"), "controllers", None, "yes"),
    ],
)
def test_before_the_controllers_start(
    asked: Asked, current: str, next_node: int | None, verdict: str
) -> None:
    """ZooKeeper has neither software nor settings: brokers and people are asked for them."""
    found = held(zookeeper(), asked)
    assert found.current is not None
    assert (found.current.id, found.next_node, found.verdict) == (current, next_node, verdict)


def test_the_controllers_have_started() -> None:
    """They create /migration at once; their log is to be read from then on."""
    begun = zookeeper(z.migration(3001, 0))
    found = held(begun, settings("3.9", "3.9", "3.9"))
    assert [(one.name, one.verdict) for one in found.checks] == [("log", Verdict.UNKNOWN)]
    assert found.checks[0].remedy.startswith("pass --bootstrap-controller instead of --zookeeper")


@pytest.mark.parametrize(
    ("state", "current", "text", "next_node", "verdict"),
    [
        (migrating(2), "migrate", "0 of 3 brokers", 0, "yes"),
        (migrating(2, [0]), "migrate", "1 of 3 brokers", 1, "yes"),
        (migrating(2, [0, 1, 2]), "migrate", "3 of 3 brokers", None, "no"),
        (migrating(1, [0, 1, 2]), "kraft-brokers", "0 of 3 brokers", 0, "yes"),
        (migrating(1, [1, 2], [0]), "kraft-brokers", "1 of 3 brokers", 1, "yes"),
        (
            migrating(1, [], [0, 1, 2]),
            "validate",
            "all brokers have run in KRaft mode for 1 d of 7 d",
            None,
            "no",
        ),
        (
            migrating(3, [], [0, 1, 2], on=2),
            "finalize-migration",
            "1 of 3 controllers",
            3002,
            "yes",
        ),
        (migrating(3, [], [0, 1, 2], on=0), "roll-controllers", "0 of 3 nodes", 3002, "yes"),
    ],
)
def test_the_log_leads(
    state: MonitorState, current: str, text: str, next_node: int | None, verdict: str
) -> None:
    """Node by node; the alert about the migration speaks against none of its steps."""
    found = held(state)
    assert found.current is not None
    assert (found.current.id, found.next_node, found.verdict) == (current, next_node, verdict)
    assert next(step.text for step in found.steps if step.id == current) == text


def test_the_end_of_the_validation() -> None:
    """The time of the plan counts; then the active controller is the last to be restarted."""
    plan = planned(zookeeper(), "4.4", running="3.9", validation_hours=24)
    found = held(migrating(1, [], [0, 1, 2]), plan=plan)
    assert found.current is not None
    assert (found.current.id, found.next_node) == ("finalize-migration", 3002)
    assert "upgrade check restart --node 3002 --wait" in found.commands[0]


@pytest.mark.parametrize("state", [zookeeper(), migrating(2, [0])])
def test_a_restart_while_the_metadata_is_in_zookeeper(state: MonitorState) -> None:
    """The log has no partitions yet, which is no reason to say that none is in danger."""

    def ask(node: int, *rows: tuple[list[int], list[int]]) -> dict[str, Verdict]:
        seen = with_partitions(state, *rows, t=2).partitions
        assert seen is not None and seen.image is not None
        view = BrokerView(frozenset(map(NodeId, (0, 1, 2))), seen.image)
        request = RestartRequest(NodeId(node), NOW_MS, brokers=view if rows else None)
        return {one.name: one.verdict for one in check_restart(state, request, LIMITS).checks}

    assert ask(1) == {"partitions": Verdict.UNKNOWN}
    assert {*ask(1, FULL).values()} == {Verdict.YES}
    assert ask(7, FULL)["node"] is Verdict.NO
    lagging = ask(1, ([0, 1, 2], [0, 1]))
    assert (lagging["min-isr"], lagging["in-sync"]) == (Verdict.NO, Verdict.NO)


def test_a_controller_is_restarted_by_the_log() -> None:
    """It is in the log from the beginning of a migration."""
    report = check_restart(migrating(2), RestartRequest(NodeId(3001), NOW_MS), LIMITS)
    assert [one.name for one in report.checks] == ["log", "node", "brokers", "quorum", "partitions"]
