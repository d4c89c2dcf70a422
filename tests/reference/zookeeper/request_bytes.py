"""Requests as bytes, as a client sends them."""

import io
from typing import Any

from kio.serial import entity_writer


def request_bytes(
    request: Any, correlation_id: int = 7, client_id: str | None = "somebody"
) -> bytes:
    """A request as a client sends it, without its length."""
    header = type(request).__header_schema__
    buffer = io.BytesIO()
    entity_writer(header)(
        buffer,
        header(
            request_api_key=request.__api_key__,
            request_api_version=request.__version__,
            correlation_id=correlation_id,
            client_id=client_id,
        ),
    )
    entity_writer(type(request))(buffer, request)
    return buffer.getvalue()
