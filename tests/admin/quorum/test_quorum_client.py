"""`QuorumAdmin` and nodes that answer as a test wants."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from featurewatch.admin.errors import (
    KafkaApiError,
    OutcomeUnknownError,
    UnreachableError,
)
from featurewatch.admin.quorum.client import QuorumAdmin
from featurewatch.kafka.messages import (
    AddRaftVoterRequestV0,
    AddRaftVoterResponseV0,
    DescribeQuorumRequestV2,
    DescribeQuorumResponseV2,
    RemoveRaftVoterRequestV0,
    RemoveRaftVoterResponseV0,
)
from featurewatch.streams.quorum import VoterEndpoint
from featurewatch.streams.types import ClusterId, NodeId
from tests.admin.scripted_brokers import Answer, ScriptedBrokers

DIRECTORY = UUID(int=7)


def closing(_: Any) -> Any:
    """Closes the connection in place of a response."""
    raise EOFError


def described(error: int = 0, *, partitions: int = 1, whole: int = 0) -> Answer:
    """A quorum of two voters that node 1 leads, or an error of it."""
    form = DescribeQuorumResponseV2
    voters = tuple(
        form.ReplicaState(
            replica_id=node_id,
            replica_directory_id=DIRECTORY,
            log_end_offset=9 + node_id,
            last_fetch_timestamp=node_id - 2,
            last_caught_up_timestamp=-1,
        )
        for node_id in (1, 2)
    )
    partition = form.PartitionData(
        partition_index=0,
        error_code=error,
        error_message=None,
        leader_id=2,
        leader_epoch=5,
        high_watermark=10,
        current_voters=voters,
        observers=(),
    )
    listener = form.Listener(name="CONTROLLER", host="host", port=1)
    response = form(
        error_code=whole,
        error_message=None,
        topics=(form.TopicData(topic_name="any", partitions=(partition,) * partitions),),
        nodes=(form.Node(node_id=1, listeners=(listener,)),),
    )
    return lambda _: response


def answering(response: type[Any], code: int, message: str | None = None) -> Answer:
    """The response to a change."""
    return lambda _: response(throttle_time_ms=0, error_code=code, error_message=message)


def admin_of(cluster: ScriptedBrokers) -> QuorumAdmin:
    """A client of these nodes that waits for nothing."""

    async def pause(_: float) -> None:
        return

    return QuorumAdmin.connect("broker-1:9092", connections=cluster.connections(), pause=pause)


async def test_a_description_has_times_directories_and_endpoints() -> None:
    """A time of -1 is unknown; nodes without finalized features leave kraft.version unknown."""
    cluster = ScriptedBrokers(DescribeQuorumRequestV2, 1, _1=[described()])
    async with admin_of(cluster) as admin:
        quorum = await admin.describe()
    assert (quorum.leader_id, quorum.leader_epoch, quorum.high_watermark) == (2, 5, 10)
    assert [voter.last_fetch_ms for voter in quorum.voters] == [None, 0]
    assert [voter.last_caught_up_ms for voter in quorum.voters] == [None, None]
    assert quorum.endpoints == {1: (VoterEndpoint("CONTROLLER", "host", 1),)}
    assert (quorum.kraft_version, quorum.is_dynamic) == (None, True)
    ((_, request),) = cluster.received
    assert [topic.topic_name for topic in request.topics] == ["__cluster_metadata"]


async def test_without_a_leader_the_next_node_is_asked() -> None:
    """A quorum that elects a leader is described once it has one."""
    cluster = ScriptedBrokers(
        DescribeQuorumRequestV2, 1, 2, _1=[described(6), described(41)], _2=[described()]
    )
    async with admin_of(cluster) as admin:
        assert (await admin.describe()).leader_id == 2
    assert [node for node, _ in cluster.received] == [1, 1, 2]


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (described(3), KafkaApiError, "This server does not host this topic-partition"),
        (described(whole=31), KafkaApiError, "Cluster authorization failed"),
        (described(partitions=0), UnreachableError, "describes 0 quorums instead of one"),
        (described(partitions=2), UnreachableError, "describes 2 quorums instead of one"),
        (lambda _: b"\x00\x07", UnreachableError, "DescribeQuorum|broker-1"),
        (closing, UnreachableError, "broker-1"),
    ],
)
async def test_a_description_that_fails(answer: Answer, error: type[Exception], text: str) -> None:
    """Refusals have Kafka's text; anything else is one line."""
    cluster = ScriptedBrokers(DescribeQuorumRequestV2, 1, _1=[answer])
    with pytest.raises(error, match=text) as raised:
        async with admin_of(cluster) as admin:
            await admin.describe()
    assert "\n" not in str(raised.value)


