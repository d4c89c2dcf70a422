"""Kafka's own ``kafka-reassign-partitions`` and ``kafka-leader-election``, and our commands."""

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from featurewatch.admin.cluster.values import BrokerReplica
from featurewatch.admin.connections import Bootstrap
from featurewatch.admin.reassignments.client import ReassignmentAdmin
from featurewatch.admin.reassignments.types import ReassignmentStatus, Targets
from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.kafka.address import parse_addresses
from tests.conformance.kafka_tools import CommandResult, KafkaTools
from tests.waiting import eventually


class PartitionTools:
    """The tools of a release that move replicas and elect leaders."""

    def __init__(self, tools: KafkaTools) -> None:
        self.release = tools.release
        self._tools = tools

    def __call__(self, tool: str, *arguments: str) -> CommandResult:
        """What a tool does with these arguments; its stack trace is left out."""
        return without_trace(self._tools(tool, *arguments))


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
