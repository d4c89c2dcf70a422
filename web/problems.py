"""Errors of the API as problem documents (RFC 9457), ``application/problem+json``."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final

import orjson
from aiohttp import web

from featurewatch.streams.text import plain, quoted

CONTENT_TYPE: Final = "application/problem+json"
RETRY_AFTER_S: Final = 2


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


def wrong_parameter(name: str, detail: str) -> ProblemError:
    """400: a parameter that cannot be used."""
    text = f"The parameter {plain(name)} {detail}"
    return ProblemError(HTTPStatus.BAD_REQUEST, text, errors={name: detail})


def unknown_cluster(cluster: str) -> ProblemError:
    """404: no state of the cluster stands on the topic."""
    text = f"No cluster {quoted(cluster)} has a state: is it watched, and does a worker run?"
    return ProblemError(HTTPStatus.NOT_FOUND, text)


def not_read(detail: str) -> ProblemError:
    """503: the topics have not been read yet."""
    return ProblemError(
        HTTPStatus.SERVICE_UNAVAILABLE, detail, headers={"Retry-After": str(RETRY_AFTER_S)}
    )


def method_not_allowed(allowed: Sequence[str]) -> ProblemError:
    """405: the page and its API only read."""
    return ProblemError(
        HTTPStatus.METHOD_NOT_ALLOWED,
        "featurewatch serves GET and HEAD only: nothing can be changed here.",
        headers={"Allow": ", ".join(allowed)},
    )