CHANGES: list[tuple[Any, Any, Callable[[QuorumAdmin], Any]]] = [
    (
        AddRaftVoterRequestV0,
        AddRaftVoterResponseV0,
        lambda admin: admin.add_voter(
            NodeId(3),
            DIRECTORY,
            [VoterEndpoint("CONTROLLER", "host", 9093)],
            cluster_id=ClusterId("cluster"),
        ),
    ),
    (
        RemoveRaftVoterRequestV0,
        RemoveRaftVoterResponseV0,
        lambda admin: admin.remove_voter(NodeId(3), DIRECTORY),
    ),
]


@pytest.mark.parametrize(("request_class", "response_class", "change"), CHANGES)
async def test_a_change_names_the_voter(
    request_class: Any, response_class: Any, change: Callable[[QuorumAdmin], Any]
) -> None:
    """Id and directory id; of a new voter its endpoints and its cluster."""
    cluster = ScriptedBrokers(request_class, 1, _1=[answering(response_class, 0)])
    async with admin_of(cluster) as admin:
        await change(admin)
    ((_, request),) = cluster.received
    assert (request.voter_id, request.voter_directory_id) == (3, DIRECTORY)
    if request_class is AddRaftVoterRequestV0:
        assert request.cluster_id == "cluster"
        assert [(one.name, one.host, one.port) for one in request.listeners] == [
            ("CONTROLLER", "host", 9093)
        ]
        assert 0 < request.timeout_ms < 60_000


@pytest.mark.parametrize(("request_class", "response_class", "change"), CHANGES)
@pytest.mark.parametrize(
    ("code", "message", "error", "text"),
    [
        # With a text the leader has decided before it appended anything.
        (7, "it lags behind", KafkaApiError, "it lags behind"),
        (31, None, KafkaApiError, "Cluster authorization failed"),
        (126, None, KafkaApiError, "already part of the set of voters"),
        # Without one the change is in its log, and may still be committed.
        (7, None, OutcomeUnknownError, "gave up waiting for a majority of the new voters"),
        (6, None, OutcomeUnknownError, "the leader of the quorum changed meanwhile"),
    ],
)
async def test_a_change_that_is_not_made_or_perhaps(
    request_class: Any,
    response_class: Any,
    change: Callable[[QuorumAdmin], Any],
    code: int,
    message: str | None,
    error: type[Exception],
    text: str,
) -> None:
    """A refusal is not taken for an unknown outcome, nor the reverse; nothing is sent twice."""
    cluster = ScriptedBrokers(request_class, 1, _1=[answering(response_class, code, message)])
    with pytest.raises(error, match=text):
        async with admin_of(cluster) as admin:
            await change(admin)
    assert len(cluster.received) == 1


@pytest.mark.parametrize(("request_class", "response_class", "change"), CHANGES)
async def test_a_change_without_a_response_is_unknown(
    request_class: Any, response_class: Any, change: Callable[[QuorumAdmin], Any]
) -> None:
    """The connection ends after it was sent; another node that is no controller took nothing."""
    cluster = ScriptedBrokers(request_class, 1, 2, _1=[answering(response_class, 41)], _2=[closing])
    with pytest.raises(OutcomeUnknownError, match="broker-2"):
        async with admin_of(cluster) as admin:
            await change(admin)
    assert [node for node, _ in cluster.received] == [1, 2]
