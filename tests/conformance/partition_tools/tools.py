"""Kafka's own ``kafka-reassign-partitions`` and ``kafka-leader-election``, and our commands."""

import asyncio
import base64
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from featurewatch.admin.cluster.values import BrokerReplica
from featurewatch.admin.connections import Bootstrap
from featurewatch.admin.reassignments.client import ReassignmentAdmin
from featurewatch.admin.reassignments.types import ReassignmentStatus, Targets
from featurewatch.cli.main import main
from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.deploy.java.jars import Cache, Jars, java_command
from featurewatch.streams.net.address import parse_addresses
from scripts.java_source import compile_java
from tests.conformance.features_tool.kafka_features import CommandResult
from tests.waiting import eventually

_SOURCE = Path(__file__).resolve().parent / "java" / "PartitionTools.java"
_OUR_LINE = "featurewatch: "
ELECT = "elect"
REASSIGN = "reassign"


class PartitionTools:
    """The tools of a release, in a JVM that stays: they are run many times."""

    def __init__(self, process: "subprocess.Popen[str]", release: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.release = release
        self._in, self._out = process.stdin, process.stdout
        assert self._out.readline() == "ready\n"

    def __call__(self, tool: str, *arguments: str) -> CommandResult:
        """What a tool does with these arguments; its stack trace is left out."""
        self._in.write("\t".join((tool, *arguments)) + "\n")
        self._in.flush()
        code, out, err = self._out.readline().split()
        return without_trace(CommandResult(int(code), _decoded(out), _decoded(err)))


@contextmanager
def partition_tools(release: str, cache: Cache, directory: Path) -> Iterator[PartitionTools]:
    """Runs the tools until the end of the block."""
    jars = cache.class_path(release, Jars.TOOLS)
    compile_java([_SOURCE], directory, cache, jars)
    command = java_command(
        [directory, *jars],
        "org.apache.kafka.tools.PartitionTools",
        heap_mb=256,
        options=["-Dorg.slf4j.simpleLogger.defaultLogLevel=off"],
    )
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    )
    try:
        yield PartitionTools(process, release)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


class OurCommand:
    """``featurewatch`` in this process, as a user's shell would run it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        # Logging is set up once a process.
        monkeypatch.setattr("featurewatch.cli.logs.set_up", lambda **_: None)

    def run(self, *arguments: str) -> CommandResult:
        """What the command does with these arguments."""
        self._monkeypatch.setattr(sys, "argv", ["featurewatch", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self._capsys.readouterr()
        code = ended.value.code
        return CommandResult(code if isinstance(code, int) else 0, out, err)

    def __call__(self, *arguments: str) -> CommandResult:
        """The same without the lines of ours on stderr."""
        result = self.run(*arguments)
        lines = [line for line in result.err.splitlines(True) if not line.startswith(_OUR_LINE)]
        return CommandResult(result.code, result.out, "".join(lines))


def without_trace(result: CommandResult) -> CommandResult:
    """A result without the stack trace after an error, and without the help after wrong usage."""
    lines = result.out.splitlines(True)
    ends = [number for number, line in enumerate(lines) if line.startswith("Error: ")]
    out = "".join(lines[: ends[0] + 1] if ends else lines)
    return CommandResult(result.code, out, "".join(result.err.splitlines(True)[:1]))


def write_assignment(file: Path, targets: Targets) -> str:
    """Writes a file of reassignments and returns its path."""
    partitions = [
        {"topic": one.topic, "partition": one.number, "replicas": list(replicas)}
        for one, replicas in targets.items()
    ]
    file.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(file)


def make_topic(servers: str, name: str, *assignment: list[int]) -> None:
    """Creates a topic with these replicas, and waits until every broker has its part and knows of
    the others."""
    admin = AdminClient({"bootstrap.servers": servers})
    topic = NewTopic(name, num_partitions=len(assignment), replica_assignment=[*assignment])
    admin.create_topics([topic])[name].result(60)
    assert eventually(lambda: asyncio.run(_is_whole(servers, name, assignment)), 60)


async def _is_whole(servers: str, name: str, assignment: Iterable[list[int]]) -> bool:
    wanted = {TopicPartition(name, number): tuple(ids) for number, ids in enumerate(assignment)}
    replicas = [BrokerReplica(one, broker) for one, ids in wanted.items() for broker in ids]
    for address in parse_addresses(servers):
        async with ReassignmentAdmin(Bootstrap((address,))) as admin:
            present = await admin.topics([name])
            seen = {one: found.replicas for one, found in present.partitions.items()}
            leaders = {one: (found.leader,) for one, found in present.partitions.items()}
            if seen != wanted or leaders != {one: ids[:1] for one, ids in wanted.items()}:
                return False
            if {*await admin.directories(replicas, present.brokers)} != {*replicas}:
                return False
    return True


def move(servers: str, targets: Targets) -> None:
    """Moves partitions and returns when they have moved."""

    async def reassign() -> None:
        async with ReassignmentAdmin(Bootstrap(parse_addresses(servers))) as admin:
            statuses = await admin.reassign(targets, max_wait_s=60)
            assert {*statuses.values()} == {ReassignmentStatus.COMPLETED}

    asyncio.run(reassign())
    assert eventually(lambda: asyncio.run(_has_arrived(servers, targets)), 60)


def until_known(servers: str, partition: TopicPartition, *replicas: int) -> None:
    """Returns when every broker knows of these replicas of a partition, in any order."""

    async def read() -> bool:
        for address in parse_addresses(servers):
            async with ReassignmentAdmin(Bootstrap((address,))) as admin:
                found = (await admin.topics([partition.topic])).partitions.get(partition)
                if found is None or {*found.replicas} != {*replicas}:
                    return False
        return True

    assert eventually(lambda: asyncio.run(read()), 60)


async def _has_arrived(servers: str, targets: Targets) -> bool:
    """Whether every broker knows of the new replicas."""
    for address in parse_addresses(servers):
        async with ReassignmentAdmin(Bootstrap((address,))) as admin:
            statuses = await admin.verify(targets)
            if {*statuses.values()} != {ReassignmentStatus.COMPLETED}:
                return False
    return True


def _decoded(text: str) -> str:
    return base64.b64decode(text[1:]).decode()
