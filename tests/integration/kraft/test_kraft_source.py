"""The metadata log source on real quorums of both tested releases."""

import asyncio
from collections.abc import Callable
from statistics import median

import pytest

from featurewatch.kafka.address import parse_addresses
from featurewatch.kafka.connection import open_connection
from featurewatch.kafka.messages import CreateTopicsRequestV7, DescribeQuorumRequestV2
from featurewatch.kafka.node_errors import ResponseTimeoutError
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.node import KafkaNode
from featurewatch.stack.kafka.specs import ClusterSpec, combined
from featurewatch.streams.events import SourceState
from featurewatch.streams.kraft.observer.quorum_reader import QuorumSettings
from featurewatch.streams.kraft.source import KraftSource
from featurewatch.streams.types import LastRecord
from tests.integration.kraft.support import (
    LogSink,
    create_topics,
    pause,
    resume,
    running,
    settings_for,
    until,
    until_topic,
)

pytestmark = pytest.mark.stack
MakeCluster = Callable[[ClusterSpec], Cluster]
EACH_RELEASE = pytest.mark.parametrize(
    "release", [pytest.param("3.9.1", marks=pytest.mark.nightly), "4.3.0"]
)


def fetched_offset(source: KraftSource) -> int:
    """The next offset to fetch; what is above the high watermark is held and not published."""
    return source._reader.progress.fetch_position.offset if source._reader else 0


async def observers_of(cluster: Cluster) -> tuple[set[int], int]:
    """The replica ids that the quorum knows as observers, and its high watermark."""
    (leader,) = parse_addresses(cluster.leader().controller or "")
    connection = await open_connection(leader)
    form = DescribeQuorumRequestV2
    partitions = (form.PartitionData(partition_index=0),)
    topic = form.TopicData(topic_name="__cluster_metadata", partitions=partitions)
    answer = await connection.request(form(topics=(topic,)), 60)
    await connection.close()
    partition = answer.topics[0].partitions[0]
    return {replica.replica_id for replica in partition.observers}, partition.high_watermark


async def test_the_log_is_followed_from_its_beginning(quorum: Cluster) -> None:
    """All committed records come in order, `following` is said at their end, nobody notices us.

    Shows M-35: the level that the log was begun with is what it says until it is raised.
    """
    sink = LogSink()
    async with running(settings_for(quorum), sink) as source:
        await until(sink.following)
        await create_topics(quorum, ["followed-1", "followed-2"])
        await until(lambda: {"followed-1", "followed-2"} <= set(sink.topics))
        observers, watermark = await observers_of(quorum)
        await until(lambda: source.report().offset >= watermark - 1)
    assert observers == set()
    sink.assert_in_order()
    assert [status.state for status in sink.statuses[:2]] == [
        SourceState.CATCHING_UP,
        SourceState.FOLLOWING,
    ]
    levels = [
        r["data"] for c in sink.commits for r in c.records if r["type"] == "FEATURE_LEVEL_RECORD"
    ]
    assert levels[0]["name"] == "metadata.version"
    assert sink.gaps == []


async def test_a_source_resumes_after_what_it_published_last(quorum: Cluster) -> None:
    """Resuming at any offset of the log gives the rest of it, the same commits, none twice."""
    whole = LogSink()
    async with running(settings_for(quorum), whole):
        await until(whole.following)
    for earlier in whole.commits[:6]:
        rest = LogSink()
        at = LastRecord(earlier.last_offset, earlier.leader_epoch)
        async with running(settings_for(quorum), rest, at):
            await until(rest.following)
        ids = [commit.id for commit in whole.commits if commit.first_offset > earlier.last_offset]
        assert [commit.id for commit in rest.commits][: len(ids)] == ids
        assert rest.gaps == []


async def test_a_commit_is_published_about_when_its_client_hears_of_it(quorum: Cluster) -> None:
    """The source is not later than the client whose request was committed by much."""
    sink, late_ms = LogSink(), []
    async with running(settings_for(quorum), sink):
        await until(sink.following)
        for number in range(10):
            name = f"timed-{number}"
            await create_topics(quorum, [name])
            created_s = asyncio.get_running_loop().time()
            await until_topic(sink, name)
            late_ms.append((asyncio.get_running_loop().time() - created_s) * 1000)
    # A Fetch that finds nothing waits for 500 ms.
    assert median(late_ms) < 250, late_ms


@EACH_RELEASE
async def test_a_killed_leader_loses_and_repeats_nothing(
    release: str, make_cluster: MakeCluster
) -> None:
    """The leader is killed twice: each change comes once, and the source follows again."""
    cluster = make_cluster(combined([release] * 3))
    sink = LogSink()
    async with running(settings_for(cluster), sink) as source:
        await until(sink.following)
        for round_ in range(2):
            await create_topics(cluster, [f"before-{round_}"])
            leader = await asyncio.to_thread(cluster.leader)
            leader.kill()
            await create_topics(cluster, [f"after-{round_}"], timeout_s=60)
            await until_topic(sink, f"after-{round_}")
            await asyncio.to_thread(leader.start)
            await until(lambda: source.report().state is SourceState.FOLLOWING)
        await until(sink.following)
    assert sink.topics == ["before-0", "after-0", "before-1", "after-1"]
    sink.assert_in_order()
    assert sink.gaps == []


