"""``--dialect kip-4``: the commands send the draft's requests to nodes on real sockets.

The nodes are those of the draft's client: two of them, of which 101 is the controller, with a topic
t whose partition 0 has the replicas 1 and 2. The test of a real ensemble is
`tests.stack.test_controlled_brokers`.
"""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from featurewatch.reference.zookeeper.wire.api_keys import (
    KIP4_ALTER_TOPIC,
    KIP4_CLUSTER_METADATA,
    KIP4_CREATE_TOPIC,
    KIP4_DELETE_TOPIC,
    KIP4_PREFERRED_REPLICA_LEADER_ELECTION,
    KIP4_REASSIGN_PARTITION,
    KIP4_VERIFY_REASSIGN_PARTITION,
    ApiDialect,
)
from tests.admin.kip4.draft_nodes import DraftNodes
from tests.cli.released_node import ReleasedNode
from tests.conformance.kafka_tools import CommandResult, OurCommand
from tests.reference.zookeeper.machines.controller_rig import P0

pytestmark = pytest.mark.form("document")

PARTITION_LINE = (
    "\tTopic: {}\tPartition: {}\tLeader: {}\tReplicas: {}\tIsr: {}\tElr: N/A\tLastKnownElr: N/A"
)


class Scene:
    """A command, and the nodes that it is sent to through the one that is not the controller."""

    def __init__(self, nodes: DraftNodes, command: OurCommand, directory: Path) -> None:
        self.nodes = nodes
        self._command = command
        self._directory = directory

    def __call__(self, line: str, *options: str) -> CommandResult:
        """What a command does."""
        where = ("--dialect", "kip-4", "--bootstrap-server", self.nodes.address(102))
        return self._command(*line.split(), *options, *where)

    def document(self, line: str, *options: str) -> Any:
        """The JSON that a command prints."""
        result = self(line, "--json", *options)
        return json.loads(result.out)

    def sent_keys(self) -> set[int]:
        """The keys of what the controller was sent."""
        return {key for node_id, key in self.nodes.requests if node_id == 101}

    def file(self, *partitions: dict[str, Any]) -> str:
        """A file for a reassignment or an election."""
        file = self._directory / "partitions.json"
        file.write_text(json.dumps({"version": 1, "partitions": partitions}))
        return str(file)


