"""Decodes requests from frames and encodes responses into frames; pure.

An unreadable request closes the connection, as in Kafka (RequestContext.parseRequest,
SocketServer). The exception is an unknown version of ApiVersions, whose response has the form of
version 0 (KIP-511).
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from featurewatch.kafka.decode import DecodeError, read_entity, skip_header
from featurewatch.kafka.encode import write_entity
from featurewatch.kafka.messages import message_class, request_names
from featurewatch.kafka.messages.drafts import KIP4_APIS
from featurewatch.reference.zookeeper.wire.api_keys import (
    ALTER_PARTITION,
    API_VERSIONS,
    CONTROLLED_SHUTDOWN,
    DRAFT_DELETE,
    DRAFT_UPDATE,
    OFFERED,
    REPLICA_KEYS,
    UPDATE_FEATURES,
    UPDATE_METADATA,
    ApiDialect,
    Versions,
)

_START: Final = struct.Struct(">hhi")
_LENGTH: Final = struct.Struct(">i")
_RELEASED: Final = request_names()
_OF_DRAFT: Final[Mapping[ApiDialect, str]] = {
    ApiDialect.EARLY_DRAFT: "Early",
    ApiDialect.EARLY_DRAFT_STRUCK: "Struck",
    ApiDialect.LATER_DRAFT: "Late",
}
"""The first word of the messages of UpdateFeatures."""
_FEATURES_SINCE: Final = 3
"""The first version of ApiVersions with features."""
_WITHOUT_CLIENT_ID: Final = (CONTROLLED_SHUTDOWN, 0)
"""The one request whose header ends after the correlation id (``RequestHeader`` version 0)."""
_MAX_ITEMS: Final = 50_000
_MAX_PARTITION_ITEMS: Final = 250_000
"""Of 60,000 partitions with three members each."""
_MAX_STATE_ITEMS: Final = 1_000_000
"""Of 100,000 partitions with three replicas, all in sync."""


class MalformedRequestError(ValueError):
    """The bytes are not a request that this listener accepts; the text is one line for its log."""


@dataclass(frozen=True, slots=True)
class WireRequest:
    """One request; ``body`` is its message, None for an unknown ApiVersions."""

    key: int
    version: int
    correlation_id: int
    body: Any


def read_request(frame: bytes, api_dialect: ApiDialect) -> WireRequest:
    """Decodes the request in a frame, given without its length.

    Raises:
        MalformedRequestError: if ``api_dialect`` does not offer the request, or it is unreadable.
    """
    return read_offered(
        frame, OFFERED[api_dialect], lambda key, version: request_class(api_dialect, key, version)
    )


def read_offered(
    frame: bytes, versions: Mapping[int, Versions], class_of: Callable[[int, int], Any]
) -> WireRequest:
    """Decodes the request in a frame, given without its length, by the class of its message.

    Raises:
        MalformedRequestError: if it is not among the ``versions``, or unreadable.
    """
    if len(frame) < _START.size:
        raise MalformedRequestError(f"a request of {len(frame)} bytes is too short for its header")
    key, version, correlation_id = _START.unpack_from(frame)
    offered = versions.get(key)
    if offered is None:
        raise MalformedRequestError(f"{_named(key)} is not served here")
    if not offered[0] <= version <= offered[1]:
        if key == API_VERSIONS:
            return WireRequest(key, version, correlation_id, None)
        raise MalformedRequestError(
            f"version {version} of {_named(key)} is not served here, only {offered[0]} to "
            f"{offered[1]}"
        )
    kind = class_of(key, version)
    try:
        start = _START.size
        if (key, version) != _WITHOUT_CLIENT_ID:
            start = skip_header(frame, start, flexible=kind.__flexible__)
        # Trailing bytes are ignored, as in Kafka: librdkafka's Metadata request has some.
        body, _ = read_entity(kind, frame, start, max_items(key))
    except DecodeError as error:
        raise MalformedRequestError(
            f"an unreadable {_named(key)} of version {version}: {error}"
        ) from None
    return WireRequest(key, version, correlation_id, body)


def write_response(correlation_id: int, response: Any) -> bytes:
    """Encodes a response as a frame, its length first."""
    # The response to ApiVersions has the old header in every version.
    is_flexible = response.__flexible__ and response.__api_key__ != API_VERSIONS
    tags = b"\0" if is_flexible else b""
    body = _LENGTH.pack(correlation_id) + tags + write_entity(response)
    return _LENGTH.pack(len(body)) + body


def max_items(key: int) -> int:
    """How many items all arrays of a request may have; each takes microseconds of the loop."""
    if key in REPLICA_KEYS:
        return _MAX_STATE_ITEMS
    return _MAX_PARTITION_ITEMS if key == ALTER_PARTITION else _MAX_ITEMS


@cache
def request_class(api_dialect: ApiDialect, key: int, version: int) -> Any:
    """The message class of a request that ``api_dialect`` offers."""
    if key == UPDATE_METADATA and api_dialect.controls_topics:
        # Late, because controllers of KRaft need nothing of it.
        from featurewatch.reference.zookeeper.wire.messages.from_controller import (
            update_metadata_start,
        )

        return update_metadata_start(version)
    return message_class(f"{_api_name(api_dialect, key, version)}Request", version)


def _api_name(api_dialect: ApiDialect, key: int, version: int) -> str:
    """The name of a request in the table of messages."""
    if (draft := _OF_DRAFT.get(api_dialect)) is not None:
        if key == DRAFT_UPDATE:
            return f"{draft}UpdateFeatures"
        if key == DRAFT_DELETE:
            return "EarlyDeleteFeatures"
        if key == UPDATE_METADATA:
            return "StruckUpdateMetadata"
        if key == API_VERSIONS and version >= _FEATURES_SINCE:
            return "DraftApiVersions"
    if api_dialect is ApiDialect.KIP_778 and key == UPDATE_FEATURES:
        return "Kip778UpdateFeatures"
    return _RELEASED.get(key) or KIP4_APIS[key]


def _named(key: int) -> str:
    name = _RELEASED.get(key)
    return f"API key {key}" if name is None else f"API key {key} ({name})"
