"""Requests as bytes, as a client sends them."""

import socket
import struct
from typing import Any

from kio.serial import entity_reader

from featurewatch.kafka.encode import write_entity
from featurewatch.kafka.messages import Message
from tests.kafka.kio_messages import written


def request_bytes(
    request: Any, correlation_id: int = 7, client_id: str | None = "somebody"
) -> bytes:
    """A request of the table or of kio, as a client sends it, without its length."""
    name = None if client_id is None else client_id.encode()
    head = struct.pack(
        ">hhih",
        request.__api_key__,
        request.__version__,
        correlation_id,
        -1 if name is None else len(name),
    )
    tags = b"\0" if request.__flexible__ else b""
    body = write_entity(request) if isinstance(request, Message) else written(request)
    return head + (name or b"") + tags + body


def exchange(host: str, port: int, request: Any, response_class: Any) -> Any:
    """The response to a request of kio's, over a separate connection, as kio reads it."""
    with socket.create_connection((host, port), 30) as connection:
        content = request_bytes(request)
        connection.sendall(struct.pack(">i", len(content)) + content)
        with connection.makefile("rb") as stream:
            (size,) = struct.unpack(">i", stream.read(4))
            frame = stream.read(size)
    _, start = entity_reader(response_class.__header_schema__)(frame, 0)
    response, _ = entity_reader(response_class)(frame, start)
    return response
