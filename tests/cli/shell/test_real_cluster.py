"""The shell against a real cluster: a script of changes, and its names at a terminal."""

import asyncio
import uuid
from pathlib import Path

import pytest

from featurewatch.cli.commands.shell.names_reader import read_names
from featurewatch.cli.commands.shell.target import shell_target
from featurewatch.stack.kafka.cluster import Cluster
from tests.cli.shell.shells import shell
from tests.cli.shell.terminals import shell_terminal
from tests.waiting import eventually

pytestmark = pytest.mark.stack


def test_topics_are_made_shown_completed_and_deleted(bus: Cluster, tmp_path: Path) -> None:
    """One script for the changes; Tab knows the new topic, and forgets the deleted one."""
    pytest.importorskip("prompt_toolkit", reason="install the extra shell")
    server = ("--bootstrap-server", bus.bootstrap_servers)
    topic = f"shell-{uuid.uuid4().hex[:12]}"  # the bus is shared, and a failed test runs again
    target = shell_target(bus.bootstrap_servers, None, None)
    create = f"topics create --topic {topic} --partitions 2 --replication-factor 1\n"
    created = shell(tmp_path, *server, lines=create)
    assert f"Created topic {topic}." in created.stdout
    assert eventually(lambda: topic in asyncio.run(read_names(target)).topics)
    made = shell(
        tmp_path,
        *server,
        lines=(
            f"topics describe --topic {topic}\n"
            f"elect preferred --topic {topic} --partition 0\n"
            "reassign list\n"
            "cluster metadata\n"
            "features describe\n"
            f"topics create --topic {topic}\n"
            "topics list\n"
        ),
    )
    assert made.returncode == 1, made.stderr
    assert "PartitionCount: 2" in made.stdout
    assert "Valid replica already elected" in made.stdout
    assert f"Cluster: {bus.cluster_id}" in made.stdout
    assert "Feature: metadata.version" in made.stdout
    assert "already exists" in made.stdout
    assert "line 6 failed with exit code 1: nothing after it ran" in made.stderr

    names = asyncio.run(read_names(target))
    assert topic in names.topics
    assert [broker.node_id for broker in names.brokers] == ["1"]
    assert "metadata.version" in [feature.name for feature in names.features]

    with shell_terminal(tmp_path, *server) as terminal:
        terminal.prompts(f"{bus.bootstrap_servers}>")

        def is_completed() -> bool:
            # From an empty line (Ctrl-U): a second Tab would take back what the first completed.
            terminal.type(f"\x15topics describe --topic {topic[:-8]}\t")
            return eventually(lambda: topic[-8:] in terminal.text, 2)  # what was not typed

        assert eventually(is_completed)
        terminal.enter("")
        terminal.shows("PartitionCount: 2")
        terminal.prompts(f"{bus.bootstrap_servers}>")
        terminal.enter(f"topics delete --topic {topic} --yes")
        terminal.prompts(f"{bus.bootstrap_servers}>")
        terminal.enter("exit")
        assert terminal.ends() == 0
    assert eventually(lambda: topic not in asyncio.run(read_names(target)).topics)


def test_a_shell_of_controllers_reads_features(quorum_430: Cluster, tmp_path: Path) -> None:
    """What brokers alone serve is refused; what controllers serve runs."""
    controllers = quorum_430.controllers
    controller = ("--bootstrap-controller", controllers)
    done = shell(tmp_path, *controller, "-c", "features describe", "-c", "reassign list")
    assert done.returncode == 0, done.stderr
    assert "Feature: metadata.version" in done.stdout
    names = asyncio.run(read_names(shell_target(None, controllers, None)))
    assert "metadata.version" in [feature.name for feature in names.features]
    assert list(names.topics) == []
