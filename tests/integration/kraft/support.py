"""Shared by the tests of the metadata log source: a running source, its sink, and waiting."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from featurewatch.kafka.address import parse_addresses
from featurewatch.kafka.connection import Connection, open_connection
from featurewatch.kafka.messages import (
    AlterPartitionReassignmentsRequestV0,
    MetadataRequestV1,
    Request,
    UpdateFeaturesRequestV1,
)
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.node import KafkaNode
from featurewatch.stack.process.ports import LOOPBACK
from featurewatch.stack.wire.connection import BlockingConnection
from featurewatch.streams.events import (
    LogCommit,
    LogGap,
    SnapshotChunk,
    SourceStatus,
)
from featurewatch.streams.kraft.observer.quorum_reader import QuorumSettings
from featurewatch.streams.kraft.source import KraftSettings, KraftSource
from featurewatch.streams.types import ClusterId, LastRecord
from tests.streams.recording_sink import RecordingSink

WANTED = frozenset(
    {"REGISTER_BROKER_RECORD", "FEATURE_LEVEL_RECORD", "TOPIC_RECORD", "REGISTER_CONTROLLER_RECORD"}
)


class LogSink(RecordingSink):
    """Keeps the events of one metadata log."""

    @property
    def commits(self) -> list[LogCommit]:
        """The commits, in order."""
        return self.of(LogCommit)

    @property
    def chunks(self) -> list[SnapshotChunk]:
        """The chunks of snapshots, in order."""
        return self.of(SnapshotChunk)

    @property
    def gaps(self) -> list[LogGap]:
        """The gaps, in order."""
        return self.of(LogGap)

    @property
    def statuses(self) -> list[SourceStatus]:
        """The states, in order."""
        return self.of(SourceStatus)

    @property
    def topics(self) -> list[str]:
        """The names of created topics as they came, from commits and snapshots."""
        return [
            record["data"]["name"]
            for event in self.events
            if isinstance(event, LogCommit | SnapshotChunk)
            for record in event.records
            if record["type"] == "TOPIC_RECORD"
        ]

    def assert_in_order(self) -> None:
        """No commit comes twice, and none before another that it follows."""
        last = -1
        for commit in self.commits:
            assert commit.first_offset > last, commit
            last = commit.last_offset


def settings_for(cluster: Cluster, **changes: object) -> KraftSettings:
    """How to follow a running cluster."""
    cluster_id = ClusterId(cluster.cluster_id)
    quorum = QuorumSettings(cluster_id, parse_addresses(cluster.controllers))
    options = {"quorum": quorum, "wanted": WANTED, "heartbeat_ms": 500, **changes}
    return KraftSettings(cluster_id, **options)  # type: ignore[arg-type]


def from_directory(cluster: Cluster, directory: Path, **changes: object) -> KraftSettings:
    """How to follow a node's files."""
    options = {"wanted": WANTED, "heartbeat_ms": 500, "log_directory": directory, **changes}
    return KraftSettings(ClusterId(cluster.cluster_id), **options)  # type: ignore[arg-type]


@asynccontextmanager
async def running(
    settings: KraftSettings, sink: RecordingSink, resume: LastRecord | None = None
) -> AsyncIterator[KraftSource]:
    """A source that runs in the background; what it raises fails the test."""

    async def resumed() -> LastRecord | None:
        return resume

    source = KraftSource(settings, sink, resumed)
    task = asyncio.create_task(source.run())
    try:
        yield source
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(holds: Callable[[], object], timeout_s: float = 60) -> None:
    """Wait until something holds, and fail after a time."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s"
        await asyncio.sleep(0.02)


async def until_topic(sink: LogSink, name: str, timeout_s: float = 60) -> None:
    """Wait until the creation of a topic was published."""
    await until(lambda: name in sink.topics, timeout_s)


async def create_topics(cluster: Cluster, names: Sequence[str], timeout_s: float = 60) -> None:
    """Create topics, and try again while there is no controller to do it."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    left = set(names)
    deadline = time.monotonic() + timeout_s
    while left:
        futures = admin.create_topics([NewTopic(name, 1, 1) for name in left], request_timeout=30)
        for name, future in futures.items():
            with suppress(KafkaException):
                await asyncio.wrap_future(future)
                left.discard(name)
        left -= set(await asyncio.to_thread(lambda: admin.list_topics(timeout=60).topics))
        assert time.monotonic() < deadline, f"{left} could not be created"


def pause(node: KafkaNode) -> None:
    """Pauses a node's process."""
    assert node.pid is not None
    os.kill(node.pid, signal.SIGSTOP)


def resume(node: KafkaNode) -> None:
    """Resumes a paused node."""
    assert node.pid is not None
    os.kill(node.pid, signal.SIGCONT)


def request_of(node: KafkaNode, request: Request[Any]) -> None:
    """Sends a request to a broker, which forwards it to the controller."""
    port = node.addresses.broker
    assert port is not None
    with BlockingConnection(LOOPBACK, port, 30) as connection:
        assert connection.request(request).error_code == 0


def reassign(node: KafkaNode, topic: str, index: int, broker_ids: Sequence[int]) -> None:
    """Begins the reassignment of a partition, by a request to a broker."""
    form = AlterPartitionReassignmentsRequestV0
    partition = form.ReassignablePartition(partition_index=index, replicas=tuple(broker_ids))
    entry = form.ReassignableTopic(name=topic, partitions=(partition,))
    request_of(node, form(topics=(entry,)))


async def finalize(cluster: Cluster, feature: str, level: int) -> None:
    """Finalizes a level through a broker."""
    connection = await open_connection(parse_addresses(cluster.bootstrap_servers)[0])
    form = UpdateFeaturesRequestV1
    update = form.FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=1)
    request = form(timeout_ms=30_000, feature_updates=(update,), validate_only=False)
    answer = await connection.request(request, 30)
    await connection.close()
    errors = [result.error_message for result in answer.results if result.error_code]
    assert answer.error_code == 0, answer
    assert not errors, errors


async def used_for(connection: Connection, seconds: float) -> None:
    """Sends a request now and then; raises `NodeError` once the node closes the connection."""
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        await connection.request(MetadataRequestV1(topics=()), 10)
        await asyncio.sleep(0.1)
