"""Requests and answers as bytes of the versions that a release speaks, and back."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from featurewatch.kafka.decode import read_entity
from featurewatch.kafka.encode import write_entity
from featurewatch.kafka.messages import message_class
from featurewatch.reference.kraft.machines.requests import (
    RaftAnswer,
    RaftRequest,
)
from featurewatch.reference.kraft.wire.messages import (
    VERSIONS,
    answer_message,
    answer_of,
    request_message,
    request_of,
)

FETCH: Final = 1
_NAMES: Final = {key: name for name, key, _ in VERSIONS.values()}
_OLD: Final = MappingProxyType({FETCH: 17, 52: 1, 53: 1, 54: 1, 82: 0})
_NEW: Final = MappingProxyType({FETCH: 18, 52: 2, 53: 1, 54: 1, 82: 0})


def versions_of(release: str) -> Mapping[int, int]:
    """The newest version of each API that both the release and the reference know, by key."""
    return _OLD if release.startswith("3.") else _NEW


def key_of(request: RaftRequest) -> int:
    """The key of a request's API."""
    return VERSIONS[type(request)][1]


def request_bytes(request: RaftRequest, version: int) -> bytes:
    """The body of a request."""
    return write_entity(request_message(request, version))


def request_in(key: int, version: int, body: bytes) -> RaftRequest:
    """The request in a body."""
    return request_of(key, _read(f"{_NAMES[key]}Request", version, body))


def answer_bytes(key: int, version: int, answer: RaftAnswer) -> bytes:
    """The body of an answer."""
    return write_entity(answer_message(key, version, answer))


def answer_in(key: int, version: int, body: bytes) -> RaftAnswer | None:
    """The answer in a body."""
    return answer_of(key, _read(f"{_NAMES[key]}Response", version, body))


def _read(name: str, version: int, body: bytes) -> Any:
    return read_entity(message_class(name, version), body)[0]
