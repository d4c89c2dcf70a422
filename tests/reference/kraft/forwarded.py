"""Requests as brokers forward them to a controller."""

import struct
from typing import Any

from featurewatch.kafka.encode import write_entity
from featurewatch.kafka.messages import message_class

PRINCIPAL = b"\0\0\5User\x0aANONYMOUS\0\0"


def frame(request: Any, correlation_id: int = 8) -> bytes:
    """A request with its header, without its length."""
    head = struct.pack(">hhih", request.__api_key__, request.__version__, correlation_id, 1)
    return head + b"c" + (b"\0" if request.__flexible__ else b"") + write_entity(request)


def envelope(
    request: bytes, principal: bytes | None = PRINCIPAL, host: bytes = b"\x7f\0\0\1"
) -> Any:
    """An envelope as a broker writes it."""
    kind = message_class("EnvelopeRequest", 0)
    return kind(request_data=request, request_principal=principal, client_host_address=host)
