"""Every byte that ``kafka-topics`` prints, and its exit code, from ``featurewatch topics``."""

import time
from collections.abc import Collection

import pytest

from featurewatch.stack.kafka.cluster import Cluster
from tests.conformance.kafka_tools import KafkaTool, OurCommand
from tests.conformance.topics_tool.lines import (
    ALTERED,
    CREATED,
    ENDED,
    REFUSED,
    SHOWN,
    UNKNOWN_BROKERS,
)
from tests.conformance.topics_tool.pair import ToolPair

pytestmark = [pytest.mark.stack, pytest.mark.form("released")]


def walk(pair: ToolPair, left_out: Collection[str] = ()) -> None:
    """Creates, shows, alters and deletes topics by both."""
    for line in CREATED:
        assert pair.is_equal(line).code == 0, line
    created = {line.split()[2] for line in CREATED}
    prefixes = (pair.tool_prefix, pair.our_prefix)
    for prefix in prefixes:
        pair.wait_until({name.replace("%", prefix) for name in created}.issubset)
    for line in REFUSED:
        if line not in left_out:
            pair.is_equal(line)
    for line in SHOWN:
        pair.is_equal_on(pair.tool_prefix, line)
    for line in ALTERED:
        pair.is_equal(line)
    for prefix in prefixes:
        pair.is_equal_on(prefix, "describe --topic '%.*'")
    one, rest, nothing = ENDED
    pair.is_equal(one)
    pair.wait_until({f"{prefix}-one" for prefix in prefixes}.isdisjoint)
    pair.is_equal(rest)
    pair.wait_until(lambda listed: not any(name.startswith(prefixes) for name in listed))
    pair.is_equal(nothing)


def test_the_texts_are_those_of_the_tool(
    tool: KafkaTool, ours: OurCommand, cluster: Cluster
) -> None:
    """stdout, stderr and exit code of some 120 invocations in KRaft mode: topics by counts and by
    assignments, with settings; refusals by controller and tool; partitions that are added; what is
    listed and described, also page by page; deletions (A-09, A-10, A-13 as released, A-18 as
    released, A-19 as released, A-35, A-42 as released)."""
    walk(ToolPair(tool, ours, cluster.bootstrap_servers, f"topics{time.time_ns()}"))


def test_no_server_is_a_wrong_usage(tool: KafkaTool, ours: OurCommand) -> None:
    """Without ``--bootstrap-server`` there is nobody to ask (A-33)."""
    expected = tool("--list")
    result = ours("list")
    assert (result.code, result.out) == (expected.code, expected.out) == (1, "")
    assert result.err == expected.err.partition("\n")[0] + "\n"


@pytest.mark.parametrize("tool", ["3.9.1"], indirect=True)
def test_the_texts_are_those_of_the_tool_in_zookeeper_mode(
    tool: KafkaTool, ours: OurCommand, zookeeper_391: Cluster
) -> None:
    """The same invocations in ZooKeeper mode, where refusals have other texts, and where changes go
    to the controller alone (A-34)."""
    walk(ToolPair(tool, ours, zookeeper_391.bootstrap_servers, "topics"), UNKNOWN_BROKERS)
