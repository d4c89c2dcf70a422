"""Reassignments that run, and their throttles, by Kafka's tool and by ``featurewatch``."""

import json
from pathlib import Path

import pytest

from featurewatch.admin.cluster.configs import ConfigOwner, OwnConfigs
from featurewatch.admin.reassignments.throttles import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
)
from featurewatch.controller.partitions.assignment import TopicPartition
from tests.conformance.kafka_tools import REASSIGN, CommandResult, OurCommand
from tests.conformance.partition_tools.conftest import ToolScene
from tests.conformance.partition_tools.running import fill, throttles_of
from tests.conformance.partition_tools.tools import make_topic, move, until_known, write_assignment
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.form("released")]

FILE = "--reassignment-json-file"


def rates(rate: str, *broker_ids: int) -> OwnConfigs:
    """The throttles of these brokers."""
    values = {LEADER_RATE: rate, FOLLOWER_RATE: rate}
    return {ConfigOwner.broker(broker_id): values for broker_id in broker_ids}


def test_changes_are_printed_as_by_the_tool(
    scene: ToolScene, ours: OurCommand, tmp_path: Path
) -> None:
    """execute, with throttles and without, verify of what is completed, and the throttles that both
    set: the same lines, the same settings, and after verify none (A-22 as released,
    A-24, A-37 as released, A-42 as released)."""
    servers, name = scene.servers, "changed"
    make_topic(servers, name, [1, 2], [2, 3])
    first, second = TopicPartition(name, 0), TopicPartition(name, 1)
    before = {first: (1, 2), second: (2, 3)}
    after = {second: (3, 1), first: (2, 3)}
    file = write_assignment(tmp_path / "after", after)
    lists = {LEADER_REPLICAS: "0:1,0:2,1:2,1:3", FOLLOWER_REPLICAS: "0:3,1:1"}
    throttled = {ConfigOwner.topic(name): lists, **rates("5000000", 1, 2, 3)}
    tried: list[tuple[tuple[str, ...], OwnConfigs]] = [
        ((file,), {}),
        ((file, "--throttle", "5000000"), throttled),
    ]

    def steps(by_ours: bool) -> list[CommandResult]:
        def run(action: str, *options: str) -> CommandResult:
            where = ("--bootstrap-server", servers, *options)
            if by_ours:
                return ours.as_the_tool("reassign", action, *where, *scene.compat)
            return scene.tools(REASSIGN, f"--{action}", *where)

        results = []
        for options, wanted in tried:
            move(servers, before)
            results.append(run("execute", FILE, *options))
            assert eventually(lambda: throttles_of(servers, name) == wanted, 60)  # noqa: B023
            move(servers, after)
            results.append(run("verify", FILE, file, "--preserve-throttles"))
            assert throttles_of(servers, name) == wanted
            results.append(run("verify", FILE, file))
            assert eventually(lambda: throttles_of(servers, name) == {}, 60)
        return results

    expected, result = steps(by_ours=False), steps(by_ours=True)
    assert result == expected
    assert [item.code for item in expected] == [0] * 6


def test_what_runs_is_printed_as_by_the_tool(
    scene: ToolScene, ours: OurCommand, tmp_path: Path
) -> None:
    """A throttled reassignment of data: list, verify, a second one that is refused, the throttle
    that is changed, and cancel, which puts back what was there (A-25 as released, A-26 as
    released, A-38 as released)."""
    servers, name = scene.servers, "running"
    make_topic(servers, name, [1])
    fill(servers, name)
    partition = TopicPartition(name, 0)
    target = write_assignment(tmp_path / "target", {partition: (2, 3)})
    where = ("--bootstrap-server", servers)
    actions: list[tuple[str, ...]] = [
        ("list",),
        ("verify", FILE, target),
        ("execute", FILE, target),
        ("execute", FILE, target, "--additional", "--throttle", "2000"),
        ("list",),
        ("cancel", FILE, target),
    ]
    ended = [("verify", FILE, target), ("cancel", FILE, target), ("list",)]

    def steps(by_ours: bool) -> list[CommandResult]:
        begun = ours.as_the_tool("reassign", "execute", *where, FILE, target, "--throttle", "1000")
        assert begun.code == 0, begun
        until_known(servers, partition, 1, 2, 3)
        results = [run(by_ours, *action) for action in actions]
        until_known(servers, partition, 1)
        return results + [run(by_ours, *action) for action in ended]

    def run(by_ours: bool, action: str, *options: str) -> CommandResult:
        if by_ours:
            return ours.as_the_tool("reassign", action, *where, *options, *scene.compat)
        return scene.tools(REASSIGN, f"--{action}", *where, *options)

    expected = steps(by_ours=False)
    result = steps(by_ours=True)
    assert [item.code for item in expected] == [0, 0, 1, 0, 0, 0, 0, 0, 0]
    assert result == expected
    assert eventually(lambda: throttles_of(servers, name) == {}, 60)


def test_a_proposal_is_one_that_the_tool_would_make(
    scene: ToolScene, ours: OurCommand, tmp_path: Path
) -> None:
    """generate: the present assignment as the tool prints it, and a proposal of the same form with
    as many replicas, each broker once, spread evenly."""
    servers, name = scene.servers, "proposed"
    make_topic(servers, name, [1, 2], [1, 2], [1, 2])
    file = tmp_path / "topics"
    file.write_text(json.dumps({"version": 1, "topics": [{"topic": name}]}))
    options = ("--topics-to-move-json-file", str(file), "--broker-list", "1,2,3")
    where = ("--bootstrap-server", servers, *options)
    expected = scene.tools(REASSIGN, "--generate", *where)
    result = ours.as_the_tool("reassign", "generate", *where, *scene.compat)
    *lines, proposal = result.out.splitlines()
    *expected_lines, expected_proposal = expected.out.splitlines()
    assert lines == expected_lines
    shape = [one.keys() for one in json.loads(expected_proposal)["partitions"]]
    partitions = json.loads(proposal)["partitions"]
    assert [one.keys() for one in partitions] == shape
    leaders = [one["replicas"][0] for one in partitions]
    assert sorted(leaders) == [1, 2, 3]
    assert all(len({*one["replicas"]}) == 2 for one in partitions)
