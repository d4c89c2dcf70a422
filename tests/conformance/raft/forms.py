"""Requests and answers as bytes of the versions that a release speaks, and back.

Epochs, offsets and replicas are few, so most messages come again in other histories: each is
translated once.
"""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from featurewatch.kafka.decode import read_entity
from featurewatch.kafka.encode import write_entity
from featurewatch.kafka.messages import build_message, message_class
from featurewatch.reference.kraft.machines.requests import (
    METADATA_TOPIC,
    AddVoter,
    AskVersions,
    DescribeQuorum,
    RaftAnswer,
    RaftRequest,
    RemoveVoter,
    VersionsAnswer,
    VoterAnswer,
)
from featurewatch.reference.kraft.wire.messages import (
    VERSIONS,
    answer_message,
    answer_of,
    request_message,
    request_of,
)
from featurewatch.streams.types import KRAFT_VERSION, UNSUPPORTED

FETCH: Final = 1
API_VERSIONS: Final = 18
DESCRIBE: Final = 55
ADD_VOTER: Final = 80
REMOVE_VOTER: Final = 81
_KNOWN: Final = 50_000
_NAMES: Final = {key: name for name, key, _ in VERSIONS.values()}
_NEWEST: Final = {key: newest for _, key, (_, newest) in VERSIONS.values()}
_OLD: Final = MappingProxyType({**_NEWEST, FETCH: 17, 52: 1, ADD_VOTER: 0})
_NEW: Final = MappingProxyType(_NEWEST)
_OLDEST: Final = {key: oldest for _, key, (oldest, _) in VERSIONS.values()}


def versions_of(release: str) -> Mapping[int, int]:
    """The newest version of each API that both the release and the reference know, by key."""
    return _OLD if release.startswith("3.") else _NEW


def oldest_of(key: int) -> int:
    """The oldest version of an API that the reference knows."""
    return _OLDEST[key]


def key_of(request: RaftRequest) -> int:
    """The key of a request's API."""
    return VERSIONS[type(request)][1]


@lru_cache(_KNOWN)
def request_bytes(request: RaftRequest, version: int) -> bytes:
    """The body of a request."""
    form = message_class(f"{_NAMES[key_of(request)]}Request", version)
    match request:
        case DescribeQuorum():
            partition = form.PartitionData(partition_index=0)
            topic = form.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
            message = form(topics=(topic,))
        case AddVoter():
            message = build_message(
                form,
                cluster_id=request.cluster_id,
                timeout_ms=request.timeout_ms,
                voter_id=request.voter.id,
                voter_directory_id=request.voter.directory,
                listeners=tuple(
                    form.Listener(name=one.name, host=one.host, port=one.port)
                    for one in request.endpoints
                ),
                ack_when_committed=request.waits_for_commit,
            )
        case RemoveVoter():
            message = form(
                cluster_id=request.cluster_id,
                voter_id=request.voter.id,
                voter_directory_id=request.voter.directory,
            )
        case _:
            message = request_message(request, version)
    return write_entity(message)


@lru_cache(_KNOWN)
def request_in(key: int, version: int, body: bytes) -> RaftRequest:
    """The request in a body."""
    if key == API_VERSIONS:
        return AskVersions()
    return request_of(key, _read(f"{_NAMES[key]}Request", version, body))


@lru_cache(_KNOWN)
def answer_bytes(key: int, version: int, answer: RaftAnswer) -> bytes:
    """The body of an answer."""
    if not isinstance(answer, VersionsAnswer):
        return write_entity(answer_message(key, version, answer))
    form = message_class("ApiVersionsResponse", version)
    feature = build_message(
        form.SupportedFeatureKey,
        name=KRAFT_VERSION,
        min_version=answer.kraft_versions.minimum,
        max_version=answer.kraft_versions.maximum,
    )
    has_feature = answer.kraft_versions != UNSUPPORTED
    return write_entity(
        build_message(
            form,
            error_code=answer.error,
            api_keys=(),
            throttle_time_ms=0,
            supported_features=(feature,) if has_feature else (),
            finalized_features=(),
        )
    )


@lru_cache(_KNOWN)
def answer_in(key: int, version: int, body: bytes) -> Any:
    """The answer in a body; of one that no replica reads, what can be compared.

    The texts of errors are not compared.
    """
    message = _read(f"{_NAMES[key]}Response", version, body)
    if key in (ADD_VOTER, REMOVE_VOTER):
        return VoterAnswer(message.error_code)
    if key == DESCRIBE:
        return _described(message)
    return answer_of(key, message)


def _described(message: Any) -> tuple[Any, ...]:
    one = message.topics[0].partitions[0]
    head = (one.partition_index, one.error_code, one.leader_id, one.leader_epoch)
    rows = (sorted(map(repr, group)) for group in (one.current_voters, one.observers))
    nodes = sorted(map(repr, getattr(message, "nodes", ())))
    return message.error_code, *head, one.high_watermark, *rows, nodes


def _read(name: str, version: int, body: bytes) -> Any:
    return read_entity(message_class(name, version), body)[0]