@pytest.fixture
def scene(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Iterator[Scene]:
    """Nodes that are served in another thread, as commands have their own loops."""
    with asyncio.Runner() as runner:
        loop, stack, nodes = runner.get_loop(), AsyncExitStack(), DraftNodes()
        runner.run(stack.enter_async_context(nodes))
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        try:
            yield Scene(nodes, OurCommand(monkeypatch, capsys, group=None), tmp_path)
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            runner.run(stack.aclose())


def move(number: int, *replicas: int) -> dict[str, Any]:
    """An entry of a reassignment's file."""
    return {"topic": "t", "partition": number, "replicas": replicas}


# -- topics ----------------------------------------------------------------------------------------


def test_topics_are_created_in_both_forms(scene: Scene) -> None:
    """By counts and by an assignment, with settings; the controller checks them (A-08, A-42)."""
    counts = ("--partitions", "2", "--replication-factor", "1", "--config", "flush.ms=5")
    assert scene("topics create --topic a", *counts).out == "Created topic a.\n"
    lists = ("--replica-assignment", "3:1,1:2")
    assert scene.document("topics create --topic b", *lists) == {
        "status": "OK",
        "results": [{"topic": "b", "error": None, "message": None}],
    }
    assert scene.sent_keys() == {KIP4_CREATE_TOPIC}
    described = scene("topics describe --topic b").out.splitlines()
    assert described == [
        "Topic: b\tPartitionCount: 2\tReplicationFactor: 2\tConfigs: ",
        PARTITION_LINE.format("b", 0, 3, "3,1", "3,1"),
        PARTITION_LINE.format("b", 1, 1, "1,2", "1,2"),
    ]
    (topic,) = scene.document("topics describe --topics-with-overrides")["topics"]
    assert (topic["topic"], topic["configs"]) == ("a", {"flush.ms": "5"})


def test_topics_are_altered_listed_and_deleted(scene: Scene) -> None:
    """An assignment adds partitions and moves replicas in one request; a deleted topic is listed
    as marked (A-13, A-14, A-21, A-42)."""
    options = ("--partitions", "2", "--replica-assignment", "1:3,2:3", "--add-config", "flush.ms=1")
    assert scene("topics alter --topic t", *options).out == "Altered topic t.\n"
    assert scene("topics alter --topic .* --delete-config flush.ms").code == 0
    assert scene.sent_keys() >= {KIP4_ALTER_TOPIC}
    (topic,) = scene.document("topics describe --under-replicated-partitions")["topics"]
    assert (topic["configs"], len(topic["partitions"])) == ({}, 1)
    assert scene("topics list").out == "t\n"
    shown = scene("topics delete --topic t --dry-run")
    assert (shown.out, shown.code) == ("t: 2 partitions\n", 0)
    assert "the sizes are not known: KIP-4's draft has no request for them" in shown.err
    assert KIP4_DELETE_TOPIC not in scene.sent_keys()
    assert scene("topics delete --topic t").out == "Topic t is marked for deletion.\n"
    assert scene("topics list").out == "t - marked for deletion\n"
    assert scene.document("topics list") == {"topics": [], "marked_for_deletion": ["t"]}


def test_a_controllers_refusal_is_one_line(scene: Scene) -> None:
    """In the controller's words, as a document with its code (A-36)."""
    refused = scene("topics create --topic t --partitions 1 --replication-factor 1")
    assert refused == CommandResult(1, "", "featurewatch: t: Topic 't' already exists.\n")
    assert scene.document("topics alter --topic t --partitions 1") == {
        "status": "FAILED",
        "results": [{"topic": "t", "error": 21, "message": "Topic already has 1 partitions."}],
    }
    wrong = scene("topics create --topic a --replica-assignment x")
    assert wrong.err.startswith("featurewatch: a: 'x' is not a list of replicas")
    missing = scene("topics describe --topic x")
    assert missing == CommandResult(1, "", "Topic 'x' does not exist as expected\n")
    assert scene("topics describe --topic x --if-exists").code == 0


def test_the_cluster_is_shown(scene: Scene) -> None:
    """By ClusterMetadata, of any node (A-05)."""
    document = scene.document("cluster metadata")
    assert document["controller_id"] == 101
    assert [broker["node_id"] for broker in document["brokers"]] == [1, 2, 3, 101, 102]
    assert scene.nodes.requests == [(102, KIP4_CLUSTER_METADATA)]


# -- replicas --------------------------------------------------------------------------------------


def test_a_reassignment_is_started_and_verified(scene: Scene) -> None:
    """The request returns when it is started; verify has the draft's numbers (A-24, A-27, A-28)."""
    file = ("--reassignment-json-file", scene.file(move(0, 3, 1)))
    shown = scene("reassign execute --dry-run", *file)
    assert (shown.code, shown.out) == (0, "t-0: 1,2 -> 3,1\n")
    assert KIP4_REASSIGN_PARTITION not in scene.sent_keys()
    started = scene("reassign execute", *file)
    assert started.out == "Successfully started partition reassignment for t-0\n"
    assert scene("reassign verify", *file).out.splitlines() == [
        "Status of partition reassignment:",
        "Reassignment of partition t-0 is still in progress.",
    ]
    assert "now)" in scene("reassign execute --dry-run", *file).out
    late = scene("reassign execute --wait --max-wait 0.1", *file)
    assert late.code == 1
    other = ("--reassignment-json-file", scene.file(move(0, 1, 2), move(9, 1)))
    states = scene.document("reassign verify", *other)["partitions"]
    assert [(item["status"], item["result_code"]) for item in states] == [
        ("in progress", 0),
        ("failed", -1),
    ]


def test_a_command_waits_for_the_end_of_a_reassignment(scene: Scene) -> None:
    """As the future of the draft's client does (A-25, A-37)."""
    file = ("--reassignment-json-file", scene.file(move(0, 1, 2)))
    done = scene("reassign execute --wait", *file)
    assert (done.code, done.out.splitlines()[1:]) == (
        0,
        ["Reassignment of partition t-0 is completed."],
    )
    assert scene.sent_keys() == {KIP4_REASSIGN_PARTITION, KIP4_VERIFY_REASSIGN_PARTITION}
    refused = scene("reassign execute", "--reassignment-json-file", scene.file(move(9, 1)))
    assert refused.code == 1
    assert refused.err.startswith("featurewatch: t-9: The partition does not exist")


def test_the_controller_parses_the_file(scene: Scene, tmp_path: Path) -> None:
    """What is not JSON goes there, and starts nothing (A-23)."""
    (tmp_path / "x.json").write_text("{")
    refused = scene("reassign execute --reassignment-json-file", str(tmp_path / "x.json"))
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("featurewatch: The string cannot be read: ")
    assert KIP4_REASSIGN_PARTITION in scene.sent_keys()


def test_preferred_leaders_are_elected(scene: Scene) -> None:
    """Of one partition, of a file, and of all; the command returns when they lead (A-29, A-31,
    A-39)."""
    one = ("--topic", "t", "--partition", "0")
    done = scene("elect preferred", *one)
    assert done.out == ("Successfully completed leader election (PREFERRED) for partitions t-0\n")
    assert KIP4_PREFERRED_REPLICA_LEADER_ELECTION in scene.sent_keys()
    assert scene.document("elect preferred --all-topic-partitions") == {
        "election_type": "PREFERRED",
        "partitions": [{"topic": "t", "partition": 0, "status": "completed", "result_code": 1}],
    }
    refused = scene("elect preferred", "--path-to-json-file", scene.file(move(9)))
    assert refused == CommandResult(1, "", "featurewatch: Partition t-9 does not exist.\n")
    scene.nodes.rig.alter_isr(P0, 1, 2)
    assert scene("elect preferred --dry-run", *one).out == "t-0: \n"
    assert scene("elect preferred --dry-run --all-topic-partitions").out == ""


# -- what the draft does not have ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("topics create --topic a --partitions 1 --replication-factor 1 --dry-run", "--dry-run"),
        ("topics create --topic a --replica-assignment 1 --if-not-exists", "--if-not-exists"),
        ("topics alter --topic t --partitions 2 --dry-run", "--dry-run"),
        ("topics describe --topic-id x", "--topic-id"),
        ("topics describe --at-min-isr-partitions", "--at-min-isr-partitions"),
        ("topics describe --partition-size-limit-per-response 9", "--partition-size-limit-per"),
        ("reassign execute --reassignment-json-file f --throttle -1", "--throttle"),
        ("reassign execute --reassignment-json-file f --timeout 10000", "--timeout"),
        ("reassign execute --reassignment-json-file f --additional", "--additional"),
        ("reassign execute --reassignment-json-file f --force", "--force"),
        ("reassign verify --reassignment-json-file f --preserve-throttles", "--preserve-throttles"),
    ],
)
def test_an_option_without_a_place_is_named(scene: Scene, line: str, option: str) -> None:
    """Even with its default; nothing is sent."""
    refused = scene(line)
    assert (refused.code, refused.out, scene.nodes.requests) == (2, "", [])
    assert f"{option}" in refused.err
    assert "has no place in KIP-4's draft" in refused.err


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("reassign list", "KIP-4's draft has no request for this command"),
        ("reassign cancel --reassignment-json-file f", "no request for this command"),
        (
            "reassign generate --topics-to-move-json-file f --broker-list 1",
            "no request for this command",
        ),
        ("elect unclean --all-topic-partitions", "no request for this command"),
        ("topics list --compat 3.9", "--compat is for released Kafka"),
        ("topics create --topic a", "KIP-4's draft has no default counts"),
        ("topics create --topic a --partitions 1", "KIP-4's draft has no default counts"),
        ("topics alter --topic t", "nothing is to be changed"),
    ],
)
def test_what_has_no_request_is_wrong_usage(scene: Scene, line: str, reason: str) -> None:
    """In one line; nothing is sent."""
    refused = scene(line)
    assert (refused.code, refused.out, scene.nodes.requests) == (2, "", [])
    assert reason in refused.err
    assert refused.err.count("\n") == 1


def test_a_node_of_released_kafka_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At once, in one line; nothing is sent that it would misread."""
    command = OurCommand(monkeypatch, capsys, group=None)
    with ReleasedNode(ApiDialect.RELEASED).served() as node:
        where = ("--dialect", "kip-4", "--bootstrap-server", node.address)
        for line in (
            "topics delete --topic t",
            "elect preferred --all-topic-partitions",
            "cluster metadata",
        ):
            assert command(*line.split(), *where) == CommandResult(
                1,
                "",
                f"featurewatch: {node.address} does not serve the draft of KIP-4, as no released "
                "Kafka does: give the address of a controller of the reference system\n",
            )
        assert node.requests == []
