"""The messages of Raft: what is written is read again, in each version, as far as it has fields."""

from dataclasses import replace
from uuid import UUID

import pytest

from featurewatch.kafka.decode import read_entity
from featurewatch.kafka.encode import write_entity
from featurewatch.kafka.messages import message_class
from featurewatch.reference.kraft.machines.replicas import Endpoint, ReplicaKey
from featurewatch.reference.kraft.machines.requests import (
    ANY_HIGH_WATERMARK,
    METADATA_TOPIC,
    AskVersions,
    BeginQuorumEpoch,
    EndQuorumEpoch,
    EpochAnswer,
    Fetch,
    FetchAnswer,
    FetchSnapshot,
    FetchSnapshotAnswer,
    LeaderView,
    RaftRequest,
    UpdateVoter,
    Vote,
    VoteAnswer,
)
from featurewatch.reference.kraft.wire.messages import (
    VERSIONS,
    InvalidRequestError,
    answer_message,
    answer_of,
    request_message,
    request_of,
)
from featurewatch.streams.types import OffsetAndEpoch, SupportedRange

A, B = UUID(int=11), UUID(int=12)
LISTENER = (Endpoint("CONTROLLER", "localhost", 9093),)
OF_VIEW = (Endpoint("", "localhost", 9093),)
VIEW = LeaderView(2, 7, OF_VIEW)
NOBODY = LeaderView(-1, 7)

REQUESTS: tuple[RaftRequest, ...] = (
    Vote("c", ReplicaKey(1, A), 7, ReplicaKey(2, B), 6, 99, True),
    BeginQuorumEpoch("c", ReplicaKey(1, A), 2, 7, LISTENER),
    EndQuorumEpoch("c", 2, 7, (ReplicaKey(1, A), ReplicaKey(3, B)), LISTENER),
    Fetch("c", ReplicaKey(1, A), 7, 99, 6, 50, 500, 1000),
    FetchSnapshot("c", ReplicaKey(1, A), 7, OffsetAndEpoch(90, 6), 12, 1000),
    UpdateVoter("c", 7, ReplicaKey(1, A), LISTENER, SupportedRange(0, 1)),
)
Sent = VoteAnswer | EpochAnswer | FetchAnswer | FetchSnapshotAnswer
ANSWERS: tuple[tuple[int, Sent], ...] = (
    (52, VoteAnswer(0, VIEW, True)),
    (52, VoteAnswer(74, NOBODY)),
    (52, VoteAnswer(104)),
    (53, EpochAnswer(0, VIEW)),
    (54, EpochAnswer(6, NOBODY)),
    (1, FetchAnswer(0, VIEW, 50, 3, records=b"records")),
    (1, FetchAnswer(0, VIEW, -1, 0, diverging=OffsetAndEpoch(5, 4))),
    (1, FetchAnswer(0, VIEW, -1, 0, snapshot=OffsetAndEpoch(5, 4))),
    (1, FetchAnswer(74, NOBODY)),
    (1, FetchAnswer(104)),
    (59, FetchSnapshotAnswer(0, VIEW, OffsetAndEpoch(5, 4), 100, 12, b"part")),
    (59, FetchSnapshotAnswer(98, NOBODY, OffsetAndEpoch(5, 4))),
)


def as_read(request: RaftRequest, version: int) -> RaftRequest:
    """A request without what its version has no fields for."""
    match request:
        case Vote():
            voter = request.voter if version > 0 else ReplicaKey(-1)
            candidate = request.candidate if version > 0 else ReplicaKey(2)
            is_pre = request.is_pre_vote and version > 1
            return replace(request, voter=voter, candidate=candidate, is_pre_vote=is_pre)
        case BeginQuorumEpoch() if version == 0:
            return replace(request, voter=ReplicaKey(-1), endpoints=())
        case EndQuorumEpoch() if version == 0:
            return replace(request, successors=(ReplicaKey(1), ReplicaKey(3)), endpoints=())
        case Fetch():
            watermark = request.high_watermark if version > 17 else ANY_HIGH_WATERMARK
            replica = request.replica if version > 16 else ReplicaKey(1)
            return replace(request, replica=replica, high_watermark=watermark)
        case FetchSnapshot() if version == 0:
            return replace(request, replica=ReplicaKey(1))
        case _:
            return request


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: type(one).__name__)
def test_requests(request_: RaftRequest) -> None:
    """Every version of a request that is sent can be read."""
    name, key, (first, last) = VERSIONS[type(request_)]
    for version in range(first, last + 1):
        data = write_entity(request_message(request_, version))
        body, end = read_entity(message_class(f"{name}Request", version), data)
        assert end == len(data)
        assert request_of(key, body) == as_read(request_, version)


@pytest.mark.parametrize(("key", "answer"), ANSWERS)
def test_answers(key: int, answer: Sent) -> None:
    """Every version of an answer can be read; those before KIP-853 have no endpoints."""
    name, _, (first, last) = next(row for row in VERSIONS.values() if row[1] == key)
    endpoints_since = {1: 17}.get(key, 1)
    for version in range(first, last + 1):
        data = write_entity(answer_message(key, version, answer))
        body, end = read_entity(message_class(f"{name}Response", version), data)
        assert end == len(data)
        view = answer.view
        if version < endpoints_since:
            view = replace(view, endpoints=())
        assert answer_of(key, body) == replace(answer, view=view)


def test_other_partitions() -> None:
    """A request for another topic or partition, or for two, is refused."""
    body = request_message(REQUESTS[0], 2)
    (topic,) = body.topics
    (partition,) = topic.partitions
    for topics in (
        (),
        (topic, topic),
        (type(topic)(topic_name="other", partitions=(partition,)),),
        (type(topic)(topic_name=METADATA_TOPIC, partitions=(partition, partition)),),
    ):
        with pytest.raises(InvalidRequestError):
            request_of(52, type(body)(cluster_id="c", voter_id=1, topics=topics))
    partition.partition_index = 1
    with pytest.raises(InvalidRequestError):
        request_of(52, body)


def test_versions_are_asked_for() -> None:
    """A new voter is asked for its kraft.version by ApiVersions (KIP-853)."""
    request = request_message(AskVersions(), 4)
    assert request.client_software_name == "featurewatch"
