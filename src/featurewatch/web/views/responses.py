"""JSON responses, with their tags and compression."""

from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from hashlib import sha256
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

import orjson
from aiohttp import web

from featurewatch.web.parameters import Page

_COMPRESSED_FROM_BYTES: Final = 1_024


def make_etag(request: web.Request, boot: str, number: int) -> str:
    """A weak tag: it does not change with times. Other parameters are another resource."""
    query = sha256(request.query_string.encode()).hexdigest()[:8]
    return f'W/"{boot}.{number}.{query}"'


def is_current(request: web.Request, etag: str) -> bool:
    """Whether the client already has the content of this tag."""
    given = request.headers.get("If-None-Match", "")
    return etag in (tag.strip() for tag in given.split(","))


def not_modified(etag: str) -> web.Response:
    """A 304 Not Modified response."""
    return web.Response(
        status=HTTPStatus.NOT_MODIFIED, headers={"ETag": etag, "Cache-Control": "no-cache"}
    )


def json_response(request: web.Request, content: Any, etag: str = "") -> web.Response:
    """A document as JSON."""
    return response(request, orjson.dumps(content, default=list), etag)


def list_response(
    request: web.Request,
    page: Page,
    position: str,
    etag: str = "",
    more: Mapping[str, Any] | None = None,
) -> web.Response:
    """A page of a list with a link to the next one; ``more`` are further fields of the document."""
    body = {
        "items": [
            asdict(item) if is_dataclass(item) and not isinstance(item, type) else item
            for item in page.items
        ],
        "total": page.total,
        "next_cursor": page.next_cursor,
        "position": position,
        **(more or {}),
    }
    made = json_response(request, body, etag)
    if page.next_cursor is not None:
        # Relative: it holds under any path that a proxy puts before it.
        query = urlencode({**request.query, "cursor": page.next_cursor})
        made.headers["Link"] = f'<?{query}>; rel="next"'
    return made


def response(
    request: web.Request, body: bytes, etag: str = "", content_type: str = "application/json"
) -> web.Response:
    """A body, compressed where the client takes that and it is worth it."""
    headers = {"ETag": etag, "Cache-Control": "no-cache"} if etag else {}
    made = web.Response(body=body, content_type=content_type, headers=headers)
    if len(body) >= _COMPRESSED_FROM_BYTES and "gzip" in request.headers.get("Accept-Encoding", ""):
        made.enable_compression(web.ContentCoding.gzip)
        made.headers["Vary"] = "Accept-Encoding"
    return made
