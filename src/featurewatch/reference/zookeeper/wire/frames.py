"""Decodes requests from frames and encodes responses into frames; pure.

An unreadable request closes the connection, as in Kafka (RequestContext.parseRequest,
SocketServer). The exception is an unknown version of ApiVersions, whose response has the form of
version 0 (KIP-511).
"""

import io
import struct
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from kio.schema.index import api_key_map
from kio.serial import entity_writer

from featurewatch.kafka.decode import DecodeError, read_entity, skip_header
from featurewatch.kafka.encode import write_entity
from featurewatch.reference.zookeeper.wire import draft_messages, kip4_messages
from featurewatch.reference.zookeeper.wire.api_keys import (
    ALLOCATE_PRODUCER_IDS,
    ALTER_PARTITION,
    API_VERSIONS,
    CONTROLLED_SHUTDOWN,
    DRAFT_DELETE,
    DRAFT_UPDATE,
    KIP4_KEYS,
    LEADER_AND_ISR,
    OFFERED,
    REPLICA_KEYS,
    STOP_REPLICA,
    UPDATE_METADATA,
    ApiDialect,
)
from featurewatch.reference.zookeeper.wire.messages.from_controller import update_metadata_start
from featurewatch.reference.zookeeper.wire.messages.message_classes import message_class

_START: Final = struct.Struct(">hhi")
_LENGTH: Final = struct.Struct(">i")
_GENERATED: Final[Mapping[int, str]] = {
    LEADER_AND_ISR: "LeaderAndIsr",
    STOP_REPLICA: "StopReplica",
    ALTER_PARTITION: "AlterPartition",
    CONTROLLED_SHUTDOWN: "ControlledShutdown",
    ALLOCATE_PRODUCER_IDS: "AllocateProducerIds",
}
"""Messages between brokers and controllers, which kio has not in all versions."""
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
    """One request; ``body`` is kio's or a draft's message, None for an unknown ApiVersions."""

    key: int
    version: int
    correlation_id: int
    body: Any


def read_request(frame: bytes, api_dialect: ApiDialect) -> WireRequest:
    """Decodes the request in a frame, given without its length.

    Raises:
        MalformedRequestError: if ``api_dialect`` does not offer the request, or it is unreadable.
    """
    if len(frame) < _START.size:
        raise MalformedRequestError(f"a request of {len(frame)} bytes is too short for its header")
    key, version, correlation_id = _START.unpack_from(frame)
    offered = OFFERED[api_dialect].get(key)
    if offered is None:
        raise MalformedRequestError(f"{_named(key)} is not served here")
    if not offered[0] <= version <= offered[1]:
        if key == API_VERSIONS:
            return WireRequest(key, version, correlation_id, None)
        raise MalformedRequestError(
            f"version {version} of {_named(key)} is not served here, only {offered[0]} to "
            f"{offered[1]}"
        )
    kind = request_class(api_dialect, key, version)
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
    header = response.__header_schema__
    buffer = io.BytesIO()
    buffer.write(bytes(_LENGTH.size))
    entity_writer(header)(buffer, header(correlation_id=correlation_id))
    # Classes that are made from the table of schemas, and KIP-4's with its optional fields.
    if hasattr(response, "items") or response.__api_key__ in KIP4_KEYS:
        buffer.write(write_entity(response))
    else:
        entity_writer(type(response))(buffer, response)
    return _with_length(buffer)


def write_request(request: Any, client_id: str) -> bytes:
    """Encodes a request that a node sends, as a frame, its length first."""
    header = request.__header_schema__
    buffer = io.BytesIO()
    buffer.write(bytes(_LENGTH.size))
    entity_writer(header)(
        buffer,
        header(
            request_api_key=request.__api_key__,
            request_api_version=request.__version__,
            correlation_id=0,
            client_id=client_id,
        ),
    )
    entity_writer(type(request))(buffer, request)
    return _with_length(buffer)


def max_items(key: int) -> int:
    """How many items all arrays of a request may have; each takes microseconds of the loop."""
    if key in REPLICA_KEYS:
        return _MAX_STATE_ITEMS
    return _MAX_PARTITION_ITEMS if key == ALTER_PARTITION else _MAX_ITEMS


@cache
def request_class(api_dialect: ApiDialect, key: int, version: int) -> Any:
    """The message class of a request that ``api_dialect`` offers."""
    if key == DRAFT_UPDATE:
        return draft_messages.update_features(api_dialect, version).request
    if key == DRAFT_DELETE:
        return draft_messages.delete_features(version).request
    if key == UPDATE_METADATA:
        if api_dialect.controls_topics:
            return update_metadata_start(version)
        return draft_messages.update_metadata().request
    if key in KIP4_KEYS:
        return kip4_messages.message_classes(key).request
    if key in _GENERATED:
        return message_class(f"{_GENERATED[key]}Request", version)
    name = api_key_map[key]
    entity = "".join(part.capitalize() for part in name.split("_"))
    return getattr(_module(name, version, "request"), f"{entity}Request")


@cache
def response_classes(key: int, version: int) -> ModuleType:
    """kio's module with the response classes of a released API version."""
    return _module(api_key_map[key], version, "response")


def build_message(kind: Any, **values: Any) -> Any:
    """Builds a kio message from those ``values`` that this version has fields for."""
    return kind(**{name: values[name] for name in _field_names(kind) if name in values})


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _with_length(buffer: io.BytesIO) -> bytes:
    frame = buffer.getbuffer()
    _LENGTH.pack_into(frame, 0, len(frame) - _LENGTH.size)
    return bytes(frame)


def _module(name: str, version: int, kind: str) -> ModuleType:
    return import_module(f"kio.schema.{name}.v{version}.{kind}")


def _named(key: int) -> str:
    name = api_key_map.get(key)
    if name is None or key in (DRAFT_UPDATE, DRAFT_DELETE):
        return f"API key {key}"
    return f"API key {key} ({name})"
