"""Requests read from frames, and answers written into them; pure.

What cannot be read closes the connection in Kafka (RequestContext.parseRequest, SocketServer);
only an unknown version of ApiVersions is answered, in the form of version 0 (KIP-511).
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

from reference import drafts
from reference.decode import UnreadableError, read_entity, skip_header
from reference.dialects import API_VERSIONS, DRAFT_DELETE, DRAFT_UPDATE, OFFERED
from streams.znodes import FeaturesForm

_START: Final = struct.Struct(">hhi")
_LENGTH: Final = struct.Struct(">i")
_ENTITY_NAMES: Final[Mapping[str, str]] = {
    "metadata": "Metadata",
    "api_versions": "ApiVersions",
    "update_features": "UpdateFeatures",
    "describe_cluster": "DescribeCluster",
}


class BadRequestError(ValueError):
    """Bytes that are no request that this listener takes: one line, for its log."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request: ``body`` is kio's or a draft's message; none: an ApiVersions version unknown."""

    key: int
    version: int
    correlation_id: int
    body: Any


def read_call(frame: bytes, form: FeaturesForm) -> Call:
    """The request in a frame (without its length), of a version that ``form`` offers.

    Raises:
        BadRequestError: if it is not one.
    """
    if len(frame) < _START.size:
        raise BadRequestError(f"a request of {len(frame)} bytes is too short for its header")
    key, version, correlation_id = _START.unpack_from(frame)
    offered = OFFERED[form].get(key)
    if offered is None:
        raise BadRequestError(f"{_named(key)} is not served here")
    if not offered[0] <= version <= offered[1]:
        if key == API_VERSIONS:
            return Call(key, version, correlation_id, None)
        raise BadRequestError(
            f"version {version} of {_named(key)} is not served here, only {offered[0]} to "
            f"{offered[1]}"
        )
    kind = request_class(form, key, version)
    try:
        start = skip_header(frame, _START.size, flexible=kind.__flexible__)
        # What follows the message is let be, as in Kafka: librdkafka's Metadata ends in a rest.
        body, _ = read_entity(kind, frame, start)
    except UnreadableError as error:
        raise BadRequestError(
            f"an unreadable {_named(key)} of version {version}: {error}"
        ) from None
    return Call(key, version, correlation_id, body)


def write_frame(correlation_id: int, answer: Any) -> bytes:
    """The frame of an answer, its length first."""
    header = answer.__header_schema__
    buffer = io.BytesIO()
    buffer.write(bytes(_LENGTH.size))
    entity_writer(header)(buffer, header(correlation_id=correlation_id))
    entity_writer(type(answer))(buffer, answer)
    frame = buffer.getbuffer()
    _LENGTH.pack_into(frame, 0, len(frame) - _LENGTH.size)
    return bytes(frame)


@cache
def request_class(form: FeaturesForm, key: int, version: int) -> Any:
    """The class of a request that the form offers."""
    if key == DRAFT_UPDATE:
        return drafts.update_features(form, version).request
    if key == DRAFT_DELETE:
        return drafts.delete_features(version).request
    name = api_key_map[key]
    return getattr(_module(name, version, "request"), f"{_ENTITY_NAMES[name]}Request")


@cache
def response_classes(key: int, version: int) -> ModuleType:
    """kio's module with the response of a released API version and what is nested in it."""
    return _module(api_key_map[key], version, "response")


def make(kind: Any, **values: Any) -> Any:
    """A message of kio's with those of the values that this version of it has."""
    return kind(**{name: values[name] for name in _field_names(kind) if name in values})


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))


def _module(name: str, version: int, kind: str) -> ModuleType:
    return import_module(f"kio.schema.{name}.v{version}.{kind}")


def _named(key: int) -> str:
    name = api_key_map.get(key)
    if key in (DRAFT_UPDATE, DRAFT_DELETE) or name is None:
        return f"API key {key}"
    return f"API key {key} ({name})"
