"""Voters are added and removed across kinds, by Kafka's own tool (KIP-853)."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from featurewatch.common.private_files import write_private
from featurewatch.stack.java.jars import Cache, tool_command
from featurewatch.stack.kafka.ids import random_id
from featurewatch.stack.kafka.node import KafkaNode
from featurewatch.stack.kafka.server_properties import Addresses
from featurewatch.stack.kafka.specs import NodeSpec, Roles
from featurewatch.stack.process.ports import LOOPBACK, Ports
from tests.reference.kraft.voter_process import VoterProcess, described
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.nightly]

RELEASE: Final = "4.3.1"
OURS, JAVA = 1, 2


class Pair:
    """One controller of each kind; the quorum begins with one of them."""

    def __init__(self, directory: Path, cache: Cache, ports: Ports) -> None:
        self._cache = cache
        self.cluster_id = random_id()
        self.ports = {one: ports.reserve() for one in (OURS, JAVA)}
        self._directories = {OURS: directory / "ours", JAVA: directory / "kafkas"}
        self.java = KafkaNode(
            NodeSpec(JAVA, RELEASE, Roles.CONTROLLER),
            Addresses(None, self.ports[JAVA]),
            self._directories[JAVA],
            self._properties(JAVA, self._directories[JAVA] / "data"),
            cache,
            256,
            temporary=True,
        )
        self.ours: VoterProcess | None = None

    def _properties(self, node_id: int, logs: Path) -> dict[str, str]:
        return {
            "process.roles": "controller",
            "node.id": str(node_id),
            "controller.quorum.bootstrap.servers": f"{LOOPBACK}:{self.ports[OURS]},"
            f"{LOOPBACK}:{self.ports[JAVA]}",
            "listeners": f"CONTROLLER://{LOOPBACK}:{self.ports[node_id]}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
            "log.dirs": str(logs),
        }

    def start_ours(self, *options: str) -> None:
        """Starts our controller."""
        address = f"{OURS}@{LOOPBACK}:{self.ports[OURS]}"
        self.ours = VoterProcess(
            OURS,
            [address],
            self._directories[OURS],
            *("--controller", "4.3", *options),
            cluster_id=self.cluster_id,
            orders=False,
        )
        self.ours.expect("listening")

    def start_java(self, *arguments: str) -> None:
        """Formats and starts Kafka's controller."""
        self.java.directory.mkdir(parents=True)
        self.java.format(self.cluster_id, arguments)
        self.java.start(wait=False)

    def voters(self, leader: int) -> dict[int, str]:
        """The directory ids of the voters as a leader describes them; empty: it does not lead."""
        found = asyncio.run(described(self.ports[leader]))
        if found is None:
            return {}
        return {one.replica_id: str(one.replica_directory_id) for one in found.current_voters}

    def observes(self, leader: int, node_id: int) -> bool:
        """Whether a leader has an observer with the whole log."""
        found = asyncio.run(described(self.ports[leader]))
        return found is not None and any(
            one.replica_id == node_id and one.log_end_offset >= found.high_watermark - 2
            for one in found.observers
        )

    def add(self, leader: int, node_id: int) -> float:
        """Adds a voter by ``kafka-metadata-quorum``; the seconds until the leader has it."""
        assert eventually(lambda: self.observes(leader, node_id))
        config = self._directories[node_id] / "added.properties"
        logs = self.java.data if node_id == JAVA else self._directories[OURS]
        lines = [f"{name}={value}" for name, value in self._properties(node_id, logs).items()]
        write_private(config, "\n".join(lines))
        return self._until(
            lambda: self._tool(leader, "--command-config", str(config), "add-controller"),
            lambda: set(self.voters(leader)) == {OURS, JAVA},
        )

    def remove(self, leader: int, node_id: int) -> float:
        """Removes a voter by ``kafka-metadata-quorum``; the seconds until the leader lacks it."""
        directory = meta(self.java.data if node_id == JAVA else self._directories[OURS])
        arguments = ("--controller-id", str(node_id), "--controller-directory-id", directory)
        return self._until(
            lambda: self._tool(leader, "remove-controller", *arguments),
            lambda: set(self.voters(leader)) == {leader},
        )

    def _until(self, action: Callable[[], None], condition: Callable[[], bool]) -> float:
        action()
        began = time.monotonic()
        assert eventually(condition)
        return time.monotonic() - began

    def _tool(self, leader: int, *arguments: str) -> None:
        command = tool_command(
            RELEASE,
            "org.apache.kafka.tools.MetadataQuorumCommand",
            *("--bootstrap-controller", f"{LOOPBACK}:{self.ports[leader]}", *arguments),
            cache=self._cache,
        )
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stdout + done.stderr[-2000:]

    def stop(self) -> None:
        """Kills both."""
        self.java.kill()
        if self.ours is not None:
            self.ours.kill()


def meta(directory: Path) -> str:
    """The directory id in ``meta.properties``."""
    lines = (directory / "meta.properties").read_text().splitlines()
    return next(line.partition("=")[2] for line in lines if line.startswith("directory.id="))


@pytest.mark.parametrize("leader", [OURS, JAVA], ids=["ours leads", "Kafka's leads"])
def test_a_voter_of_the_other_kind_is_added_and_removed(
    stack_cache: Cache, tmp_path: Path, capsys: pytest.CaptureFixture[str], leader: int
) -> None:
    """It follows as an observer, votes after it was added, and does not after it was removed."""
    ports = Ports()
    pair = Pair(tmp_path, stack_cache, ports)
    other = JAVA if leader == OURS else OURS
    try:
        if leader == OURS:
            pair.start_ours("--standalone")
            pair.start_java("--no-initial-controllers")
        else:
            pair.start_java("--standalone")
            pair.start_ours("--bootstrap", f"{LOOPBACK}:{pair.ports[JAVA]}")
        assert eventually(lambda: set(pair.voters(leader)) == {leader})
        added_s = pair.add(leader, other)
        removed_s = pair.remove(leader, other)
        assert eventually(lambda: pair.observes(leader, other))
    finally:
        pair.stop()
        ports.release()
    with capsys.disabled():
        sys.stdout.write(f"\n  {leader} leads: added in {added_s:.1f} s, removed {removed_s:.1f} s")
