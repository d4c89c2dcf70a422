"""The way of a cluster in ZooKeeper mode, and the checks before its migration."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from featurewatch.controller.compatibility import Verdict
from featurewatch.controller.kraft import release_of
from featurewatch.monitor.step import MonitorState
from featurewatch.monitor.upgrade import (
    PlanError,
    PlanRequest,
    ReadPlan,
    make_plan,
    parse_plan,
    plan_text,
)
from featurewatch.monitor.upgrade.preflight import preflight
from featurewatch.streams.types import NodeId
from tests.monitor.upgrade.states import LIMITS, NOW_MS, OPTIONS, after, planned, zookeeper
from tests.simulation import records as r
from tests.simulation import znodes as z

READY = {"inter.broker.protocol.version": "3.9", "log.dirs": "/data"}
MIGRATION = ["controllers", "migrate", "kraft-brokers", "validate", "finalize-migration"]
AFTER = ["plan-kraft", "prepare", "roll-controllers", "roll-brokers", "soak", "finalize"]
BRIDGE = ["bridge-software", "bridge-protocol"]
WHOLE = [*MIGRATION, *AFTER, "dynamic-quorum"]


def with_settings(state: MonitorState, own: Mapping[str, str | None]) -> PlanRequest:
    """A request after every broker answered these settings."""
    brokers = state.image.brokers.nodes
    answered = {key.node_id: own for key in brokers}
    return PlanRequest(release_of("4.4"), NOW_MS, "0.1.0", 0, OPTIONS, settings=answered)


@pytest.mark.parametrize(
    ("running", "target", "steps"),
    [
        ("3.6", "4.0", [*BRIDGE, *MIGRATION, *AFTER]),
        ("3.7", "4.3", [*BRIDGE, *WHOLE]),
        ("3.8", "4.4", [*BRIDGE, *WHOLE]),
        ("3.9", "4.4", ["bridge-protocol", *WHOLE]),
        ("", "4.4", [*BRIDGE, *WHOLE]),
        ("3.6", "3.9", BRIDGE),
        ("3.6", "3.8", BRIDGE),
    ],
)  # fmt: skip
def test_the_way_over_the_bridge_release(running: str, target: str, steps: list[str]) -> None:
    """3.9, its protocol version, the migration, and then the upgrade in KRaft mode."""
    plan = planned(zookeeper(), target, running=running)
    assert [step.id for step in plan.steps] == steps
    assert all(step.way_back for step in plan.steps)
    no_return = {step.id for step in plan.steps if step.point_of_no_return}
    crossed = {"finalize-migration", "finalize"} & {*steps}
    assert no_return - {"dynamic-quorum"} == {"bridge-protocol"} | crossed
    written = ReadPlan(replace(plan, checks=()), edited=False)
    assert parse_plan(plan_text(plan).encode(), "plan.yaml") == written


def test_steps_name_the_cluster() -> None:
    """The format command has the cluster's id, and the way back its ZooKeeper."""
    plan = planned(zookeeper(), "4.4", running="3.9")
    steps = {step.id: step for step in plan.steps}
    assert steps["controllers"].commands == (
        "bin/zookeeper-shell.sh z:2181 get /cluster/id",
        f"bin/kafka-storage.sh format --cluster-id={r.CLUSTER} --config "
        "config/controller.properties",
        "bin/kafka-server-start.sh config/controller.properties",
    )
    assert steps["migrate"].way_back.startswith(
        "stop the controllers; bin/zookeeper-shell.sh z:2181: `delete /controller`, at once"
    )
    assert steps["roll-brokers"].nodes == (0, 1, 2)


def test_a_downgrade_is_no_plan() -> None:
    """3.9 in ZooKeeper mode does not go to 3.8."""
    with pytest.raises(PlanError, match=r"the brokers run Kafka 3\.9: there is no upgrade to 3\.8"):
        planned(zookeeper(), "3.8", running="3.9")


@pytest.mark.parametrize(
    ("own", "failing", "remedy"),
    [
        (READY, {}, ""),
        (
            {**READY, "inter.broker.protocol.version": "3.6-IV2"},
            {"software": "unknown", "inter.broker.protocol.version": "no"},
            "set inter.broker.protocol.version=3.9 on every broker: step below",
        ),
        (
            {**READY, "control.plane.listener.name": "CONTROL"},
            {"control.plane.listener.name": "no"},
            "remove control.plane.listener.name when the broker is restarted in KRaft mode",
        ),
        (
            {**READY, "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"},
            {"authorizer.class.name": "no"},
            "set authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer on "
            "the controllers, and on brokers in KRaft mode",
        ),
        (
            {**READY, "authorizer.class.name": "com.example.Mine"},
            {"authorizer.class.name": "unknown"},
            "ask who makes it",
        ),
        (
            {**READY, "log.dirs": "/a,/b"},
            {"log.dirs": "unknown"},
            "check that every directory works: describeLogDirs",
        ),
        (
            {**READY, "reserved.broker.max.id": "1"},
            {"broker.id": "no"},
            "set broker.id to the id that each has, and reserved.broker.max.id to at least 2",
        ),
        ({**READY, "reserved.broker.max.id": "1", "broker.id.generation.enable": "false"}, {}, ""),
    ],
)
def test_the_preflight(own: dict[str, str], failing: dict[str, str], remedy: str) -> None:
    """Each check with the setting to change."""
    state = zookeeper()
    plan = make_plan(state, with_settings(state, own), LIMITS)
    found = {one.name: str(one.verdict) for one in plan.checks if one.verdict is not Verdict.YES}
    assert found == failing
    assert remedy in {one.remedy for one in plan.checks}


def test_brokers_that_were_not_asked_make_checks_unknown() -> None:
    """Without settings, and with those of some brokers only."""
    image = zookeeper().image
    unasked = {one.name: one.verdict for one in preflight(image, None)}
    assert unasked["brokers"] is Verdict.YES
    assert unasked["inter.broker.protocol.version"] is Verdict.UNKNOWN
    assert unasked["authorizer.class.name"] is Verdict.UNKNOWN
    some = {one.name: one for one in preflight(image, {NodeId(0): READY}, "3.9")}
    assert some["software"].verdict is Verdict.YES
    assert some["brokers"].text == "brokers 1-2 did not answer"
    assert some["inter.broker.protocol.version"].verdict is Verdict.UNKNOWN


def test_a_cluster_without_controller_and_with_leftovers() -> None:
    """Both are in the way."""
    begun = {
        one.name: one.verdict for one in preflight(zookeeper(z.migration(3000, 8)).image, None)
    }
    assert begun["migration"] is Verdict.NO
    bare = after([*z.reading("s1", [z.broker(1, {}, 10)], 50), z.following()])
    assert {one.name: one.verdict for one in preflight(bare.image, None)}[
        "controller"
    ] is Verdict.NO
