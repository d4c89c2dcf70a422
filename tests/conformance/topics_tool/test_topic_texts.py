"""Every byte that ``kafka-topics`` prints, and its exit code, from ``featurewatch topics``."""

import time
from collections.abc import Collection

import pytest

from featurewatch.deploy.kafka.cluster import Cluster
from tests.conformance.kafka_tools import KafkaTool, OurCommand
from tests.conformance.topics_tool.pair import ToolPair

pytestmark = pytest.mark.stack

CREATED = (
    "create --topic %-one --partitions 3 --replication-factor 2",
    "create --topic %-defaults",
    "create --topic %.dotted",
    "create --topic %-under_score --partitions 1",
    "create --topic %-assigned --replica-assignment 1:2,2:3,3:1",
    "create --topic %-spaces --replica-assignment ' 1 : 2 , 2 : 3 '",
    "create --topic %-configs --config retention.ms=1000 --config cleanup.policy=compact,delete "
    "--config 'min.insync.replicas = 2' --replication-factor 3",
    "create --topic %-tight --config min.insync.replicas=3 --replication-factor 2",
    "create --topic %-same --if-not-exists",
    "create --topic %-last --config retention.ms=1 --config retention.ms=2",
    "create --topic %-plus --partitions +2",
)
"""Creations that succeed."""

REFUSED = (
    "create --topic %-one",
    "create --topic %-one --if-not-exists",
    "create --topic %-one --if-not-exists --partitions 7 --config retention.ms=9",
    "create --topic %_one --replication-factor 77",
    "create --topic %-new --replication-factor 9",
    "create --topic %-new --replication-factor 0",
    "create --topic %-new --replication-factor -1",
    "create --topic %-new --replication-factor 32768",
    "create --topic %-new --partitions 0",
    "create --topic %-new --partitions -5 --replication-factor 0",
    "create --topic %-new --partitions abc",
    "create --topic %-new --partitions ''",
    "create --topic %-new --partitions 2147483648",
    "create --topic %-new --partitions 1.5 --replication-factor x",
    "create --topic %-new --replication-factor x",
    "create --topic %-new --config nonsense=1",
    "create --topic %_new --config nonsense=1",
    "create --topic %-new --config retention.ms=abc",
    "create --topic %-new --config cleanup.policy=never",
    "create --topic %-new --config retention.ms",
    "create --topic %-new --config retention.ms=",
    "create --topic %-new --config retention.ms=1=2",
    "create --topic %-new --config =1",
    "create --topic %-new --config segment.bytes=1",
    "create --topic %-new --config min.insync.replicas=0",
    "create --topic %-new --replica-assignment 1:1",
    "create --topic %-new --replica-assignment 1:2:2:1",
    "create --topic %-new --replica-assignment 1,2:3",
    "create --topic %-new --replica-assignment 1:x",
    "create --topic %-new --replica-assignment ,1",
    "create --topic %-new --replica-assignment 1:,x",
    "create --topic %-new --replica-assignment 99999999999",
    "create --topic %-new --replica-assignment 7",
    "create --topic %-new --replica-assignment 1:7",
    "create --topic %-new --replica-assignment -1",
    "create --topic %/new",
    "create --topic .",
    "create --topic ..",
    "create --topic ''",
    "create --topic 'two words'",
    "create --topic ä",
    f"create --topic {'x' * 250}",
    "create --topic __cluster_metadata",
    "create --topic %-one --topic %-two",
    "create --topic %-new --partitions 1 --partitions 2",
    "create --topic %-new --replica-assignment 1 --replica-assignment 2",
    "create --topic %-new --replica-assignment 1 --partitions 2",
    "create --topic %-new --replica-assignment 1 --replication-factor 2",
    "create",
    "create --partitions 3",
    "alter --topic %-nothing --partitions 3",
    "alter --topic %-nothing --partitions 3 --if-exists",
    "alter --topic %-one --partitions 3",
    "alter --topic %-one --partitions 1",
    "alter --topic %-one --partitions 0",
    "alter --topic %-one --partitions x",
    "alter --topic %-one --partitions 4 --replica-assignment 1:2,2:3,3:1",
    "alter --topic %-one --partitions 4 --replica-assignment 1:2,2:3,3:1,7:8",
    "alter --topic %-one --partitions 5 --replica-assignment 1:2,2:3,3:1,1:2",
    "alter --topic %-one --partitions 4 --replica-assignment 1:2,2:3,3:1,1:1",
    "alter --topic %-one --partitions 4 --replica-assignment 1,2,3,1",
    "alter --topic %-one --replica-assignment 1:2",
    "alter --topic %-one",
    "alter --partitions 3",
    "alter",
    "delete --topic %-nothing",
    "delete --topic %-nothing --if-exists",
    "delete --topic ''",
    "delete --topic '%-('",
    "delete --topic %-one --topic %-two",
    "delete",
)
"""Refusals by the cluster and by the tool, and what has no effect."""

