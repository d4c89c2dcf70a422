"""What ``featurewatch topics`` has and ``kafka-topics`` has not, on a real cluster."""

import io
import json
import sys
import time
from typing import Any

import pytest

from featurewatch.stack.kafka.cluster import Cluster
from tests.conformance.kafka_tools import CommandResult, OurCommand
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.form("released")]


class Terminal(io.StringIO):
    """The input of a person."""

    def isatty(self) -> bool:
        """A person sits there."""
        return True


class Topics:
    """The command on one cluster."""

    def __init__(self, command: OurCommand, servers: str) -> None:
        self._command, self._servers = command, servers

    def __call__(self, action: str, *flags: str) -> CommandResult:
        """What it prints."""
        return self._command(action, "--bootstrap-server", self._servers, *flags)

    def document(self, action: str, *flags: str) -> Any:
        """Its document."""
        return json.loads(self(action, "--json", *flags).out)

    def description(self, name: str) -> dict[str, Any]:
        """The description of a topic; empty if the topic does not exist."""
        topics = self.document("describe", "--topic", name, "--if-exists")["topics"]
        return topics[0] if topics else {}


@pytest.fixture
def topics(ours: OurCommand, quorum_430: Cluster) -> Topics:
    """The command on the shared cluster of 4.3.0."""
    return Topics(ours, quorum_430.bootstrap_servers)


def test_documents_and_dry_runs(topics: Topics) -> None:
    """What is validated only changes nothing; documents have results, and a refusal its number, its
    name and its text (A-08 as released, A-10, A-11 as released, A-14 as released,
    A-17 as released)."""
    name = f"topics{time.time_ns()}"
    counts = ("--topic", name, "--partitions", "2", "--replication-factor", "3")
    result = topics("create", *counts, "--dry-run")
    assert (result.code, result.out) == (0, f"Topic {name} can be created.\n")
    assert topics.description(name) == {}
    created = topics.document("create", *counts, "--config", "retention.ms=77")
    assert (created["status"], created["results"][0]["partitions"]) == ("OK", 2)
    assert eventually(lambda: topics.description(name).get("partition_count") == 2, 60)
    refused = topics("create", "--topic", name, "--json")
    assert refused.code == 1
    (item,) = json.loads(refused.out)["results"]
    assert (item["error"], item["error_name"]) == (36, "TOPIC_ALREADY_EXISTS")
    assert item["message"] == f"Topic '{name}' already exists."

    change = ("--topic", name, "--add-config", "cleanup.policy=[compact,delete],segment.ms=9999999")
    assert topics("alter", *change, "--dry-run").out == f"Topic {name} can be altered.\n"
    deletion = ("--delete-config", "retention.ms", "--partitions", "3")
    result = topics("alter", *change, *deletion)
    assert (result.code, result.out) == (0, f"Completed updating config for topic {name}.\n")

    def is_altered() -> bool:
        found = topics.description(name)
        configs = found["configs"]
        return (
            found["partition_count"] == 3
            and configs.get("cleanup.policy") == "compact,delete"
            and configs.get("segment.ms") == "9999999"
            and "retention.ms" not in configs
        )

    assert eventually(is_altered, 60)
    wrong = topics("alter", "--topic", name, "--delete-config", "retention.mss")
    assert (wrong.code, wrong.out) == (
        1,
        "Error while executing topic command : Invalid config(s): retention.mss\n",
    )
    shown = topics("delete", "--topic", name, "--dry-run")
    assert (shown.code, shown.out) == (0, f"{name}: 3 partitions, 0 bytes\n")
    assert topics.document("delete", "--topic", name, "--dry-run")["topics"] == [
        {"topic": name, "partitions": 3, "bytes": 0}
    ]
    assert topics.document("delete", "--topic", name)["status"] == "OK"
    assert eventually(lambda: topics.description(name) == {}, 60)


def test_a_person_is_asked(topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a terminal a deletion is shown and asked about; any other reply than yes sends nothing."""
    name = f"topics{time.time_ns()}"
    assert topics("create", "--topic", name, "--partitions", "1").code == 0
    assert eventually(lambda: topics.description(name) != {}, 60)
    monkeypatch.setattr(sys, "stdin", Terminal("no\n"))
    result = topics("delete", "--topic", name)
    assert (result.code, result.out) == (1, "")
    assert f"{name}: 1 partition, 0 bytes\nDelete this topic? [y/N]" in result.err
    assert "nothing is changed" in result.err
    monkeypatch.setattr(sys, "stdin", Terminal("no\n"))
    result = topics("alter", "--topic", name, "--partitions", "5")
    assert f"{name}: 1 -> 5 partitions" in result.err
    assert topics.description(name)["partition_count"] == 1
    monkeypatch.setattr(sys, "stdin", Terminal("yes\n"))
    assert topics("delete", "--topic", name).code == 0
    assert eventually(lambda: topics.description(name) == {}, 60)


def test_the_cluster_is_shown(
    quorum_430: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its id, its brokers and its controller, as text and as a document."""
    command = OurCommand(monkeypatch, capsys, "cluster")
    where = ("metadata", "--bootstrap-server", quorum_430.bootstrap_servers)
    document = json.loads(command(*where, "--json").out)
    assert document["cluster_id"] == quorum_430.cluster_id
    assert [broker["node_id"] for broker in document["brokers"]] == [1, 2, 3]
    assert document["controller_id"] in (1, 2, 3)
    lines = command(*where).out.splitlines()
    assert lines[0] == f"Cluster: {quorum_430.cluster_id}"
    addresses = [line.split("Address: ")[1] for line in lines[2:]]
    assert sorted(addresses) == sorted(quorum_430.bootstrap_servers.split(","))


def test_an_unreachable_node_is_one_line(ours: OurCommand, closed_port: int) -> None:
    """At once, and with exit code 1; a controller's listener is named as such."""
    result = ours("list", "--bootstrap-server", f"127.0.0.1:{closed_port}")
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert str(closed_port) in result.err


def test_a_controllers_listener_is_no_broker(ours: OurCommand, quorum_430: Cluster) -> None:
    """Controllers have no topics to list."""
    result = ours("list", "--bootstrap-server", quorum_430.controllers)
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert "not a broker's listener" in result.err
