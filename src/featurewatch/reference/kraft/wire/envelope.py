"""Requests of clients that a broker forwards to the controller (KIP-590; ``EnvelopeUtils``); pure.

An envelope holds the frame of the client's request, its principal and its address. A reference has
no access control, so a principal is only checked for being one.
"""

from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import Any, Final

from featurewatch.kafka.decode import DecodeError, read_entity
from featurewatch.kafka.messages import message_class
from featurewatch.reference.zookeeper.wire.frames import (
    MalformedRequestError,
    WireRequest,
    read_offered,
    write_response,
)

ENVELOPE: Final = 58
FORWARDABLE: Final = frozenset({19, 20, 37, 43, 44, 45, 46, 55, 57, 64, 80, 81, 94})
"""The API keys served here that clients send to brokers (``ApiKeys.forwardable``)."""

_INVALID_REQUEST: Final = 42
_NOT_CONTROLLER: Final = 41
_PRINCIPAL_DESERIALIZATION_FAILURE: Final = 97
_PRINCIPAL_VERSION: Final = 0
_LENGTH_SIZE: Final = 4


class EnvelopeError(ValueError):
    """An envelope that the controller refuses; ``code`` is Kafka's number."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the envelope is refused with error {code}")
        self.code = code


def forwarded_request(
    envelope: Any, versions: Mapping[int, tuple[int, int]], class_of: Callable[[int, int], Any]
) -> WireRequest:
    """The client's request in an envelope, by the versions and classes of this listener.

    Raises:
        EnvelopeError: if it has no valid principal or address, or its request is not one of
            `FORWARDABLE` or not readable.
    """
    try:
        ip_address(envelope.client_host_address)
    except ValueError:
        raise EnvelopeError(_INVALID_REQUEST) from None
    _check_principal(envelope.request_principal)
    offered = {key: versions[key] for key in versions.keys() & FORWARDABLE}
    try:
        return read_offered(envelope.request_data, offered, class_of)
    except MalformedRequestError:
        raise EnvelopeError(_INVALID_REQUEST) from None


def _check_principal(principal: bytes | None) -> None:
    """Reads a principal as ``DefaultKafkaPrincipalBuilder`` writes it: a version, then its data."""
    if principal is None or int.from_bytes(principal[:2]) != _PRINCIPAL_VERSION:
        raise EnvelopeError(_PRINCIPAL_DESERIALIZATION_FAILURE)
    try:
        read_entity(message_class("DefaultPrincipalData", _PRINCIPAL_VERSION), principal, 2)
    except DecodeError:
        raise EnvelopeError(_PRINCIPAL_DESERIALIZATION_FAILURE) from None


def envelope_response(correlation_id: int, response: Any) -> Any:
    """The envelope around the response to the request in it.

    If this node is not the controller, the envelope itself says so, and the broker asks another.
    """
    kind = message_class("EnvelopeResponse", 0)
    if _NOT_CONTROLLER in errors_of(response):
        return kind(error_code=_NOT_CONTROLLER)
    frame = write_response(correlation_id, response)
    return kind(error_code=0, response_data=frame[_LENGTH_SIZE:])


def envelope_error(code: int) -> Any:
    """The response to an envelope that is refused."""
    return message_class("EnvelopeResponse", 0)(error_code=code)


def errors_of(message: Any) -> set[int]:
    """The error codes at any place of a response (``AbstractResponse.errorCounts``)."""
    found = set()
    for field in message.__fields__:
        value = getattr(message, field.name)
        if field.name == "error_code":
            found.add(value)
        elif field.struct is not None and value is not None:
            for item in value if field.is_array else (value,):
                found |= errors_of(item)
    return found
