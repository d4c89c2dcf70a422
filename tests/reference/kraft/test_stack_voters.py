"""A stack with controllers of both kinds and their voters in the log, by the commands of its user.

By night; the options that it is described by are in `tests.stack.test_components`.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from featurewatch.stack.java.jars import Cache
from featurewatch.streams.kraft.directory.files import read_meta
from tests.reference.kraft.voter_process import Described, described
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.nightly]

OURS, KAFKAS = 101, 103
VOTERS = {101, 102, 103}


class Stack:
    """One of ours and two of Kafka's above a broker."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.topics = 0

    def run(self, *arguments: str) -> str:
        """Runs a command; what it prints."""
        done = self._try(*arguments)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr[-2000:])
        return done.stdout

    def _try(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        program = "from featurewatch.cli.main import main; main()"
        command = [sys.executable, "-c", program, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    def stack(self, *arguments: str) -> str:
        """Runs a command of the stack; what it prints."""
        return self.run("stack", *arguments, "--directory", str(self.directory))

    def up(self, *options: str) -> None:
        """Starts the stack, or resumes it at the same addresses."""
        printed = self.stack("up", *options, "--json")
        status: dict[str, Any] = json.loads(printed)
        self.controllers = str(status["controllers"])
        self.servers = str(status["bootstrap_servers"])

    def quorum(self, *arguments: str) -> None:
        """Runs a command on the quorum, again while it finds that a stopped controller runs.

        The leader knows only when each controller has fetched last.
        """
        command = ("quorum", *arguments, "--bootstrap-controller", self.controllers)
        tries: list[subprocess.CompletedProcess[str]] = []

        def succeeds() -> bool:
            tries.append(self._try(*command))
            assert tries[-1].returncode == 0 or "shut it down first" in tries[-1].stderr, tries[-1]
            return tries[-1].returncode == 0

        assert eventually(succeeds), tries[-1]

    def described(self) -> Described | None:
        """The quorum as its leader describes it; None: there is none now."""
        for server in self.controllers.split(","):
            if found := asyncio.run(described(int(server.rpartition(":")[2]))):
                return found
        return None

    def votes(self, expected: set[int]) -> bool:
        """Whether these are the voters."""
        found = self.described()
        return found is not None and {one.replica_id for one in found.current_voters} == expected

    def observes(self, node_id: int) -> bool:
        """Whether a node has the whole log without a vote."""
        found = self.described()
        return found is not None and any(
            one.replica_id == node_id and one.log_end_offset >= found.high_watermark - 2
            for one in found.observers
        )

    def create_topic(self) -> None:
        """Creates a topic by the broker."""
        self.topics += 1
        name = f"topic-{self.topics}"
        admin = AdminClient({"bootstrap.servers": self.servers})
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(60)

    def replace(self, node_id: int) -> None:
        """Removes a voter while it is down, starts it as an observer, and adds it again."""
        node = self.directory / f"node-{node_id}"
        self.stack("node", "stop", str(node_id))
        self.quorum(
            "remove-controller",
            "-i",
            str(node_id),
            "-d",
            read_meta(node / "data" / "meta.properties")["directory.id"],
            "--yes",
        )
        assert eventually(lambda: self.votes(VOTERS - {node_id}))
        self.create_topic()
        self.stack("node", "start", str(node_id))
        assert eventually(lambda: self.observes(node_id))
        config = str(node / "server.properties")
        self.quorum("add-controller", "--command-config", config, "--yes")
        assert eventually(lambda: self.votes(VOTERS))
        self.create_topic()


@pytest.fixture
def stack(tmp_path: Path, stack_cache: Cache) -> Iterator[Stack]:
    """A stack that is up."""
    stack = Stack(tmp_path / "stack")
    try:
        stack.up("--mixed-controllers", "1:2", "--dynamic-voters", "--nodes", "1")
        yield stack
    finally:
        stack.stack("down", "--remove")


def test_voters_of_both_kinds_are_removed_and_added(stack: Stack) -> None:
    """Ours and one of Kafka's; whichever leads is killed between, and the stack is resumed."""
    assert eventually(lambda: stack.votes(VOTERS))
    stack.create_topic()
    for node_id in (OURS, KAFKAS):
        stack.replace(node_id)
        found = stack.described()
        assert found is not None
        stack.stack("node", "kill", str(found.leader_id))
        assert eventually(lambda: stack.described() is not None)
        stack.create_topic()
        stack.stack("node", "start", str(found.leader_id))
    stack.stack("down")
    stack.up()
    assert eventually(lambda: stack.votes(VOTERS))
    stack.create_topic()
