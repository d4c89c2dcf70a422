"""Refusals of requests as problem documents (RFC 9457), ``application/problem+json``."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import orjson
from aiohttp import web

from featurewatch.common.text import quoted

CONTENT_TYPE: Final = "application/problem+json"


class ProblemError(Exception):
    """A request that gets a problem document.

    ``errors`` maps names of parameters to what is wrong with each.
    """

    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        *,
        errors: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.errors = errors or {}
        self.headers = headers or {}

    def response(self, instance: str) -> web.Response:
        """The document; ``instance`` is the path of the request."""
        document: dict[str, object] = {
            "type": "about:blank",
            "title": self.status.phrase,
            "status": self.status.value,
            "detail": self.detail,
            "instance": quoted(instance),
        }
        if self.errors:
            document["errors"] = [
                {"parameter": name, "detail": detail} for name, detail in self.errors.items()
            ]
        return web.Response(
            status=self.status.value,
            body=orjson.dumps(document),
            content_type=CONTENT_TYPE,
            headers={**self.headers, "Cache-Control": "no-store"},
        )