@EACH_RELEASE
async def test_what_an_isolated_leader_wrote_is_never_published(
    release: str, make_cluster: MakeCluster
) -> None:
    """A leader without followers creates a topic, another is elected without it: it never was."""
    # A leader resigns when no follower has fetched for one and a half times this: 3 s by default.
    patience = {"controller.quorum.fetch.timeout.ms": "6000"}
    cluster = make_cluster(combined([release] * 3, properties=patience))
    sink = LogSink()
    async with running(settings_for(cluster), sink) as source:
        await until(sink.following)
        leader = await asyncio.to_thread(cluster.leader)
        others = [node for node in cluster.nodes if node is not leader]
        before = source.report().high_watermark
        for node in others:
            pause(node)
        try:
            # The fetches under way take the next record to the followers' sockets.
            await until(lambda: fetched_offset(source) > before + 1)
            await write_alone(leader, "never")
            await until(lambda: b"never" in leader_log(leader))
            written = fetched_offset(source)
            pause(leader)
            assert written > source.report().high_watermark
            for node in others:
                resume(node)
            await until(lambda: source.report().high_watermark > before + 3)
            assert sink.gaps == []
        finally:
            for node in cluster.nodes:
                resume(node)
        await asyncio.to_thread(cluster.wait_ready)
        await create_topics(cluster, ["healed"], timeout_s=60)
        await until(lambda: "healed" in sink.topics)
    assert sink.topics == ["healed"]
    sink.assert_in_order()
    assert sink.gaps == []


def leader_log(leader: KafkaNode) -> bytes:
    """The bytes of a node's metadata log."""
    return b"".join(path.read_bytes() for path in sorted(leader.metadata_log.glob("*.log")))


async def write_alone(leader: KafkaNode, topic: str) -> None:
    """Ask a controller itself for a topic, and do not wait for the answer that cannot come."""
    (address,) = parse_addresses(leader.controller or "")
    connection = await open_connection(address)
    form = CreateTopicsRequestV7
    wanted = form.CreatableTopic(
        name=topic, num_partitions=1, replication_factor=1, assignments=(), configs=()
    )
    with pytest.raises(ResponseTimeoutError):
        await connection.request(form(topics=(wanted,)), 0.5)


async def test_another_clusters_id_is_one_clear_line(quorum: Cluster) -> None:
    """Controllers of another cluster: stalled, with both what is wrong and what to check."""
    controllers = parse_addresses(quorum.controllers)
    wrong = "AAAAAAAAAAAAAAAAAAAAAA"
    sink = LogSink()
    async with running(settings_for(quorum, quorum=QuorumSettings(wrong, controllers)), sink):
        await until(lambda: sink.statuses and sink.statuses[-1].state is SourceState.STALLED)
    assert f"belongs to another cluster than {wrong}" in sink.statuses[-1].detail
    assert sink.commits == []


async def test_a_brokers_listener_is_one_clear_line(quorum: Cluster) -> None:
    """A broker's address given for a controller's: stalled, and told which to give."""
    brokers = parse_addresses(quorum.bootstrap_servers)
    sink = LogSink()
    async with running(
        settings_for(quorum, quorum=QuorumSettings(quorum.cluster_id, brokers)), sink
    ):
        await until(lambda: sink.statuses and sink.statuses[-1].state is SourceState.STALLED)
    assert "is a broker's listener: give the address of a controller's" in sink.statuses[-1].detail


async def test_one_right_controller_is_enough(quorum: Cluster) -> None:
    """Of the given addresses one is a controller, one a broker and one nobody: it follows."""
    given = (
        parse_addresses("127.0.0.1:1")[0],
        parse_addresses(quorum.bootstrap_servers)[0],
        parse_addresses(quorum.controllers)[0],
    )
    sink = LogSink()
    async with running(settings_for(quorum, quorum=QuorumSettings(quorum.cluster_id, given)), sink):
        await until(sink.following)


async def test_nobody_listening_is_one_clear_line(quorum: Cluster) -> None:
    """No listener at all: stalled, with the address, and tried again."""
    nobody = QuorumSettings(quorum.cluster_id, parse_addresses("127.0.0.1:1"))
    sink = LogSink()
    async with running(settings_for(quorum, quorum=nobody), sink):
        await until(lambda: sink.statuses and sink.statuses[-1].state is SourceState.STALLED)
    assert "nobody listens at 127.0.0.1:1" in sink.statuses[-1].detail