SHOWN = (
    "list --topic '%.*'",
    "list --topic %-one,%-assigned",
    "list --topic ' \"%-o.*\" '",
    "list --topic %-nothing",
    "list --topic '%-(one|last)' --exclude-internal",
    "list --topic '['",
    "list --topic a --topic b",
    "describe --topic '%.*'",
    "describe --topic %-one",
    "describe --topic %-configs,%-tight",
    "describe --topic '%.*' --topics-with-overrides",
    "describe --topic '%.*' --under-replicated-partitions",
    "describe --topic '%.*' --unavailable-partitions",
    "describe --topic '%.*' --under-min-isr-partitions",
    "describe --topic '%.*' --at-min-isr-partitions",
    "describe --topic '%.*' --at-min-isr-partitions --under-min-isr-partitions",
    "describe --topic '%.*' --partition-size-limit-per-response 2",
    "describe --topic '%.*' --exclude-internal",
    "describe --topic %-nothing",
    "describe --topic %-nothing --if-exists",
    "describe --topic ''",
    "describe --topic '('",
    "describe --if-exists",
    "describe --topic %-one --topic-id AAAAAAAAAAAAAAAAAAAAAA",
    "describe --topic %-one --topic-id AAAAAAAAAAAAAAAAAAAAAA --if-exists",
    "describe --topic-id AAAAAAAAAAAAAAAAAAAAAQ",
    "describe --topic-id AAAAAAAAAAAAAAAAAAAAAQ --if-exists",
    "describe --topic-id abc",
    "describe --topic-id AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "describe --topic a --topic b",
    "describe --topic %-one --partition-size-limit-per-response x",
    "describe --under-replicated-partitions --topics-with-overrides",
    "describe --at-min-isr-partitions --topics-with-overrides",
    "describe --topic %-one --unavailable-partitions --topics-with-overrides",
)
"""What reads, of topics that the tool has created."""

ALTERED = (
    "alter --topic %-one --partitions 4",
    "alter --topic %-assigned --partitions 5 --replica-assignment 1:2,2:3,3:1,1:3,2:1",
    "alter --topic '%-(one|plus)' --partitions 6",
    "alter --topic '%-(one|plus)' --partitions 6",
)
"""Changes of topics that exist."""


ENDED = ("delete --topic %-one", "delete --topic '%.*'", "delete --topic '%.*'")
"""Deletions; the last one finds no topic any more."""

UNKNOWN_BROKERS = (
    "create --topic %-new --replica-assignment 7",
    "create --topic %-new --replica-assignment 1:7",
    "create --topic %-new --replica-assignment -1",
)
"""What a controller in ZooKeeper mode accepts, and waits for in vain until the time is up."""


def walk(pair: ToolPair, left_out: Collection[str] = ()) -> None:
    """Creates, shows, alters and deletes topics by both."""
    for line in CREATED:
        assert pair.is_equal(line).code == 0, line
    created = {line.split()[2] for line in CREATED}
    for prefix in (pair.tool_prefix, pair.our_prefix):
        pair.wait_until({name.replace("%", prefix) for name in created}.issubset)
    for line in REFUSED:
        if line not in left_out:
            pair.is_equal(line)
    for line in SHOWN:
        pair.is_equal_on(pair.tool_prefix, line)
    for line in ALTERED:
        pair.is_equal(line)
    for prefix in (pair.tool_prefix, pair.our_prefix):
        pair.is_equal_on(prefix, "describe --topic '%.*'")
    *deletions, last = ENDED
    for line in deletions:
        pair.is_equal(line)
    prefixes = (pair.tool_prefix, pair.our_prefix)
    pair.wait_until(lambda listed: not any(name.startswith(prefixes) for name in listed))
    pair.is_equal(last)


def test_the_texts_are_those_of_the_tool(
    tool: KafkaTool, ours: OurCommand, cluster: Cluster
) -> None:
    """stdout, stderr and exit code of some 120 invocations in KRaft mode: topics by counts and by
    assignments, with settings; refusals by controller and tool; partitions that are added; what is
    listed and described, also page by page; deletions (A-08, A-09, A-10, A-11, A-13, A-16 to A-20,
    A-35, A-36, A-42)."""
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
